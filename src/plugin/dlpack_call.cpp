#include "plugin/dlpack_call.hpp"

#include <string>
#include <vector>

#if defined(ASSAY_PLUGIN_CUDA)
#include "runtime/cuda/cuda_device.hpp"
#endif

namespace assay::plugin {
namespace {

DLDataType dlpack_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  switch (dtype) {
    case DType::f32:
    case DType::f16: return {kDLFloat, bits, 1};
    case DType::bf16: return {kDLBfloat, bits, 1};
    case DType::i32: return {kDLInt, bits, 1};
    case DType::u8: return {kDLUInt, bits, 1};
  }
  return {kDLOpaqueHandle, bits, 1};
}

/// Returns the DLPack device. For a kernel on cuda-host it is a CUDA device.
DLDevice dlpack_device(const Device& device) {
  const bool cuda = device.backend() == Backend::cuda || device.backend() == Backend::cuda_host;
  return {cuda ? kDLCUDA : kDLCPU, 0};
}

/// Extents of a tensor at a stable address.
struct Extents {
  explicit Extents(const Shape& shape) {
    for (int axis = 0; axis < shape.rank(); ++axis) values[axis] = shape[axis];
  }
  std::int64_t values[Shape::kMaxRank] = {};
};

/// Returns the names as C strings: the views of the descriptors need not end in 0.
template <class Infos>
std::vector<std::string> names_of(const Infos& infos) {
  std::vector<std::string> names;
  for (const auto& info : infos) names.emplace_back(info.name);
  return names;
}
std::vector<const char*> pointers(const std::vector<std::string>& names) {
  std::vector<const char*> list;
  for (const std::string& name : names) list.push_back(name.c_str());
  return list;
}

}  // namespace

void* stream_of([[maybe_unused]] Device& device) {
#if defined(ASSAY_PLUGIN_CUDA)
  if (device.backend() == Backend::cuda) return static_cast<CudaDevice&>(device).stream();
#endif
  return nullptr;
}

int call_dlpack(const std::function<int(const assay_call&)>& function, const OpDescriptor& op, const Call& call,
                Device& device, char* message, std::size_t message_bytes) {
  std::vector<Extents> shapes, strides;
  for (const Tensor& tensor : call.tensors) shapes.emplace_back(tensor.shape), strides.emplace_back(tensor.strides);
  std::vector<DLTensor> tensors;
  for (std::size_t t = 0; t < call.tensors.size(); ++t) {
    const Tensor& tensor = call.tensors[t];
    DLTensor& out = tensors.emplace_back();
    out.data = tensor.data;
    out.device = dlpack_device(device);
    out.ndim = tensor.shape.rank();
    out.dtype = dlpack_type(tensor.dtype);
    out.shape = shapes[t].values;
    out.strides = strides[t].values;
    out.byte_offset = 0;
  }
  const std::string op_name(op.name);
  const auto dim_names = names_of(op.dims), param_names = names_of(op.params), tensor_names = names_of(op.tensors);
  const auto dim_list = pointers(dim_names), param_list = pointers(param_names), tensor_list = pointers(tensor_names);
  assay_call handed{};
  handed.version = ASSAY_PLUGIN_VERSION;
  handed.dim_count = static_cast<std::int32_t>(call.dims.size());
  handed.param_count = static_cast<std::int32_t>(call.params.size());
  handed.tensor_count = static_cast<std::int32_t>(tensors.size());
  handed.op = op_name.c_str();
  handed.dims = call.dims.data();
  handed.dim_names = dim_list.data();
  handed.params = call.params.data();
  handed.param_names = param_list.data();
  handed.tensors = tensors.data();
  handed.tensor_names = tensor_list.data();
  handed.device = dlpack_device(device);
  handed.stream = stream_of(device);
  handed.message = message;
  handed.message_bytes = message_bytes;
  return function(handed);
}

}  // namespace assay::plugin
