// The vectorized CPU kernels on every instruction set that this processor has and Highway compiled them for, not only on
// the best one, which is all that users of this machine would run.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <chrono>
#include <set>

#include "tests/kernels/trusted.hpp"

namespace assay::falsify {
namespace {

/// Makes `target` the one that kernels dispatch to, in this process and the workers it forks.
class OnTarget {
 public:
  explicit OnTarget(std::int64_t target) { choose(target); }
  ~OnTarget() { choose(0); }
  OnTarget(const OnTarget&) = delete;
  OnTarget& operator=(const OnTarget&) = delete;

 private:
  static void choose(std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

bool vectorized(const Kernel& kernel) {
  return kernel.backend == Backend::cpu && kernel.role != KernelRole::mutant && kernel.id.find("/naive") == std::string_view::npos &&
         !kernel.id.ends_with("/openblas") && !kernel.id.ends_with("/dispatch");
}

KernelResult campaign(const Kernel& kernel) {
  CampaignOptions options;
  options.cases = kSanitized ? 3 : 11;  // 11: a turn of every strategy
  options.limit = std::chrono::minutes(2);
  return run_until_trusted(kernel, options, 4 * options.cases);
}

TEST(SimdTargets, EveryKernelIsRightOnEach) {
  std::set<std::size_t> entries;  // of the dispatch table
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnTarget scope(target);
    EXPECT_TRUE(entries.insert(hwy::GetChosenTarget().GetIndex()).second)
        << hwy::TargetName(target) << " runs what another target runs";
    int campaigns = 0;
    for (const Kernel& kernel : kernels()) {
      if (!vectorized(kernel)) continue;
      ++campaigns;
      for (const ObligationResult& o : campaign(kernel).obligations)
        EXPECT_TRUE(o.verdict == Verdict::passed || o.verdict == Verdict::not_applicable)
            << kernel.id << " on " << hwy::TargetName(target) << ": " << o.info->id << " " << name(o.verdict) << " "
            << (o.counterexample ? o.counterexample->finding.message : o.reason);
    }
    EXPECT_GT(campaigns, 0);
    fmt::print("{:>12}: {} kernels\n", hwy::TargetName(target), campaigns);
  }
}

}  // namespace
}  // namespace assay::falsify
