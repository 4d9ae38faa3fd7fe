// Compares the CUDA kernels with cuBLAS in the same storage format on this machine's device, timed with CUDA events:
// one JSON line per kernel and shape.
// Exit code 1 if a bar is missed: float32 at least 0.7x cuBLAS at 4096³, TF32 at least 0.2x cuBLAS with TF32.
//
//     assay_cuda_bench [kernel id or part of one]
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "kernels/storage.hpp"
#include "runtime/cuda/cuda_device.hpp"
#include "runtime/registry.hpp"
#include "tests/bench/cuda_timing.hpp"

namespace assay::bench {
namespace {

constexpr int kRounds = 21;

struct Contender {
  const Kernel* kernel;
  std::vector<float> milliseconds{};
  double median() const {
    std::vector<float> sorted = milliseconds;
    std::ranges::sort(sorted);
    return static_cast<double>(sorted[sorted.size() / 2]);
  }
};

/// A call on device memory, filled with normal numbers.
struct DeviceCall {
  std::vector<Buffer> buffers;
  Call call;

  /// The last tensor is of `out`, the others of `storage`.
  DeviceCall(CudaDevice& device, std::vector<Index> dims, const std::vector<Shape>& shapes, DType storage = DType::f32,
             DType out = DType::f32) {
    call.dims = std::move(dims);
    for (std::size_t t = 0; t < shapes.size(); ++t)
      with_storage(t + 1 < shapes.size() ? storage : out, [&]<class S>(S) { add<S>(device, shapes[t]); });
  }

 private:
  template <class S>
  void add(CudaDevice& device, const Shape& shape) {
    std::vector<S> values(static_cast<std::size_t>(shape.size()));
    for (S& v : values) v = narrow<S>(normal_(random_));
    buffers.push_back(device.allocate(values.size() * sizeof(S)));
    device.upload(buffers.back().address(), values.data(), values.size() * sizeof(S));
    call.tensors.push_back({dtype_of<S>, buffers.back().address(), shape, row_major_strides(shape)});
  }

  std::mt19937 random_{1};
  std::normal_distribution<float> normal_;
};

double required(const Kernel& kernel, const std::vector<Index>& dims) {
  if (std::ranges::count(dims, 4096) != 3) return 0;
  if (kernel.id.ends_with("/register_tiled")) return 0.7;
  return kernel.id.ends_with("/tf32_wmma") ? 0.2 : 0;
}

/// Times all kernels of `op` on tensors of the call's format in turn, round by round, so that clocks and other load
/// affect all alike. `work`: operations or bytes of one call, printed per nanosecond as `unit`. Returns false if a bar
/// is missed.
bool compare(CudaDevice& device, const std::string& op, const std::string& only, const DeviceCall& prepared,
             double work, const char* unit) {
  std::vector<Contender> contenders;
  for (const Kernel* k : kernels_of(op))
    if (k->backend == Backend::cuda && k->storage == prepared.call.tensors[0].dtype &&
        (k->role == KernelRole::peer || k->id.find(only) != std::string_view::npos) && !refuses(*k, prepared.call))
      contenders.push_back({k});
  const Call& call = prepared.call;
  for (int round = -2; round < kRounds; ++round)
    for (Contender& c : contenders) {
      const int repeats = round < 0 ? 1 : std::clamp(static_cast<int>(2.0 / c.milliseconds[0]), 1, 200);
      const float ms = time_once(device, repeats, [&] { c.kernel->run(call, device); });
      if (round == -1) c.milliseconds = {ms};  // determines the number of repeats only
      if (round == 0) c.milliseconds.clear();
      if (round >= 0) c.milliseconds.push_back(ms);
    }
  bool met = true;
  for (const Contender& c : contenders) {
    const bool tf32 = c.kernel->arithmetic.inputs == Format::tf32;
    const auto peer = std::ranges::find_if(contenders, [&](const Contender& p) {
      return p.kernel->role == KernelRole::peer && (p.kernel->arithmetic.inputs == Format::tf32) == tf32;
    });
    std::printf("{\"kernel\":\"%s\",\"dims\":[", std::string(c.kernel->id).c_str());
    for (std::size_t d = 0; d < call.dims.size(); ++d)
      std::printf(d ? ",%lld" : "%lld", static_cast<long long>(call.dims[d]));
    std::printf("],\"ms\":%.5f,\"%s\":%.2f", c.median(), unit, work / c.median() * 1e-6);
    if (peer != contenders.end() && c.kernel->role != KernelRole::peer) {
      const double ratio = peer->median() / c.median(), bar = required(*c.kernel, call.dims);
      std::printf(",\"ratio\":%.3f", ratio);
      if (bar > 0) std::printf(",\"required\":%.2f", bar);
      met = met && ratio >= bar;
    }
    std::printf("}\n");
  }
  std::fflush(stdout);
  return met;
}

bool run(CudaDevice& device, const std::string& only) {
  bool met = true;
  for (const DType storage : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::string op : {"matmul", "matmul_nt", "matmul_tn"}) {
      const Index shapes[][3] = {{256, 256, 256},    {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096},
                                 {4095, 4095, 4095}, {8192, 8192, 8192}, {1, 4096, 4096},    {4, 4096, 4096},
                                 {16, 4096, 4096},   {16, 4096, 14336},  {4096, 64, 4096}};
      for (const auto& [m, k, n] : shapes) {
        const DeviceCall call(
            device, {m, k, n},
            {op == "matmul_tn" ? Shape{k, m} : Shape{m, k}, op == "matmul_nt" ? Shape{n, k} : Shape{k, n}, Shape{m, n}},
            storage, op == "matmul_tn" ? DType::f32 : storage);
        met &= compare(device, op, only, call,
                       2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n), "gflops");
      }
    }
  }
  for (const auto& [m, k] : {std::pair<Index, Index>{4096, 4096}, {16384, 16384}, {128, 16384}, {16384, 128}}) {
    const double elements = static_cast<double>(m) * static_cast<double>(k), matrix = elements * sizeof(float);
    for (const DType storage : {DType::f32, DType::f16, DType::bf16})
      compare(device, "gemv", only, DeviceCall(device, {m, k}, {Shape{m, k}, Shape{k}, Shape{m}}, storage, storage),
              elements * static_cast<double>(size_of(storage)), "gbytes_per_s");
    compare(device, "transpose", only, DeviceCall(device, {m, k}, {Shape{m, k}, Shape{k, m}}), 2 * matrix,
            "gbytes_per_s");
    compare(device, "tensor_layout", only, DeviceCall(device, {m, k}, {Shape{m, k}, Shape{m, k}}), 2 * matrix,
            "gbytes_per_s");
  }
  return met;
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  try {
    auto& device = static_cast<assay::CudaDevice&>(assay::device(assay::Backend::cuda));
    std::printf("{\"device\":\"%s\"}\n", device.description().c_str());
    return assay::bench::run(device, argc > 1 ? argv[1] : "") ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "assay_cuda_bench: %s\n", error.what());
    return 3;
  }
}
