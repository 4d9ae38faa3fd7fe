// Picks the failed obligation that says most about a fault, since one fault fails many.
#include <algorithm>
#include <string>
#include <utility>

#include "falsify/engine/campaign.hpp"

namespace assay::falsify {
namespace {

/// Kinds of checks: the engine's own, whose ids differ between contracts, and the operation's relations.
enum class CheckKind { relation, exact, differential, special, whole };
CheckKind check_kind(std::string_view by) {
  if (by == "exact" || by == "large") return CheckKind::exact;
  if (by == "differential") return CheckKind::differential;
  if (by == "nonfinite" || by == "statistical") return CheckKind::special;
  return by == "frame" || by == "determinism" || by == "postconditions" ? CheckKind::whole : CheckKind::relation;
}

/// True if the call itself failed (process, memory), independent of the check that made it.
bool is_call_failure(const Finding& f) {
  return f.tensor.empty() && f.kind != Finding::Kind::contract && f.kind != Finding::Kind::rounding;
}

/// True if the shrunk case still violates the relation, and between calls that differ: a call compared with its own
/// repetition shows nothing about the relation. A case that fails only with padding or an offset points to strides
/// instead.
bool is_of_the_relation(const Counterexample& x) {
  return x.of_bits && x.finding.call->differs && (x.shrink_tried == 0 || x.smallest.layout == Layout::tight);
}

/// Other failures of the campaign, which decide how much an obligation's failure says.
struct OtherFailures {
  bool oracle = false;    ///< a comparison with an oracle
  bool usual = false;     ///< such a comparison at usual sizes
  bool unsteady = false;  ///< repeating a call gives other bits, so calls related in bits may differ too

  explicit OtherFailures(const std::vector<ObligationResult>& obligations) {
    for (const ObligationResult& o : obligations) {
      if (!o.counterexample) continue;
      const CheckKind check = check_kind(o.info->by);
      oracle = oracle || check == CheckKind::exact || check == CheckKind::differential;
      usual = usual || o.info->by == "exact" || o.info->by == "differential";
      unsteady = unsteady || o.counterexample->race || (o.info->by == "determinism" && o.counterexample->of_bits);
    }
  }
};

/// Returns the rank of a failure; smaller says more. A wrong value is best explained by the oracle, since most
/// relations fail with it.
///  0  crashes, hangs, writes out of bounds, and elements not written: all other failures may follow from these;
///  1  calls that differ although each is within its bounds and no oracle check fails; a repeated call with other bits;
///  2  calls that must agree in bits and do not: a dependence that is independent of the values;
///  3  inputs with a single right result;
///  4  a value beyond its bound;
///  5  special inputs and tiers, if the general ones pass;
///  6  a relation within bounds, or of a single call: any wrong value fails it;
///  7  the same value in special inputs, in a check of everything, or at large sizes if usual ones fail too.
int rank(const ObligationResult& o, const OtherFailures& fails) {
  const Finding& f = o.counterexample->finding;
  const CheckKind check = check_kind(o.info->by);
  if (is_call_failure(f) || f.kind == Finding::Kind::not_written) return 0;
  const bool each_is_right = f.call && f.call->of > 1 && !f.call->alone && check != CheckKind::special;
  if (each_is_right && (!fails.oracle || o.info->by == "determinism")) return 1;
  if (check == CheckKind::relation && !fails.unsteady && is_of_the_relation(*o.counterexample)) return 2;
  if (o.info->by == "large" && fails.usual) return 7;
  if (check == CheckKind::exact) return 3;
  if (check == CheckKind::differential) return 4;
  if (check == CheckKind::special && !fails.oracle) return 5;
  return check == CheckKind::relation ? 6 : 7;
}

/// Breaks ties: `frame`, the check of the call as such, comes first, and `postconditions` last.
int order(const ObligationResult& o) { return o.info->by == "frame" ? 0 : o.info->by == "postconditions" ? 2 : 1; }

}  // namespace

const ObligationResult* KernelResult::explanation() const {
  const OtherFailures fails(obligations);
  const auto place = [&](const ObligationResult& o) { return std::pair(rank(o, fails), order(o)); };
  const ObligationResult* best = nullptr;
  for (const ObligationResult& o : obligations)
    if (o.counterexample && (best == nullptr || place(o) < place(*best))) best = &o;
  return best;
}

}  // namespace assay::falsify
