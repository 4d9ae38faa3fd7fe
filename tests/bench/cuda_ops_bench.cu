// CUDA kernels of whole operations on this machine's device: one JSON line per kernel and shape, with the share of the
// bandwidth of a device copy that the minimal traffic achieves (every input read once, every output written once), or
// with operations per second if compute-bound. tests/bench/torch_ops.py times PyTorch on the same shapes.
//
//     assay_cuda_ops_bench [kernel id or part of one]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "contract/descriptor.hpp"
#include "tests/bench/cuda_timing.hpp"

namespace assay::bench {
namespace {

struct Setting {
  const char* op;
  std::map<std::string_view, Index> dims;
  std::map<std::string_view, double> params;  ///< parameters with untypical values
  double operations = 0;                      ///< per call, if compute-bound
};

/// A call on device memory: normal reals; integers are the largest allowed or drawn.
struct DeviceCall {
  std::vector<Buffer> buffers;
  Call call;
  double bytes = 0;

  DeviceCall(CudaDevice& device, const OpDescriptor& op, const Setting& setting, DType storage) {
    for (const DimInfo& dim : op.dims) call.dims.push_back(setting.dims.at(dim.name));
    for (const ParamInfo& param : op.params) {
      const auto given = setting.params.find(param.name);
      call.params.push_back(given != setting.params.end() ? given->second
                            : param.choices.empty()       ? param.typical
                                                          : param.choices[0]);
    }
    std::mt19937 random(1);
    for (const TensorInfo& info : op.tensors) {
      const Shape shape = info.shape(call.dims);
      const DType dtype = info.storage ? storage : info.dtype;
      const auto size = static_cast<std::size_t>(shape.size()), width = size_of(dtype);
      buffers.push_back(device.allocate(std::max<std::size_t>(size * width, 4)));
      std::vector<std::byte> host(size * width);
      if (info.role != Role::out) fill(info, dtype, size, host.data(), random);
      device.upload(buffers.back().address(), host.data(), host.size());
      bytes += static_cast<double>(host.size()) * (info.role == Role::inout ? 2 : 1);
      call.tensors.push_back({dtype, buffers.back().address(), shape, row_major_strides(shape)});
      if (info.name == "blocks") quantize(device, setting, call.tensors.back());
    }
  }

 private:
  /// Quantizes typical model weights, normal with deviation 0.02: random bytes would have scales of any size.
  static void quantize(CudaDevice& device, const Setting& setting, const Tensor& blocks) {
    const OpDescriptor& op = operation("q4_k_quantize");
    Call call;
    for (const DimInfo& dim : op.dims) call.dims.push_back(setting.dims.at(dim.name));
    const Shape shape = op.tensors[0].shape(call.dims);
    std::vector<float> weights(static_cast<std::size_t>(shape.size()));
    std::mt19937 random(2);
    std::normal_distribution<float> normal(0, 0.02F);
    for (float& w : weights) w = normal(random);
    const Buffer on_device = device.allocate(weights.size() * sizeof(float));
    device.upload(on_device.address(), weights.data(), weights.size() * sizeof(float));
    call.tensors = {Tensor{DType::f32, on_device.address(), shape, row_major_strides(shape)}, blocks};
    const auto kernels = kernels_of(op.name);
    const auto kernel = std::ranges::find(kernels, Backend::cuda, &Kernel::backend);
    (*kernel)->run(call, device);
    device.synchronize();
  }

  void fill(const TensorInfo& info, DType dtype, std::size_t size, std::byte* to, std::mt19937& random) const {
    std::normal_distribution<float> normal;
    std::vector<float> drawn(1 << 16);  // repeated: drawing takes longer than the timed call
    for (float& x : drawn) x = normal(random);
    for (std::size_t i = 0; i < size; ++i) {
      const float x = drawn[i * 40503 % drawn.size()];
      if (dtype == DType::f16) reinterpret_cast<Half*>(to)[i] = to_half(x);
      else if (dtype == DType::bf16) reinterpret_cast<BFloat16*>(to)[i] = to_bfloat16(x);
      else if (dtype == DType::f32)
        reinterpret_cast<float*>(to)[i] = info.name == "v" && info.role == Role::inout ? x * x : x;
      else if (dtype == DType::u8) to[i] = static_cast<std::byte>(random());
      else {
        const Index least = info.least(call.dims), most = info.most(call.dims);
        const Index chosen = info.name == "lengths" ? most
                             : info.name == "starts"
                                 ? 0
                                 : least + static_cast<Index>(random() % static_cast<std::uint64_t>(most - least + 1));
        reinterpret_cast<std::int32_t*>(to)[i] = static_cast<std::int32_t>(chosen);
      }
    }
  }
};

double median_of_rounds(CudaDevice& device, const std::function<void()>& f) {
  f();
  const float first = time_once(device, 1, f);
  const int repeats = std::clamp(static_cast<int>(5.0F / first), 1, 100);
  std::vector<float> rounds;
  for (int round = 0; round < 11; ++round) rounds.push_back(time_once(device, repeats, f));
  std::ranges::sort(rounds);
  return static_cast<double>(rounds[rounds.size() / 2]);
}

/// Returns the bytes read and written per millisecond by cudaMemcpyAsync within the device.
double copy_bandwidth(CudaDevice& device) {
  constexpr std::size_t kBytes = std::size_t{1} << 29;
  const Buffer from = device.allocate(kBytes), to = device.allocate(kBytes);
  return 2.0 * static_cast<double>(kBytes) / median_of_rounds(device, [&] {
           device.check("cudaMemcpyAsync", cudaMemcpyAsync(to.address(), from.address(), kBytes,
                                                           cudaMemcpyDeviceToDevice, device.stream()));
         });
}

std::vector<Setting> settings() {
  const double pairs = 4096.0 * 4096 * 128 * 32;
  const std::map<std::string_view, Index> heads{{"batch", 1},    {"s", 4096},   {"t", 4096},
                                                {"kv_heads", 8}, {"heads", 32}, {"d", 128}};
  return {{"rmsnorm", {{"rows", 16384}, {"n", 4096}}, {}},
          {"rmsnorm_backward", {{"rows", 16384}, {"n", 4096}}, {}},
          {"rope", {{"rows", 16384}, {"heads", 32}, {"d", 128}}, {}},
          {"rope_backward", {{"rows", 16384}, {"heads", 32}, {"d", 128}}, {}},
          {"silu_mul", {{"rows", 8192}, {"n", 8192}}, {}},
          {"silu_mul_backward", {{"rows", 8192}, {"n", 8192}}, {}},
          {"residual_add", {{"m", 16384}, {"n", 4096}}, {}},
          {"embedding", {{"t", 16384}, {"v", 16384}, {"h", 4096}}, {}},
          {"embedding_backward", {{"t", 16384}, {"v", 16384}, {"h", 4096}}, {}},
          {"softmax", {{"rows", 16384}, {"n", 4096}}, {}},
          {"softmax_backward", {{"rows", 16384}, {"n", 4096}}, {}},
          {"cross_entropy", {{"rows", 4096}, {"classes", 32000}}, {}},
          {"cross_entropy_backward", {{"rows", 4096}, {"classes", 32000}}, {}},
          {"adamw_step", {{"n", Index{1} << 26}, {"copies", 0}}, {}},
          {"attention", heads, {{"scale", 0.08838834764F}, {"causal", 0}}, 4 * pairs},
          {"attention", heads, {{"scale", 0.08838834764F}, {"causal", 1}}, 2 * pairs},
          {"attention_backward", heads, {{"scale", 0.08838834764F}, {"causal", 0}}, 10 * pairs},
          {"q4_k_gemv", {{"rows", 4096}, {"k", 14336}}, {}},
          {"q4_k_matmul_nt", {{"m", 8}, {"n", 4096}, {"rows", 4096}, {"k", 14336}}, {}, 16 * 4096.0 * 14336},
          {"q4_k_matmul_nt", {{"m", 512}, {"n", 4096}, {"rows", 4096}, {"k", 14336}}, {}, 1024 * 4096.0 * 14336},
          {"nf4_matmul_nt", {{"m", 1}, {"n", 4096}, {"k", 14336}}, {}}};
}

void run(CudaDevice& device, const std::string& only) {
  const double copy = copy_bandwidth(device);
  std::printf("{\"copy_gbytes_per_s\":%.1f}\n", copy * 1e-6);
  for (const Setting& setting : settings())
    for (const Kernel* kernel : kernels_of(setting.op)) {
      if (kernel->backend != Backend::cuda || kernel->role == KernelRole::mutant ||
          kernel->id.find(only) == std::string_view::npos)
        continue;
      const DeviceCall prepared(device, operation(setting.op), setting, kernel->storage);
      const double ms = median_of_rounds(device, [&] { kernel->run(prepared.call, device); });
      std::printf("{\"kernel\":\"%s\",", std::string(kernel->id).c_str());
      for (const auto& [name, value] : setting.params) std::printf("\"%s\":%g,", std::string(name).c_str(), value);
      std::printf("\"ms\":%.4f,", ms);
      if (setting.operations > 0) std::printf("\"tflops\":%.2f}\n", setting.operations / ms * 1e-9);
      else
        std::printf("\"gbytes_per_s\":%.1f,\"of_copy\":%.3f}\n", prepared.bytes / ms * 1e-6,
                    prepared.bytes / ms / copy);
      std::fflush(stdout);
    }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  try {
    auto& device = static_cast<assay::CudaDevice&>(assay::device(assay::Backend::cuda));
    std::printf("{\"device\":\"%s\"}\n", device.description().c_str());
    assay::bench::run(device, argc > 1 ? argv[1] : "");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "assay_cuda_ops_bench: %s\n", error.what());
    return 3;
  }
}
