// The rule of kernel leaderboards: five random inputs at one shape, all outputs within 1e-2.
// ScalingIntelligence/KernelBench, src/eval.py as published: torch.allclose with atol = rtol = 1e-2, on five trials of
// the published runs; now src/kernelbench/eval.py, get_tolerance_for_precision: 1e-4 for float32, 1e-2 for 16 bits, one
// trial by default. meta-pytorch/BackendBench, eval.py, allclose: assert_close with 1e-2, on PyTorch's sample inputs.
#include <fmt/format.h>

#include "falsify/policies/fill.hpp"
#include "falsify/policies/measures.hpp"

namespace assay::falsify::policies::leaderboard_policy {
namespace {

constexpr int kTrials = 5;
constexpr double kTolerance = 1e-2;

Rejection rejects(const Rule&, const Output& output) {
  const std::ptrdiff_t at = first_beyond(output.got, output.want, kTolerance, kTolerance, false);
  if (at < 0) return std::nullopt;
  const auto i = static_cast<std::size_t>(at);
  return fmt::format("element {} is {}, not {}", i, output.got[i], output.want[i]);
}

/// One shape an operation, round as in benchmarks: any other name of a dim has the extent below.
Index extent(const OpDescriptor& op, std::string_view dim) {
  static constexpr std::pair<std::string_view, Index> kExtents[] = {
      {"batch", 2}, {"b", 2},          {"heads", 4}, {"kv_heads", 4}, {"d", 64},    {"r", 16},        {"biases", 1},
      {"t", 128},   {"capacity", 128}, {"v", 512},   {"h", 256},      {"rows", 64}, {"classes", 256}, {"m", 128},
      {"k", 256},   {"n", 256},        {"in", 256},  {"out", 128},    {"s", 128}};
  if (op.dims.size() == 1) return 65536;  // flat vectors of parameters
  for (const auto& [name, value] : kExtents)
    if (name == dim) return value;
  return 64;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> list;
    for (const OpDescriptor* op : operations()) {
      std::vector<Sample> samples(kTrials);
      for (std::size_t trial = 0; trial < samples.size(); ++trial) {
        for (const DimInfo& dim : op->dims) samples[trial].dims.push_back(extent(*op, dim.name));
        make_valid(*op, samples[trial].dims);
        // A choice, such as a causal mask, is another problem of the board: the trials go through all values.
        for (const ParamInfo& param : op->params)
          samples[trial].params.push_back(param.choices.empty() ? param.typical
                                                                : param.choices[trial % param.choices.size()]);
      }
      list.push_back({.op = op->name, .samples = std::move(samples), .fill = normal()});
    }
    return list;
  }();
  return all;
}

const PolicyRegistration registration({
    .name = "leaderboard",
    .source = "KernelBench src/eval.py as published, BackendBench eval.py: five random inputs, rtol = atol = 1e-2",
    .rules = rules,
    .rejects = rejects,
    .before = Before::recycled,  // PyTorch's allocator
    .notes = {"leaderboard: a rule, not a set of tests: applied to every operation, gradients too, at one round shape"},
    .order = 60,
});

}  // namespace
}  // namespace assay::falsify::policies::leaderboard_policy
