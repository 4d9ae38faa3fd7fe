// CPU kernels of products and attention in every format: one JSON line a kernel and shape, the median of nine calls.
// tests/bench/cpu_speed.py runs this beside PyTorch.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/registry.hpp"
#include "tests/bench/host_call.hpp"

namespace assay::bench {
namespace {

double median_seconds(const Kernel& kernel, const Call& call) {
  std::vector<double> seconds;
  for (int run = 0; run < 11; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    kernel.run(call, device(Backend::cpu));
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(seconds.begin() + 2, seconds.begin() + 6, seconds.end());  // the first two warm up
  return seconds[6];
}

void time_all(const std::string& op, const Dims& dims, double operations) {
  std::string shape;
  for (const auto& [name, extent] : dims) shape += std::string(name) + "=" + std::to_string(extent) + " ";
  for (const Kernel& kernel : kernels()) {
    if (kernel.op != op || kernel.backend != Backend::cpu || kernel.role != KernelRole::kernel) continue;
    if (kernel.id.find("/naive") != std::string_view::npos) continue;
    const HostCall call(operation(op), dims, kernel.storage);
    const double seconds = median_seconds(kernel, call.call);
    std::printf(
        "{\"kernel\": \"%s\", \"op\": \"%s\", \"storage\": \"%s\", \"shape\": \"%s\", \"ms\": %.4f, \"gflops\": %.1f}\n",
        std::string(kernel.id).c_str(), op.c_str(), std::string(name(kernel.storage)).c_str(), shape.c_str(),
        seconds * 1e3, operations / seconds * 1e-9);
    std::fflush(stdout);
  }
}

void run() {
  for (const Index n : {512, 1024, 2048})
    for (const char* op : {"matmul", "matmul_nt", "matmul_tn"})
      time_all(op, {{"m", n}, {"k", n}, {"n", n}}, 2.0 * static_cast<double>(n * n * n));
  const Dims heads{{"batch", 1}, {"s", 1024}, {"t", 1024}, {"heads", 8}, {"kv_heads", 8}, {"d", 64}};
  const double product = 2.0 * 8 * 1024 * 1024 * 64;
  time_all("attention", heads, 2 * product);
  time_all("attention_backward", heads, 5 * product);
}

}  // namespace
}  // namespace assay::bench

int main() { assay::bench::run(); }
