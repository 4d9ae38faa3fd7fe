#include "falsify/engine/shrink.hpp"

#include <rapidcheck/shrinkable/Create.h>
#include <rapidcheck/seq/Create.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "falsify/engine/admit.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/inputs.hpp"

namespace assay::falsify {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Index kExhaustive = 4;  // dims up to this are searched exhaustively, if the descent gets there
constexpr int kSeeds = 2;         // draws of each strategy and layout in that search
constexpr std::chrono::seconds kExhaustiveTime{1};
constexpr std::size_t kMaxCut = std::size_t{1} << 16;  // values of a case that is cut

class Search {
 public:
  Search(const OpDescriptor& op, const DrawSpec& spec, const Fails& fails, Clock::time_point end,
         std::span<const Index> given)
      : op_(op), spec_(spec), fails_(fails), end_(end), given_(given) {}

  bool fails(const Case& c) {
    for (std::size_t d = 0; d < given_.size(); ++d)
      if (is_given(d) && c.dims[d] != given_[d]) return false;
    if (Clock::now() > end_) {
      complete = in_time_ = false;
      return false;
    }
    ++tried;
    return fails_(c);
  }

  /// Greedy descent: takes the first shrink that still fails, until none does.
  Case descend(const rc::Shrinkable<Case>& from) {
    rc::Shrinkable<Case> current = from;
    for (bool found = true; found && in_time_;) {
      found = false;
      auto shrinks = current.shrinks();
      while (auto next = shrinks.next()) {
        if (!fails(next->value())) continue;
        current = *next;
        found = true;
        break;
      }
    }
    return current.value();
  }

  /// Returns the failing case with the smallest dims (by sum, then by first dim) among all with dims up to 4. If the
  /// descent left a larger dim, the failure usually needs it: nothing to search.
  Case exhaust(const Case& from) {
    for (std::size_t d = 0; d < from.dims.size(); ++d)
      if (from.dims[d] > kExhaustive * op_.dims[d].multiple && !is_given(d)) return from;
    const Clock::time_point end = std::exchange(end_, std::min(end_, Clock::now() + kExhaustiveTime));
    const Case found = search_small(from);
    end_ = end;
    in_time_ = Clock::now() <= end_;
    return found;
  }

  int tried = 0;
  bool complete = true;

 private:
  bool is_given(std::size_t dim) const { return dim < given_.size() && given_[dim] != kDrawnSmall; }

  Case search_small(const Case& from) {
    std::vector<std::vector<Index>> candidates{{}};
    for (std::size_t d = 0; d < from.dims.size(); ++d) {
      std::vector<std::vector<Index>> longer;
      for (const auto& prefix : candidates)
        for (Index n = 0; n <= kExhaustive; ++n) {
          const Index v = n * op_.dims[d].multiple;
          if (v < op_.dims[d].min || v > op_.dims[d].max || is_given(d)) continue;
          longer.push_back(prefix);
          longer.back().push_back(v);
        }
      for (std::size_t i = 0; is_given(d) && i < candidates.size(); ++i) {
        longer.push_back(candidates[i]);
        longer.back().push_back(given_[d]);
      }
      candidates = std::move(longer);
    }
    std::erase_if(candidates, [&](const auto& dims) { return !valid(op_, dims); });
    const auto sum = [](const std::vector<Index>& dims) { return std::accumulate(dims.begin(), dims.end(), Index{0}); };
    std::erase_if(candidates, [&](const auto& dims) { return sum(dims) >= sum(from.dims); });
    std::ranges::stable_sort(candidates, {}, sum);
    for (const auto& dims : candidates) {
      Case c = from;
      c.dims = dims;
      if (fails_somehow(c)) return c;
      if (!in_time_) break;
    }
    return from;
  }

  bool fails_somehow(Case& c) {
    const std::uint64_t seed = c.seed;
    for (Strategy strategy : spec_.strategies)
      for (int layout = 0; layout < kNearLayouts; ++layout)
        for (int placement = 0; placement < kPlacements; ++placement)
          for (int s = 0; s < kSeeds; ++s) {
            c.strategy = strategy;
            c.layout = static_cast<Layout>(layout);
            c.placement = static_cast<Placement>(placement);
            c.seed = s == 0 ? seed : derive(seed, "again");
            if (fails(c)) return true;
          }
    return false;
  }

  const OpDescriptor& op_;
  const DrawSpec& spec_;
  const Fails& fails_;
  Clock::time_point end_;
  std::span<const Index> given_;
  bool in_time_ = true;
};

rc::Shrinkable<Case> shrinkable(const OpDescriptor& op, const DrawSpec& spec, const Case& c) {
  return rc::shrinkable::shrinkRecur(
      c, [&op, spec](const Case& x) { return rc::seq::fromContainer(simpler(op, spec, x)); });
}

}  // namespace

Shrunk shrink(const OpDescriptor& op, const ObligationInfo& obligation, const rc::Shrinkable<Case>& failing,
              const Kernel& kernel, const Fails& fails, std::chrono::milliseconds budget,
              std::span<const Index> given) {
  const auto begin = Clock::now();
  const DrawSpec spec = draw_spec(obligation.by);
  Search search(op, spec, fails, begin + budget, given);
  Shrunk shrunk;
  Case c = search.descend(failing);
  const Case exhausted = search.exhaust(c);
  if (exhausted != c) c = search.descend(shrinkable(op, spec, exhausted));
  // Fix the values last: an explicit case no longer depends on its strategy.
  Case fixed = c;
  const auto values_of = [&](const Case& x) {
    return restrict_integers(op, kernel, make_problem(op, x, kernel.arithmetic, kernel.storage)).values;
  };
  fixed.values = values_of(c);
  // A failure that depends on a value is lost when smaller dims draw other values: cut them with theirs.
  if (const std::size_t count = count_of_values(fixed); count > 0 && count <= kMaxCut && search.fails(fixed)) {
    fixed = search.descend(shrinkable(op, spec, fixed));
    if (count_of_values(fixed) <= kMaxValues) {
      c = fixed;
      c.values = values_of(c);  // integers fixed by the kernel cannot be simplified further
    }
  }
  shrunk.smallest = c;
  shrunk.tried = search.tried;
  shrunk.complete = search.complete;
  shrunk.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return shrunk;
}

}  // namespace assay::falsify
