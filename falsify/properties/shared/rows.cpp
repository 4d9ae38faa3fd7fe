#include "falsify/properties/shared/rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/half.hpp"

namespace assay::falsify {
namespace {

const TensorInfo& info(const Trial& trial, int tensor) { return trial.op().tensors[static_cast<std::size_t>(tensor)]; }

bool has_rows(const Trial& trial, int tensor) {
  const std::string_view text = info(trial, tensor).shape_text, rows = trial.op().dims[0].name;
  return text.substr(1).starts_with(rows) && text.substr(1 + rows.size()).find_first_of(",]") == 0;
}

bool ends_with_dim(const Trial& trial, int tensor, std::string_view dim) {
  std::string_view text = info(trial, tensor).shape_text;
  text.remove_suffix(1);
  return text.ends_with(dim) &&
         (text[text.size() - dim.size() - 1] == ' ' || text[text.size() - dim.size() - 1] == '[');
}

std::span<const float> part(const std::vector<float>& values, Index rows, Index from, Index to) {
  const auto width = rows > 0 ? values.size() / static_cast<std::size_t>(rows) : 0;
  return std::span(values).subspan(static_cast<std::size_t>(from) * width, static_cast<std::size_t>(to - from) * width);
}

}  // namespace

Outcome rows_are_independent(Trial& trial) {
  const Problem whole = trial.problem();
  const Index rows = whole.dims[0];
  Random random = trial.random("rows");
  const Index from = random.between(0, rows), to = random.between(from, rows);
  Problem block = whole;
  block.dims[0] = to - from;
  for (int t : inputs_of(trial.op())) {
    if (!has_rows(trial, t)) continue;
    const auto rows_of = part(whole.values[static_cast<std::size_t>(t)], rows, from, to);
    block.values[static_cast<std::size_t>(t)].assign(rows_of.begin(), rows_of.end());
  }
  const Run all = trial.run(whole), alone = trial.run(block);
  const std::vector<int> outputs = outputs_of(trial.op());
  Outcome outcome;
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (has_rows(trial, outputs[o]))
      outcome &=
          compare_bits(info(trial, outputs[o]).name, block.shape(outputs[o]), alone.outputs[o],
                       part(all.outputs[o], rows, from, to), "rows in a call of their own, against those of all");
  return trial.related(std::move(outcome), Related::by_batch, {{whole, all}, {block, alone}});
}

Outcome columns_permute(Trial& trial, std::string_view dim) {
  const Problem plain = trial.problem();
  const auto d =
      static_cast<std::size_t>(std::ranges::find(trial.op().dims, dim, &DimInfo::name) - trial.op().dims.begin());
  std::vector<std::size_t> to(static_cast<std::size_t>(plain.dims[d]));
  std::iota(to.begin(), to.end(), std::size_t{0});
  Random random = trial.random("permutation");
  for (std::size_t i = to.size(); i > 1; --i) std::swap(to[i - 1], to[random.below(i)]);
  const auto permuted = [&](const std::vector<float>& values) {
    std::vector<float> moved(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) moved[i / to.size() * to.size() + to[i % to.size()]] = values[i];
    return moved;
  };
  Problem other = plain;
  for (int t : inputs_of(trial.op()))
    if (ends_with_dim(trial, t, dim))
      other.values[static_cast<std::size_t>(t)] = permuted(plain.values[static_cast<std::size_t>(t)]);
  const Run run = trial.run(plain), moved = trial.run(other);
  const auto want = trial.oracle(other);
  const std::vector<int> outputs = outputs_of(trial.op());
  Outcome outcome;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const std::vector<float>& own = run.outputs[o];
    outcome &= same_within(info(trial, outputs[o]).name, plain.shape(outputs[o]), widened(moved.outputs[o]),
                           widened(ends_with_dim(trial, outputs[o], dim) ? permuted(own) : own), want[o]);
  }
  return outcome;
}

Outcome same_within(std::string_view tensor, const Shape& shape, std::vector<double> got, std::vector<double> expected,
                    const std::vector<Bounded>& want) {
  std::vector<double> bounds = bounds_of(want);
  // Equal nonfinite results, and results whose class depends on rounding, have no difference to bound.
  for (std::size_t i = 0; i < got.size(); ++i) {
    bounds[i] *= 2;
    const bool same = got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]));
    if (same || std::isinf(bounds[i])) got[i] = expected[i] = std::isfinite(expected[i]) ? expected[i] : 0;
  }
  return compare_within(tensor, shape, got, expected, bounds);
}

bool scales_exactly(const Problem& problem, int tensor, int exponent) {
  const DType dtype = problem.dtype(tensor);
  return std::ranges::all_of(problem.values[static_cast<std::size_t>(tensor)], [&](float x) {
    const float scaled = std::ldexp(x, exponent);
    return std::isfinite(scaled) && stored(dtype, scaled) == scaled && std::ldexp(scaled, -exponent) == x;
  });
}

Outcome scales_by_powers(Trial& trial, const Problem& plain, const Scaling& scaling,
                         std::vector<double> scaled_params) {
  Problem scaled = plain;
  scaled.params = std::move(scaled_params);
  for (float& x : scaled.values[static_cast<std::size_t>(scaling.tensor)]) x = std::ldexp(x, scaling.exponent);
  return trial.scales(plain, scaled, scaling.exponents);
}

}  // namespace assay::falsify
