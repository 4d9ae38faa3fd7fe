// The vectorized CPU kernels on every supported instruction set that Highway compiled, except the best one, on which
// all other tests run them.
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "tests/kernels/trusted.hpp"

namespace assay::falsify {
namespace {

/// Makes kernels dispatch to `target` in this process and the workers it forks.
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
  return kernel.backend == Backend::cpu && kernel.role != KernelRole::mutant &&
         kernel.id.find("/naive") == std::string_view::npos && !kernel.id.ends_with("/openblas") &&
         !kernel.id.ends_with("/dispatch");
}

KernelResult campaign(const Kernel& kernel) {
  CampaignOptions options;
  options.cases = kSanitized ? 3 : 11;  // 11: one round of every strategy
  options.limit = std::chrono::minutes(2);
  return run_until_trusted(kernel, options, 4 * options.cases);
}

std::vector<const Kernel*> vectorized_kernels() {
  std::vector<const Kernel*> all;
  for (const Kernel& kernel : kernels())
    if (vectorized(kernel)) all.push_back(&kernel);
  return all;
}

TEST(VectorizedKernels, AreFound) { EXPECT_GE(vectorized_kernels().size(), 20U); }

class SimdTargets : public testing::TestWithParam<const Kernel*> {};

TEST_P(SimdTargets, KernelIsRightOnEach) {
  const Kernel& kernel = *GetParam();
  std::set<std::size_t> entries;  // entries of the dispatch table
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  const std::size_t best = hwy::GetChosenTarget().GetIndex();
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnTarget scope(target);
    const std::size_t index = hwy::GetChosenTarget().GetIndex();
    EXPECT_TRUE(entries.insert(index).second) << hwy::TargetName(target) << " runs what another target runs";
    if (index == best) continue;
    const KernelResult result = campaign(kernel);
    EXPECT_FALSE(result.obligations.empty());
    for (const ObligationResult& o : result.obligations)
      EXPECT_TRUE(o.verdict == Verdict::passed || o.verdict == Verdict::not_applicable)
          << kernel.id << " on " << hwy::TargetName(target) << ": " << o.info->id << " " << name(o.verdict) << " "
          << (o.counterexample ? o.counterexample->finding.message : o.reason);
  }
  EXPECT_TRUE(entries.contains(best));
}

INSTANTIATE_TEST_SUITE_P(Vectorized, SimdTargets, testing::ValuesIn(vectorized_kernels()), [](const auto& info) {
  std::string name(info.param->id);
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace assay::falsify
