// Campaigns of few cases that end with evidence.
#pragma once

#include <algorithm>

#include "falsify/engine/campaign.hpp"

namespace assay::falsify {

/// Runs a campaign; where mostly zeros were compared, one of twice as many cases, up to four times as many.
inline KernelResult run_until_trusted(const Kernel& kernel, CampaignOptions options) {
  const int most = 4 * options.cases;
  for (;; options.cases *= 2) {
    KernelResult result = run_campaign(operation(kernel.op), kernel, options);
    const auto mistrusted = [](const ObligationResult& o) { return o.verdict == Verdict::mistrusted; };
    if (options.cases >= most || std::ranges::none_of(result.obligations, mistrusted)) return result;
  }
}

}  // namespace assay::falsify
