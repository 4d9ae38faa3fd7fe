// Properties of the values of Q4_K super-blocks (obligations of contracts/q4_k_dequantize.yaml).
#include "q4_k_dequantize_obligations.hpp"

#include "falsify/properties/shared/elementwise.hpp"
#include "falsify/properties/shared/q4_k.hpp"

namespace assay::falsify {
namespace q4_k_dequantize {
namespace {

using q4_k::Block;
using q4_k::kSubBlock;
using q4_k::kSubBlocks;
using q4_k::kValues;

Problem with_elements(const Trial& trial) {
  std::vector<Index> dims = trial.the_case().dims;
  for (Index& d : dims) d = std::max<Index>(d, 1);
  return trial.problem(dims);
}

/// Checks that values of the altered super-block that `changed` selects match the format's definition, and that all
/// others keep their bits. `change` alters the super-block.
template <class Change, class Changed>
Outcome changes_only(Trial& trial, Index row, Index n, Problem problem, Change change, Changed changed) {
  const Run before = trial.run(problem);
  Block block = q4_k::block_of(problem.values[0], problem.dims[1], row, n);
  change(block);
  const Run after = trial.run(problem);
  std::vector<float> want = before.outputs[0];
  for (Index i = 0, p = n * kValues; i < kValues && p < problem.dims[1]; ++i, ++p)
    if (changed(i)) want[static_cast<std::size_t>(row * problem.dims[1] + p)] = block.decoded(i);
  return compare_bits("y", problem.shape(1), after.outputs[0], want, "a super-block changed in one place");
}

/// Doubles a half with an exponent of 0 to 29.
Half doubled(Half x) {
  const unsigned sign = x.bits & 0x8000U, magnitude = x.bits & 0x7fffU;
  return {static_cast<std::uint16_t>(sign | (magnitude < 0x400 ? magnitude * 2 : magnitude + 0x400))};
}

}  // namespace
}  // namespace q4_k_dequantize

void q4_k_dequantize::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  q4_k::make_blocks(problem.values[0], problem.dims[0], problem.dims[1], strategy, random);
}

Outcome q4_k_dequantize::one_code(Trial& trial) {
  Problem problem = with_elements(trial);
  Random random = trial.random("code");
  const Index row = random.between(0, problem.dims[0] - 1), p = random.between(0, problem.dims[1] - 1), i = p % kValues;
  return changes_only(
      trial, row, p / kValues, problem, [i](Block& block) { block.set_code(i, (block.code(i) + 1) % 16); },
      [i](Index other) { return other == i; });
}

Outcome q4_k_dequantize::one_sub_block(Trial& trial) {
  Problem problem = with_elements(trial);
  Random random = trial.random("sub-block");
  const Index row = random.between(0, problem.dims[0] - 1), p = random.between(0, problem.dims[1] - 1);
  const Index b = p % kValues / kSubBlock;
  const auto draw = [&] { return static_cast<unsigned>(random.below(64)); };
  const q4_k::Scale scale{draw(), draw()};
  return changes_only(
      trial, row, p / kValues, problem, [&](Block& block) { block.set_scale(b, scale); },
      [b](Index other) { return other / kSubBlock == b; });
}

Outcome q4_k_dequantize::doubling(Trial& trial) {
  Problem problem = with_elements(trial);
  const Index rows = problem.dims[0], k = problem.dims[1];
  Random random = trial.random("doubling");
  const bool subnormal = random.chance(0.5);
  const auto small = [&](Half x) {
    return Half{static_cast<std::uint16_t>(x.bits & (subnormal                      ? 0x83ffU
                                                     : (x.bits & 0x7c00U) > 0x7400U ? 0xf7ffU
                                                                                    : 0xffffU))};
  };
  q4_k::for_each_block(problem.values[0], rows, k, [&](Block block, Index, Index) {
    block.set_d(small(block.d()));
    block.set_dmin(small(block.dmin()));
  });
  std::vector<float> want = trial.run(problem).outputs[0];
  for (float& y : want) y *= 2;
  q4_k::for_each_block(problem.values[0], rows, k, [&](Block block, Index, Index) {
    block.set_d(doubled(block.d()));
    block.set_dmin(doubled(block.dmin()));
  });
  const Run run = trial.run(problem);
  return compare_bits("y", problem.shape(1), run.outputs[0], want, "twice d and dmin, against twice the values");
}

Outcome q4_k_dequantize::padding(Trial& trial) {
  Random random = trial.random("padding");
  Problem problem = trial.problem(q4_k::ragged(trial, random));
  if (!q4_k::has_padding(problem)) return q4_k::no_padding();
  const Run before = trial.run(problem);
  q4_k::scramble_padding(problem.values[0], problem.dims[0], problem.dims[1], random);
  const Run after = trial.run(problem);
  Outcome outcome = trial.against_oracle(Tier::bits, problem, after);
  outcome &= compare_bits("y", problem.shape(1), after.outputs[0], before.outputs[0], "another padding");
  return outcome;
}

Outcome q4_k_dequantize::batch_invariance(Trial& trial) { return independent_of_batch(trial); }

audit::Subject q4_k_dequantize::audited() { return {.no_sums = "its inputs are packed bits", .dims = {4, 256}}; }

}  // namespace assay::falsify
