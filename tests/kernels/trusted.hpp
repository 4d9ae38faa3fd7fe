// Campaigns of few cases that still end with evidence.
#pragma once

#include "falsify/engine/campaign.hpp"

namespace assay::falsify {

/// Sanitizers examine how kernels compute, not the results: few cases suffice.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Runs a campaign; retries obligations that compared mostly zeros alone, with twice as many cases, up to `most`.
inline KernelResult run_until_trusted(const Kernel& kernel, const CampaignOptions& options, int most) {
  const OpDescriptor& op = operation(kernel.op);
  KernelResult result = run_campaign(op, kernel, options);
  for (ObligationResult& o : result.obligations) {
    CampaignOptions longer = options;
    longer.only = o.info->id;
    while (o.verdict == Verdict::mistrusted && longer.cases < most) {
      longer.cases *= 2;
      o = run_campaign(op, kernel, longer).obligations.front();
    }
  }
  return result;
}

}  // namespace assay::falsify
