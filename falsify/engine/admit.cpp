#include "falsify/engine/admit.hpp"

#include <fmt/format.h>
#include <rapidcheck/shrinkable/Transform.h>

#include <algorithm>
#include <utility>

#include "falsify/engine/joint.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify {
namespace {

/// Product of dims up to which a case costs no more than an average one.
constexpr double kUsualProduct = 1 << 15;
/// Attempts at a repair, each with another seed, until a repair leaves the given dims unchanged.
constexpr int kAttempts = 8;

double product_of(const std::vector<Index>& dims) {
  double product = 1;
  for (const Index d : dims) product *= static_cast<double>(std::max<Index>(d, 1));
  return product;
}

/// Halves the largest dim until the product is at most `most`, as far as the kernel takes the smaller case. Leaves the
/// dims in `kept` unchanged.
void reduce(const OpDescriptor& op, const Kernel& kernel, Case& c, double most, const std::vector<int>& kept) {
  std::vector<bool> stuck(c.dims.size(), false);
  for (const int d : kept) stuck[static_cast<std::size_t>(d)] = true;
  while (product_of(c.dims) > most) {
    std::size_t largest = c.dims.size();
    for (std::size_t d = 0; d < c.dims.size(); ++d)
      if (!stuck[d] && c.dims[d] > 1 && (largest == c.dims.size() || c.dims[d] > c.dims[largest])) largest = d;
    if (largest == c.dims.size()) return;
    Case smaller = c;
    smaller.dims[largest] = std::max(op.dims[largest].min, c.dims[largest] / 2);
    make_valid(op, smaller.dims);
    const auto same = [&](int d) {
      return smaller.dims[static_cast<std::size_t>(d)] == c.dims[static_cast<std::size_t>(d)];
    };
    if (kernel.limits->repair(smaller.dims, smaller.params, derive(c.seed, "admitted")) &&
        std::ranges::all_of(kept, same) && product_of(smaller.dims) < product_of(c.dims))
      c = std::move(smaller);
    else stuck[largest] = true;
  }
}

}  // namespace

Case admitted(const OpDescriptor& op, const Kernel& kernel, Case c, std::span<const Index> given) {
  if (kernel.limits == nullptr) return c;
  const Limits& limits = *kernel.limits;
  const bool offset = c.layout == Layout::offset || c.layout == Layout::mixed || c.layout == Layout::own;
  if (limits.near && c.layout == Layout::far_rows) c.layout = Layout::padded;
  if (limits.dense) c.layout = offset && !limits.aligned ? Layout::offset : Layout::tight;
  else if (limits.aligned && offset) c.layout = c.layout == Layout::offset ? Layout::tight : Layout::padded;
  if (limits.aligned && c.placement == Placement::page_end) c.placement = Placement::page_start;
  if (!limits.repair || !c.values.empty()) return c;
  std::vector<int> stay;
  for (std::size_t d = 0; d < given.size(); ++d)
    if (given[d] != kDrawnSmall) stay.push_back(static_cast<int>(d));
  Case changed = c;
  const auto repaired = [&] {
    for (int attempt = 0; attempt < (stay.empty() ? 1 : kAttempts); ++attempt) {
      changed = c;
      const bool done =
          limits.repair(changed.dims, changed.params, derive(c.seed + static_cast<std::uint64_t>(attempt), "admitted"));
      const auto same = [&](int d) {
        return changed.dims[static_cast<std::size_t>(d)] == c.dims[static_cast<std::size_t>(d)];
      };
      if (done && std::ranges::all_of(stay, same)) return true;
    }
    return false;
  };
  if (!repaired()) {
    c.region = -1;
    return c;
  }
  const double most = std::max(product_of(c.dims), kUsualProduct);
  std::vector<int> kept = stay;
  kept.insert(kept.end(), limits.listed.begin(), limits.listed.end());
  reduce(op, kernel, changed, most, kept);
  reduce(op, kernel, changed, most, stay);
  if (changed.region >= 0 && !lies_in(op, op.shapes[static_cast<std::size_t>(changed.region)], changed.dims))
    changed.region = -1;
  return changed;
}

rc::Shrinkable<Case> admitted(const OpDescriptor& op, const Kernel& kernel, rc::Shrinkable<Case> c) {
  if (kernel.limits == nullptr) return c;
  return rc::shrinkable::map(std::move(c), [&op, &kernel](Case&& x) { return admitted(op, kernel, std::move(x)); });
}

Problem restrict_integers(const OpDescriptor& op, const Kernel& kernel, Problem problem) {
  if (kernel.limits == nullptr) return problem;
  for (const Limits::Fixed& fixed : kernel.limits->fixed) {
    const auto t = static_cast<std::size_t>(fixed.tensor);
    const double value = fixed.value(problem.dims, problem.params);
    // Do not write a value that the contract forbids at these dims: outside() refuses such a call.
    if (!admits_integer(op.tensors[t], problem.dims, value)) continue;
    const std::vector<float> drawn =
        std::exchange(problem.values[t], std::vector(problem.values[t].size(), static_cast<float>(value)));
    problem.integers_kept = problem.integers_kept || !problem.exact || problem.values[t] != drawn;
  }
  problem.exact = problem.exact && !problem.integers_kept;
  return problem;
}

std::optional<std::string> outside(const Kernel& kernel, const Problem& problem) {
  if (kernel.limits == nullptr) return std::nullopt;
  if (kernel.limits->refuse)
    if (auto why = kernel.limits->refuse(problem.dims, problem.params)) return why;
  for (const Limits::Fixed& fixed : kernel.limits->fixed) {
    const auto t = static_cast<std::size_t>(fixed.tensor);
    const auto value = static_cast<float>(fixed.value(problem.dims, problem.params));
    if (std::ranges::any_of(problem.values[t], [&](float x) { return x != value; }))
      return fmt::format("its shim requires all of {} to be {}", problem.op->tensors[t].name, value);
  }
  return std::nullopt;
}

}  // namespace assay::falsify
