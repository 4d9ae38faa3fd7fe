// One fault fails many obligations: the one that says most about it.
#include <algorithm>
#include <string>
#include <utility>

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
  return f.tensor.empty() && f.kind != Finding::Kind::contract && f.kind != Finding::Kind::rounding;
}

/// The shrunk case still fails in the relation, between calls that differ: the same call twice is none of the relation's. A case that needs
/// padding or an offset to fail blames strides instead.
bool is_of_the_relation(const Counterexample& x) {
  return x.of_bits && x.finding.call->differs && (x.shrink_tried == 0 || x.smallest.layout == Layout::tight);
}

/// Other failures of the campaign, which decide how much an obligation's failure says.
struct FailsBeside {
  bool oracle = false;    ///< a general comparison with one
  bool usual = false;     ///< such a comparison, of usual sizes
  bool unsteady = false;  ///< the same call gives other bits: so may any two, whatever they are to have in common

  explicit FailsBeside(const std::vector<ObligationResult>& obligations) {
    for (const ObligationResult& o : obligations) {
      if (!o.counterexample) continue;
      const Sort sort = sort_of(o.info->by);
      oracle = oracle || sort == Sort::exact || sort == Sort::differential;
      usual = usual || o.info->by == "exact" || o.info->by == "differential";
      unsteady = unsteady || o.counterexample->race || (o.info->by == "determinism" && o.counterexample->of_bits);
    }
  }
};

/// Smaller says more. A wrong value is first of all what the oracle says it is: most relations fail with it, whatever they are about.
///  0  crashes, hangs, writes out of bounds, and elements not written: everything else may follow from them;
///  1  calls that differ and are each within their bounds, where nothing else sees it; the same call, with other bits;
///  2  calls that must agree in bits and do not: what the result depends on is a fact beside its value;
///  3  inputs of one right result;
///  4  a value beyond its bound;
///  5  special inputs and tiers, where the general ones pass;
///  6  a relation within bounds, or of a single call: it fails with any wrong value;
///  7  the same value in special inputs, in a check that looks at everything, or at large sizes where usual ones fail as well.
int rank(const ObligationResult& o, const FailsBeside& fails) {
  const Finding& f = o.counterexample->finding;
  const Sort sort = sort_of(o.info->by);
  if (of_the_call(f) || f.kind == Finding::Kind::not_written) return 0;
  const bool each_is_right = f.call && f.call->of > 1 && !f.call->alone && sort != Sort::special;
  if (each_is_right && (!fails.oracle || o.info->by == "determinism")) return 1;
  if (sort == Sort::relation && !fails.unsteady && is_of_the_relation(*o.counterexample)) return 2;
  if (o.info->by == "large" && fails.usual) return 7;
  if (sort == Sort::exact) return 3;
  if (sort == Sort::differential) return 4;
  if (sort == Sort::special && !fails.oracle) return 5;
  return sort == Sort::relation ? 6 : 7;
}

/// Of equals: the check that is about the call as such first, and last the one that tells of clauses.
int order(const ObligationResult& o) { return o.info->by == "frame" ? 0 : o.info->by == "postconditions" ? 2 : 1; }

}  // namespace

const ObligationResult* KernelResult::explanation() const {
  const FailsBeside fails(obligations);
  const auto place = [&](const ObligationResult& o) { return std::pair(rank(o, fails), order(o)); };
  const ObligationResult* best = nullptr;
  for (const ObligationResult& o : obligations)
    if (o.counterexample && (best == nullptr || place(o) < place(*best))) best = &o;
  return best;
}

}  // namespace assay::falsify
