// Each obligation x kernel is a test: `matmul/cpu/naive.FALSIFY-MM-002`. Filters, sharding and XML of GoogleTest apply.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "falsify/engine/report.hpp"
#include "tests/kernels/trusted.hpp"

namespace assay::falsify {
namespace {

/// Returns the cases per obligation; ci/long and campaigns of ci/falsify use more. cuda-host runs a block's threads
/// sequentially, and lavapipe shares the processors.
int cases_for(Backend backend) {
  if (const char* const cases = std::getenv("ASSAY_OBLIGATION_CASES")) return std::max(1, std::atoi(cases));
  return backend == Backend::cuda_host ? 2 : backend == Backend::vulkan ? 5 : 10;
}

/// Runs a campaign. Few cases may lack nonzero values, since three of ten may be wide tables of mostly zeros: more
/// follow then.
KernelResult campaign(const Kernel& kernel, std::string only) {
  CampaignOptions options;
  options.cases = cases_for(kernel.backend);
  options.only = std::move(only);
  options.limit = std::chrono::minutes(2);  // long enough for a busy machine and for sanitizers
  const bool few = kSanitized || kernel.backend != Backend::cpu;
  return run_until_trusted(kernel, options, (few ? 8 : 2) * options.cases);
}

/// Returns the result of one obligation. If all of the kernel's tests run, one campaign serves them all, so that
/// workers and pipelines start once; otherwise each test runs its own.
ObligationResult result_of(const Kernel& kernel, const ObligationInfo& info) {
  const testing::TestSuite& suite = *testing::UnitTest::GetInstance()->current_test_suite();
  if (suite.test_to_run_count() != suite.total_test_count())
    return campaign(kernel, std::string(info.id)).obligations.front();
  static std::map<const Kernel*, KernelResult> results;
  if (!results.contains(&kernel)) results.emplace(&kernel, campaign(kernel, ""));
  return *std::ranges::find(results.at(&kernel).obligations, &info, &ObligationResult::info);
}

class ObligationTest : public testing::Test {
 public:
  ObligationTest(const Kernel& kernel, const ObligationInfo& info) : kernel_(kernel), info_(info) {}

  void TestBody() override {
    const OpDescriptor& op = operation(kernel_.op);
    const ObligationResult o = result_of(kernel_, info_);
    switch (o.verdict) {
      case Verdict::passed: break;
      case Verdict::not_applicable: GTEST_SKIP() << name(o.verdict) << ": " << o.reason;
      case Verdict::not_run:
      case Verdict::refused:
      case Verdict::unavailable: FAIL() << "not tested, " << name(o.verdict) << ": " << o.reason;
      case Verdict::mistrusted: FAIL() << "mistrusted: " << o.reason;
      case Verdict::falsified:
        FAIL() << o.counterexample->finding.message << "\n  case " << describe(op, o.counterexample->smallest)
               << "\n  suspect " << info_.if_fails;
    }
  }

 private:
  const Kernel& kernel_;
  const ObligationInfo& info_;
};

void register_all() {
  for (const Kernel& kernel : kernels()) {
    if (kernel.role == KernelRole::mutant) continue;
    for (const Obligation& o : obligations(kernel.op)) {
      const ObligationInfo* info = o.info;
      testing::RegisterTest(std::string(kernel.id).c_str(), std::string(info->id).c_str(), nullptr, nullptr, __FILE__,
                            __LINE__,
                            [&kernel, info]() -> testing::Test* { return new ObligationTest(kernel, *info); });
    }
  }
}

/// A dash in a filter starts the excluded tests, and every obligation's id contains dashes: a filter that equals the
/// full name of a test, as ctest passes it, selects that test.
void take_names_as_filters(std::span<char*> arguments) {
  constexpr std::string_view kFilter = "--gtest_filter=";
  for (char* argument : arguments) {
    if (!std::string_view(argument).starts_with(kFilter)) continue;
    const std::span name(argument + kFilter.size(), std::strlen(argument) - kFilter.size());
    for (const Kernel& kernel : kernels())
      for (const Obligation& o : obligations(kernel.op))
        if (fmt::format("{}.{}", kernel.id, o.info->id) == std::string_view(name.data(), name.size()))
          std::ranges::replace(name, '-', '?');
  }
}

}  // namespace
}  // namespace assay::falsify

int main(int argc, char** argv) {
  assay::falsify::take_names_as_filters({argv, static_cast<std::size_t>(argc)});
  testing::InitGoogleTest(&argc, argv);
  assay::falsify::register_all();
  const int result = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() > 0) return result;
  std::fputs("no test matches the filter: that is no pass\n", stderr);
  return 1;
}
