#include "falsify/mutation/study/launched_programs.hpp"

#include "falsify/engine/draw.hpp"
#include "falsify/engine/obligation.hpp"

namespace assay::falsify {
namespace {

constexpr std::uint64_t kCalls = 200;

/// Returns a call of these dims with dense tensors that have no memory.
Call dense_call(const OpDescriptor& op, const Case& c, DType storage) {
  Call call{c.dims, c.params, {}};
  for (const TensorInfo& tensor : op.tensors) {
    const Shape shape = tensor.shape(c.dims);
    call.tensors.push_back({tensor.storage ? storage : tensor.dtype, nullptr, shape, row_major_strides(shape)});
  }
  return call;
}

}  // namespace

void prepare_drawn_calls(const Kernel& kernel, Device& device) {
  const OpDescriptor& op = operation(kernel.op);
  for (const Obligation& obligation : obligations(op.name))
    for (std::uint64_t number = 0; number < kCalls / obligations(op.name).size() + 1; ++number) {
      const Call call = dense_call(op, draw(op, *obligation.info, 1, number).value(), kernel.storage);
      if (refuses(kernel, call)) continue;
      try {
        device.prepare(kernel, call);
      } catch (const Unavailable&) {  // this call is too large for the device
      }
    }
}

}  // namespace assay::falsify
