// Properties of Q4_K super-blocks of values (obligations of contracts/q4_k_quantize.yaml).
#include "q4_k_quantize_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "contract/certificates/q4_k_quantize.hpp"
#include "falsify/properties/shared/elementwise.hpp"
#include "falsify/properties/shared/q4_k.hpp"

namespace assay::falsify {
namespace q4_k_quantize {
namespace {

using q4_k::Block;
using q4_k::kSubBlock;
using q4_k::kSubBlocks;
using q4_k::kValues;

std::vector<Index> dims_with_elements(const Trial& trial) {
  std::vector<Index> dims = trial.the_case().dims;
  for (Index& d : dims) d = std::max<Index>(d, 1);
  return dims;
}

Outcome compare_blocks(const Problem& problem, const Run& run, const std::vector<float>& want,
                       std::string_view meaning) {
  return compare_bits("blocks", problem.shape(1), run.outputs[0], want, meaning);
}

/// Makes values of a sub-block at an encoder's decisions: one sign only, all equal, a range just reached or just
/// missed, ties between codes, the ends of binary16.
void make_edges(float* x, Index count, Random& random) {
  const float unit = std::ldexp(1.0F, static_cast<int>(random.between(-30, 12)));
  const auto kind = random.below(7);
  const float constant = static_cast<float>(random.either_sign(random.uniform())) * unit;
  for (Index i = 0; i < count; ++i) {
    const auto step = static_cast<float>(random.between(0, 30));
    switch (kind) {
      case 0: x[i] = static_cast<float>(random.uniform()) * unit; break;
      case 1: x[i] = -static_cast<float>(1 + random.uniform()) * unit; break;
      case 2: x[i] = constant; break;
      case 3: x[i] = step / 2 * unit; break;                                               // ties, from 0 to 15
      case 4: x[i] = (step / 2 - static_cast<float>(random.between(0, 7))) * unit; break;  // the same, below 0 too
      case 5: x[i] = std::nextafter(step * 31.5F * unit, static_cast<float>(random.sign() * INFINITY)); break;
      default: x[i] = random.chance(0.5) ? 0.0F : std::ldexp(1.0F, static_cast<int>(random.between(-140, -20))); break;
    }
  }
}

}  // namespace
}  // namespace q4_k_quantize

void q4_k_quantize::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy == Strategy::huge)  // across the overflow limit of halves
    for (float& x : problem.values[0]) x = std::ldexp(x, -101);
  if (strategy != Strategy::directed) return;
  const Index k = problem.dims[1];
  for (Index row = 0; row < problem.dims[0]; ++row)
    for (Index first = 0; first < k;) {
      const Index end = std::min(k, first / kValues * kValues + (first % kValues / kSubBlock + 1) * kSubBlock);
      make_edges(problem.values[0].data() + row * k + first, end - first, random);
      first = end;
    }
}

Outcome q4_k_quantize::round_trip(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  const std::vector<std::uint8_t> bytes(run.outputs[0].begin(), run.outputs[0].end());
  const contract::Certified certified = contract::q4_k_round_trip(
      {problem.values[0].data(), problem.shape(0)}, View<const std::uint8_t>(bytes.data(), problem.shape(1)));
  if (!certified.holds) return Outcome::falsify({Finding::Kind::value, certified.values, "blocks", {}, 0, 0, 0});
  Outcome outcome;
  for (const float x : run.outputs[0]) ++outcome.elements, outcome.nonzero += x != 0;
  return outcome;
}

/// Makes d and dmin with one exponent, so that every value and every sum with a minimum is exact.
Outcome q4_k_quantize::stable(Trial& trial) {
  std::vector<Index> dims = dims_with_elements(trial);
  dims[1] = q4_k::blocks_of(dims[1]) * kValues;
  Problem problem = trial.problem(dims);
  if (q4_k::has_padding(problem)) return q4_k::no_whole_blocks();
  Random random = trial.random("stable");
  std::vector<float> blocks(static_cast<std::size_t>(problem.shape(1).size()));
  for (float& byte : blocks) byte = static_cast<float>(random.below(256));
  q4_k::for_each_block(blocks, problem.dims[0], problem.dims[1], [&](Block block, Index, Index) {
    const auto exponent = static_cast<unsigned>(random.between(1, 30)) << 10U;
    block.set_d({static_cast<std::uint16_t>(exponent | random.below(1024))});
    block.set_dmin({static_cast<std::uint16_t>(exponent | random.below(1024))});
    const Index largest = random.between(0, kSubBlocks - 1), deepest = random.between(0, kSubBlocks - 1);
    for (Index b = 0; b < kSubBlocks; ++b) {
      block.set_scale(b, {b == largest ? 63 : static_cast<unsigned>(random.between(1, 63)),
                          b == deepest ? 63 : static_cast<unsigned>(random.between(0, 63))});
      const Index zero = random.between(0, kSubBlock - 1);
      block.set_code(b * kSubBlock + zero, 0);
      block.set_code(b * kSubBlock + (zero + random.between(1, kSubBlock - 1)) % kSubBlock, 15);
    }
  });
  problem.values[0] = q4_k::values_of(blocks, problem.dims[0], problem.dims[1]);
  return compare_blocks(problem, trial.run(problem), blocks, "super-blocks of the values of super-blocks");
}

Outcome q4_k_quantize::doubling(Trial& trial) {
  Problem problem = trial.problem(dims_with_elements(trial));
  const Index rows = problem.dims[0], k = problem.dims[1];
  std::vector<float> want = trial.run(problem).outputs[0];
  std::vector<float> twice = problem.values[0];
  for (float& x : twice) x *= 2;
  problem.values[0].swap(twice);
  const Run run = trial.run(problem);
  std::vector<float> got = run.outputs[0];
  q4_k::for_each_block(want, rows, k, [&](Block block, Index row, Index n) {
    const auto from = problem.values[0].begin() + row * k + n * kValues, to = from + std::min(kValues, k - n * kValues);
    // Skip the smallest normal half, which may be a rounded-up subnormal.
    const auto normal = [](Half h) { return h.bits == 0 || (h.bits > 0x400 && h.bits < 0x7800); };
    const bool subnormal = std::any_of(from, to, [](float x) { return x != 0 && std::fabs(x) < 0x1p-124F; });
    if (subnormal || !normal(block.d()) || !normal(block.dmin())) {  // these are not doubled exactly
      const auto at = (row * q4_k::blocks_of(k) + n) * q4_k::kBytes;
      std::copy_n(got.begin() + at, q4_k::kBytes, want.begin() + at);
      return;
    }
    const auto doubled = [](Half h) { return Half{static_cast<std::uint16_t>(h.bits == 0 ? 0 : h.bits + 0x400)}; };
    block.set_d(doubled(block.d()));
    block.set_dmin(doubled(block.dmin()));
  });
  return compare_blocks(problem, run, want, "twice x, against twice d and dmin");
}

Outcome q4_k_quantize::reversal(Trial& trial) {
  std::vector<Index> dims = dims_with_elements(trial);
  dims[1] = q4_k::blocks_of(dims[1]) * kValues;  // no padding, which copies the last value
  Problem problem = trial.problem(dims);
  if (q4_k::has_padding(problem)) return q4_k::no_whole_blocks();
  const Index rows = problem.dims[0], k = problem.dims[1];
  std::vector<float> want = trial.run(problem).outputs[0];
  const auto each_sub_block = [&](auto f) {
    for (Index row = 0; row < rows; ++row)
      for (Index first = 0; first < k; first += kSubBlock) f(row, first);
  };
  each_sub_block([&](Index row, Index first) {
    const auto begin = problem.values[0].begin() + row * k + first;
    std::reverse(begin, begin + kSubBlock);
    Block block = q4_k::block_of(want, k, row, first / kValues);
    for (Index i = 0; i < kSubBlock / 2; ++i) {
      const Index a = first % kValues + i, b = first % kValues + kSubBlock - 1 - i;
      const unsigned code = block.code(a);
      block.set_code(a, block.code(b));
      block.set_code(b, code);
    }
  });
  return compare_blocks(problem, trial.run(problem), want, "sub-blocks turned round");
}

Outcome q4_k_quantize::padding(Trial& trial) {
  Random random = trial.random("padding");
  Problem problem = trial.problem(q4_k::ragged(trial, random));
  if (!q4_k::has_padding(problem)) return q4_k::no_padding();
  const Run run = trial.run(problem);
  const Index rows = problem.dims[0], k = problem.dims[1], whole = q4_k::blocks_of(k) * kValues;
  std::vector<float> prolonged;
  for (Index row = 0; row < rows; ++row)
    for (Index p = 0; p < whole; ++p)
      prolonged.push_back(problem.values[0][static_cast<std::size_t>(row * k + std::min(p, k - 1))]);
  problem.dims[1] = whole;
  problem.values[0].swap(prolonged);
  return compare_blocks(problem, trial.run(problem), run.outputs[0], "ragged rows prolonged by their last value");
}

Outcome q4_k_quantize::batch_invariance(Trial& trial) { return independent_of_batch(trial, Sizes::drawn); }

audit::Subject q4_k_quantize::audited() { return {.no_sums = "its results are packed bits", .dims = {4, 256}}; }

}  // namespace assay::falsify
