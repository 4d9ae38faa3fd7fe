// Our own row: the campaign that `assay falsify` and `assay mutants` run.
#include "falsify/engine/campaign.hpp"
#include "falsify/policies/policy.hpp"

namespace assay::falsify::policies::assay_policy {
namespace {

Judgement judge_by_campaign(const OpDescriptor& op, const Kernel& kernel, const JudgeOptions& options) {
  CampaignOptions campaign;
  campaign.cases = options.cases;
  campaign.seed = options.seed;
  campaign.limit = options.limit;
  campaign.stop_at_first = true;
  campaign.shrink = false;
  const KernelResult result = run_campaign(op, kernel, campaign);
  Judgement judgement;
  judgement.seconds = result.seconds;
  for (const ObligationResult& obligation : result.obligations) {
    judgement.cases += obligation.cases;
    judgement.refused += obligation.refused;
    if (obligation.verdict == Verdict::unavailable) judgement.unavailable = obligation.reason;
    if (obligation.counterexample)
      judgement.rejected = std::string(obligation.info->id) + ": " + obligation.counterexample->finding.message;
  }
  return judgement;
}

const PolicyRegistration registration({
    .name = "assay",
    .source = "this project: every obligation of the contract, bounds derived",
    .judge = judge_by_campaign,
    .order = 0,
});

}  // namespace
}  // namespace assay::falsify::policies::assay_policy
