#include "plugin/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::plugin {
namespace {

/// Rounds over all conditions: conditions that share a dim may undo each other's repairs.
constexpr int kRounds = 24;
/// Search distance around a dim's value. Farther values are only tried at the numbers of the condition.
constexpr Index kNear = 1024;
/// Extents at which kernels often break. A condition moves half of the dims to one of them; otherwise most dims would
/// be exactly at its limit.
constexpr Index kUsual[] = {1,  2,  3,  5,   8,   15,  16,  17,  31,  32,  33,  48,  63,
                            64, 65, 96, 100, 127, 128, 129, 192, 256, 257, 320, 512, 1024};

/// SplitMix64.
struct Sequence {
  std::uint64_t state;
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % n;
  }
};

Index step_of(const OpDescriptor& op, std::size_t dim, const std::vector<Index>& dims) {
  const DimInfo& info = op.dims[dim];
  return info.multiple_of < 0 ? std::max<Index>(1, info.multiple)
                              : std::max<Index>(1, dims[static_cast<std::size_t>(info.multiple_of)]);
}

/// Rounds each dim to the nearest value that the contract admits.
void make_admissible(const OpDescriptor& op, std::vector<Index>& dims) {
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const Index step = step_of(op, d, dims), least = (op.dims[d].min + step - 1) / step * step;
    dims[d] = std::clamp(dims[d] / step * step, least, std::max(least, op.dims[d].max / step * step));
  }
}

bool admits_dim(const OpDescriptor& op, std::size_t d, const std::vector<Index>& dims, double value) {
  const DimInfo& info = op.dims[d];
  return value == std::floor(value) && value >= static_cast<double>(info.min) &&
         value <= static_cast<double>(info.max) && static_cast<Index>(value) % step_of(op, d, dims) == 0;
}

bool admits_param(const ParamInfo& info, double value) {
  if (!info.choices.empty()) return std::ranges::find(info.choices, value) != info.choices.end();
  return value >= info.min && value <= info.max && (!info.integer || value == std::floor(value));
}

/// Returns values for a dim in order of preference.
std::vector<double> values_for_dim(const Condition& condition, const Scope& scope, Index now, Sequence& random) {
  std::vector<double> listed, far;
  for (const Expression& number : condition.numbers)
    for (const double beside : {0.0, 1.0, -1.0})
      (condition.lists && beside == 0 ? listed : far).push_back(number.value(scope) + beside);
  if (!listed.empty())
    std::ranges::rotate(listed, listed.begin() + static_cast<std::ptrdiff_t>(random.below(listed.size())));
  if (!condition.lists && random.below(2) == 0) {
    listed.assign(std::begin(kUsual), std::end(kUsual));
    for (std::size_t i = listed.size(); i > 1; --i) std::swap(listed[i - 1], listed[random.below(i)]);
  }
  if (!condition.lists)
    for (Index away = 1; away <= kNear; ++away)
      for (const Index sign : {-1, 1}) listed.push_back(static_cast<double>(now + sign * away));
  listed.insert(listed.end(), far.begin(), far.end());
  return listed;
}

std::vector<double> values_for_param(const Condition& condition, const ParamInfo& info, const Scope& scope,
                                     Sequence& random) {
  std::vector<double> values(info.choices.begin(), info.choices.end());
  for (const Expression& number : condition.numbers) values.push_back(number.value(scope));
  if (!values.empty())
    std::ranges::rotate(values, values.begin() + static_cast<std::ptrdiff_t>(random.below(values.size())));
  values.push_back(info.typical);
  for (int i = 0; i < 64; ++i)
    values.push_back(info.min + (info.max - info.min) * static_cast<double>(random.below(1 << 20)) / (1 << 20));
  for (double& value : values)
    value = info.integer ? std::round(value) : static_cast<double>(static_cast<float>(value));
  return values;
}

}  // namespace

bool Requirements::mentions(int param) const {
  return std::ranges::any_of(conditions_,
                             [&](const Condition& c) { return std::ranges::find(c.params, param) != c.params.end(); });
}

std::vector<int> Requirements::listed() const {
  std::vector<int> dims;
  for (const Condition& c : conditions_)
    if (c.lists) dims.insert(dims.end(), c.dims.begin(), c.dims.end());
  return dims;
}

std::optional<std::string> Requirements::refuse(std::span<const Index> dims, std::span<const double> params) const {
  const Scope scope{dims, params};
  for (const Condition& condition : conditions_)
    if (!condition.holds(scope)) return fmt::format("its shim requires {}", condition.text);
  if (nonempty_)
    for (const TensorInfo& tensor : op_->tensors)
      if (tensor.shape(dims).size() == 0)
        return fmt::format("its shim requires tensors with elements, and {} has none", tensor.name);
  return std::nullopt;
}

bool Requirements::repair(const Condition& condition, std::vector<Index>& dims, std::vector<double>& params,
                          std::uint64_t seed) const {
  Sequence random{seed};
  const std::size_t count = condition.dims.size() + condition.params.size();
  if (count == 0) return false;
  const std::size_t first = random.below(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t which = (first + i) % count;
    if (which < condition.dims.size()) {
      const auto d = static_cast<std::size_t>(condition.dims[which]);
      std::vector<Index> changed = dims;
      std::vector<double> values = values_for_dim(condition, {dims, params}, dims[d], random);
      if (dims[d] > 0) std::ranges::stable_partition(values, [](double value) { return value != 0; });
      for (const double value : values) {
        if (!admits_dim(*op_, d, dims, value)) continue;
        changed[d] = static_cast<Index>(value);
        if (!condition.holds({changed, params})) continue;
        dims = changed;
        return true;
      }
    } else {
      const auto p = static_cast<std::size_t>(condition.params[which - condition.dims.size()]);
      std::vector<double> changed = params;
      for (const double value : values_for_param(condition, op_->params[p], {dims, params}, random)) {
        if (!admits_param(op_->params[p], value)) continue;
        changed[p] = value;
        if (!condition.holds({dims, changed})) continue;
        params = changed;
        return true;
      }
    }
  }
  return repair_together(condition, dims, params, random.below(~0u));
}

bool Requirements::repair_together(const Condition& condition, std::vector<Index>& dims, std::vector<double>& params,
                                   std::uint64_t seed) const {
  Sequence random{seed};
  std::vector<int> changing = condition.dims;
  for (const int d : condition.dims)  // query heads are chosen together with the key-value heads they share
    for (std::size_t other = 0; other < dims.size(); ++other)
      if (op_->dims[other].multiple_of == d ||
          op_->dims[static_cast<std::size_t>(d)].multiple_of == static_cast<int>(other))
        changing.push_back(static_cast<int>(other));
  constexpr int kAttempts = 512;
  constexpr std::uint64_t kFew = 8;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<Index> other = dims;
    std::vector<double> values = params;
    for (const int d : changing)
      other[static_cast<std::size_t>(d)] = kUsual[random.below(attempt < kAttempts / 2 ? kFew : std::size(kUsual))];
    bool admitted = true;
    for (const int p : condition.params) {
      const ParamInfo& info = op_->params[static_cast<std::size_t>(p)];
      const std::vector<double> list = values_for_param(condition, info, {dims, params}, random);
      const double value = values[static_cast<std::size_t>(p)] = list[random.below(list.size())];
      admitted = admitted && admits_param(info, value);
    }
    make_admissible(*op_, other);
    if (!admitted || !condition.holds({other, values})) continue;
    dims = std::move(other), params = std::move(values);
    return true;
  }
  return false;
}

bool Requirements::repair(std::vector<Index>& dims, std::vector<double>& params, std::uint64_t seed) const {
  Sequence random{seed};
  for (int round = 0; round < kRounds; ++round) {
    if (!refuse(dims, params)) return true;
    if (nonempty_)
      for (std::size_t d = 0; d < dims.size(); ++d)
        dims[d] = std::max(dims[d], std::max(op_->dims[d].min, op_->dims[d].multiple));
    for (const Condition& condition : conditions_)
      if (!condition.holds(Scope{dims, params})) repair(condition, dims, params, random.below(~0u));
    make_admissible(*op_, dims);
  }
  return !refuse(dims, params).has_value();
}

}  // namespace assay::plugin
