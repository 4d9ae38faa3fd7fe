// Times decoder layers as programs, forward and backward, on one device: the whole run by the device's clock, the sum
// of its steps run alone, and the plan's memory. One JSON line a layer; tests/bench/torch_layer.py times PyTorch.
//
//     assay_program_bench [cpu|vulkan|cuda] [rows]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "falsify/program/block.hpp"
#include "runtime/device.hpp"

namespace {

using assay::program::Projection;
using assay::Index;
using namespace assay::falsify;

struct Shape {
  const char* name;
  Index hidden, intermediate, heads, kv_heads, head_dim;
  bool qkv_bias;
};
/// Layers of Qwen2-0.5B and Llama-3-8B.
constexpr Shape kShapes[] = {{"H 896", 896, 4864, 14, 2, 64, true}, {"H 4096", 4096, 14336, 32, 8, 128, false}};
constexpr int kRuns = 11;

double median(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

void time(const Shape& shape, Index rows, assay::Device& device) {
  BlockCase c;
  c.name = shape.name, c.s = c.length = rows;
  c.config.hidden = shape.hidden, c.config.intermediate = shape.intermediate;
  c.config.heads = shape.heads, c.config.kv_heads = shape.kv_heads, c.config.head_dim = shape.head_dim;
  if (shape.qkv_bias) c.config.biases = {Projection::q, Projection::k, Projection::v};
  const assay::program::Differentiated differentiated = Block(c).differentiated();
  assay::program::Session session(differentiated.program, device);
  set_all(session, c);
  std::vector<double> runs, sums;
  std::map<std::string, double> kernels;
  session.run();
  for (int i = 0; i < kRuns; ++i) session.run(), runs.push_back(session.seconds());
  for (int i = 0; i < kRuns; ++i) {
    double sum = 0;
    const std::vector<double> steps = session.step_seconds();
    for (std::size_t s = 0; s < steps.size(); ++s) {
      sum += steps[s];
      kernels[std::string(session.kernel(s).id)] += steps[s] / kRuns;
    }
    sums.push_back(sum);
  }
  std::vector<std::pair<double, std::string>> slowest;
  for (const auto& [kernel, seconds] : kernels) slowest.emplace_back(seconds, kernel);
  std::ranges::sort(slowest, std::greater{});
  std::string held;
  for (std::size_t k = 0; k < std::min<std::size_t>(4, slowest.size()); ++k)
    held += fmt::format("{}\"{}\": {:.3f}", k ? ", " : "", slowest[k].second, slowest[k].first * 1e3);
  fmt::print(
      "{{\"layer\": \"{}\", \"rows\": {}, \"ms\": {:.3f}, \"ms_of_steps\": {:.3f}, \"over\": {:.4f}, "
      "\"steps\": {}, \"plan_mib\": {:.1f}, \"slowest_ms\": {{{}}}}}\n",
      shape.name, rows, median(runs) * 1e3, median(sums) * 1e3, median(runs) / median(sums) - 1,
      differentiated.program.steps.size(), static_cast<double>(session.plan().bytes) / (1 << 20), held);
}

}  // namespace

int main(int argc, char** argv) try {
  const auto backend = assay::backend_from(argc > 1 ? argv[1] : "cpu");
  const Index rows = argc > 2 ? std::atoll(argv[2]) : 1024;
  for (const Shape& shape : kShapes) time(shape, rows, assay::device(backend));
} catch (const std::exception& e) {
  fmt::print(stderr, "program_bench: {}\n", e.what());
  return 2;
}
