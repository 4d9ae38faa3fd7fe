// One fault fails many obligations: the one that says most about it.
#include <algorithm>
#include <array>

#include "falsify/engine/campaign.hpp"

namespace assay::falsify {
namespace {

/// The engine's own checks, of which each contract has its own ids; all others are relations of the operation.
enum class Sort { relation, exact, differential, special, whole };
Sort sort_of(std::string_view by) {
  if (by == "exact" || by == "large") return Sort::exact;
  if (by == "differential") return Sort::differential;
  if (by == "nonfinite" || by == "statistical") return Sort::special;
  return by == "frame" || by == "determinism" || by == "postconditions" ? Sort::whole : Sort::relation;
}

/// What the process or its memory came to: the call itself, whatever it was made for.
bool of_the_call(const Finding& f) {
  return f.tensor.empty() && f.kind != "contract" && f.kind != "rounding";
}

/// The fewer wrong kernels an obligation fails, the more it says where it does. Smaller says more:
///  0  crashes, hangs, writes out of bounds, and elements not written: everything else may follow from them;
///  1  two calls that differ and are each within their bounds: nothing else sees it;
///  2  one wrong call that a relation, or inputs of one right result, name the fault of;
///  3  special inputs and tiers, where the general ones pass;
///  4  a value beyond its bound;
///  5  the same value in special inputs, or in a check that looks at everything.
int rank(const ObligationResult& o, bool differential_fails) {
  const Finding& f = o.counterexample->finding;
  const Sort sort = sort_of(o.info->by);
  if (of_the_call(f) || f.kind == "not written") return 0;
  if (f.call && f.call->of > 1 && !f.call->alone && sort != Sort::special) return 1;
  if (sort == Sort::relation || sort == Sort::exact) return 2;
  if (sort == Sort::special && !differential_fails) return 3;
  return sort == Sort::differential ? 4 : 5;
}

}  // namespace

const ObligationResult* KernelResult::explanation() const {
  const bool differential = std::ranges::any_of(obligations, [](const ObligationResult& o) {
    return o.counterexample && o.info->by == "differential";
  });
  const ObligationResult* best = nullptr;
  for (const ObligationResult& o : obligations)
    if (o.counterexample && (best == nullptr || rank(o, differential) < rank(*best, differential))) best = &o;
  return best;
}

}  // namespace assay::falsify
