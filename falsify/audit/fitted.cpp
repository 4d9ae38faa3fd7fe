#include "falsify/audit/fitted.hpp"

#include <chrono>
#include <cmath>

#include "falsify/audit/prober.hpp"
#include "falsify/engine/case.hpp"
#include "falsify/engine/comparator.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify::audit {
namespace {

/// Limit on terms: measuring an order takes a call for every two terms.
constexpr Index kMaxTerms = 512;

Index stride_of(const Shape& shape, int axis) {
  Index stride = 1;
  for (int inner = axis + 1; inner < shape.rank(); ++inner) stride *= shape[inner];
  return stride;
}

/// Extent of the axis along which a tensor's terms lie, at the sum's own dims and at others.
struct Extents {
  Index before = 1, after = 1;
  bool operator==(const Extents&) const = default;
};

/// Moves a place to the same index at other dims; the end of an axis stays its end. Returns empty if the terms lie
/// along no axis of the tensor, or if the index does not exist at the other dims.
std::optional<Extents> move(StridedFactor& place, Index count, const OpDescriptor& op, const std::vector<Index>& from,
                            const std::vector<Index>& to) {
  const TensorInfo& tensor = op.tensors[static_cast<std::size_t>(place.tensor)];
  const Shape before = tensor.shape(from), after = tensor.shape(to);
  const Shape at = index_of(before, static_cast<std::size_t>(place.first));
  place.first = 0;
  for (int axis = 0; axis < after.rank(); ++axis) {
    const bool end = at[axis] > 0 && at[axis] == before[axis] - 1;
    if (!end && at[axis] >= after[axis]) return std::nullopt;
    place.first += stride_of(after, axis) * (end ? after[axis] - 1 : at[axis]);
  }
  if (count == 1) return Extents{};
  std::optional<int> along;
  for (int axis = 0; axis < before.rank(); ++axis)
    if (stride_of(before, axis) == place.step && before[axis] >= count && (!along || before[axis] < before[*along]))
      along = axis;
  if (!along) return std::nullopt;
  place.step = stride_of(after, *along);
  return Extents{before[*along], after[*along]};
}

/// True if the contract admits the inputs and the oracle's result is a power of two times the sum of the terms; this
/// power becomes the sum's scale. For squares and exponentials, the result must change with the last term.
bool is_shown(const OpDescriptor& op, const Kernel& kernel, Sum& sum) {
  Worker idle(std::chrono::seconds(1), std::size_t{1} << 20);  // runs nothing
  bool admitted = true;
  Prober probe(op, kernel, sum, [&, oracle = oracle_runner(op, kernel, idle)](const Problem& problem) {
    for (const int t : inputs_of(op))
      if (const TensorInfo& info = op.tensors[static_cast<std::size_t>(t)]; info.dtype == DType::i32)
        for (const float x : problem.values[static_cast<std::size_t>(t)])
          admitted = admitted && admits_integer(info, problem.dims, x);
    if (admitted) return oracle(problem);
    Run zeros;
    for (const int t : outputs_of(op))
      zeros.outputs.emplace_back(static_cast<std::size_t>(problem.shape(t).size()), 0.0F);
    return zeros;
  });
  const Index last = sum.count - 1;
  constexpr float kUnit = 1024;  // a power of two: the oracle sums these exactly
  if (sum.terms != Terms::products && sum.terms != Terms::values)
    return (sum.count == 1 || probe.shown({{0, 1}}) != probe.shown({{0, 1}, {last, 0.5F}})) && admitted;
  sum.scale = 1;
  const double scale = probe({{0, kUnit}}) / kUnit;
  const bool cancels = sum.count == 1 || probe({{0, kUnit}, {last, -kUnit}}) == 0;
  sum.scale = scale;
  int exponent = 0;
  return admitted && cancels && std::abs(std::frexp(scale, &exponent)) == 0.5;
}

}  // namespace

std::vector<Index> admitted_dims(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims) {
  if (kernel.limits == nullptr || !kernel.limits->refuse) return dims;
  std::vector<double> params;
  for (const ParamInfo& param : op.params) params.push_back(param.typical);
  if (!kernel.limits->refuse(dims, params)) return dims;
  std::vector<Index> others = dims;
  if (!kernel.limits->repair || !kernel.limits->repair(others, params, 1) || !valid(op, others)) return {};
  return others;
}

std::optional<Sum> fitted(const OpDescriptor& op, const Kernel& kernel, const Sum& sum) {
  Sum moved = sum;
  moved.dims = admitted_dims(op, kernel, sum.dims);
  if (moved.dims.empty()) return std::nullopt;
  if (moved.dims == sum.dims) return sum;
  const auto moves = [&](StridedFactor& place, Index count) { return move(place, count, op, sum.dims, moved.dims); };
  const Index along = sum.second.tensor >= 0 ? 1 : sum.count;  // with two tensors, one element of each
  const std::optional<Extents> terms = moves(moved.left, along);
  if (!terms || !moves(moved.result, 1)) return std::nullopt;
  if (sum.right.tensor >= 0 && moves(moved.right, along) != terms) return std::nullopt;
  if (sum.second.tensor >= 0 && !moves(moved.second, 1)) return std::nullopt;
  moved.count = sum.count + terms->after - terms->before;
  // an omitted exponential is not zero
  if (moved.count > kMaxTerms && sum.terms == Terms::exponentials) return std::nullopt;
  moved.count = std::min(moved.count, kMaxTerms);
  if (moved.count < std::min<Index>(sum.count, 2)) return std::nullopt;
  return is_shown(op, kernel, moved) ? std::optional(moved) : std::nullopt;
}

}  // namespace assay::falsify::audit
