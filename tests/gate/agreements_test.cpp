// Stale evidence that commits agree to: with a reason, and only for lines that the base holds unchanged.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/errors.hpp"
#include "falsify/gate/evidence.hpp"
#include "falsify/gate/gate.hpp"

namespace assay::falsify {
namespace {

const std::string kKernel = "softmax/cuda/online", kFile = "ci/evidence/cuda.jsonl";
const Subject kSubject{"softmax", kKernel, Backend::cuda, "kernels/cuda/softmax.cu"};

/// Returns the check of the kernel after its source has changed.
Checked checked_after(const std::function<void(Tree& base, Tree& now)>& also, const Agreements& agreed) {
  Tree base = working_tree(ASSAY_SOURCE);
  Tree now = base;
  now.files["kernels/cuda/softmax.cu"] += "int added;\n";
  also(base, now);
  EvidenceRules rules{{Backend::cpu}, {Backend::cpu}, {}, agreed};
  const std::vector<Subject> all{kSubject};
  const std::vector<ChangedKernel> changed = touched(all, base, now, {});
  for (const Checked& c : check_evidence(all, changed, base, now, rules))
    if (c.kernel == kKernel) return c;
  Checked none;
  none.kernel = "no check";
  return none;
}

/// Removes the kernel's line.
void remove_line(Tree& tree) {
  std::string& text = tree.files[kFile];
  const std::size_t at = text.find("\"kernel\":\"" + kKernel + "\""), begin = text.rfind('\n', at) + 1;
  ASSERT_NE(at, std::string::npos);
  text.erase(begin, text.find('\n', at) + 1 - begin);
}

TEST(Agreements, AcceptStaleLinesOfTheBase) {
  const auto nothing = [](Tree&, Tree&) {};
  const Checked refused = checked_after(nothing, {});
  EXPECT_FALSE(refused.accepted);
  EXPECT_NE(refused.reason.find("is stale"), std::string::npos) << refused.reason;
  EXPECT_NE(refused.reason.find("; renew it with `assay attest"), std::string::npos) << refused.reason;
  for (const std::string& what : {std::string("cuda"), kKernel}) {
    const Checked agreed = checked_after(nothing, {{what, "only a name"}});
    EXPECT_TRUE(agreed.accepted) << agreed.reason;
    EXPECT_NE(agreed.warning.find("as agreed: only a name"), std::string::npos) << agreed.warning;
  }
  EXPECT_FALSE(checked_after(nothing, {{"vulkan", "another back end"}}).accepted);
}

TEST(Agreements, AcceptNoOtherLines) {
  const Agreements agreed{{"cuda", "whatever"}};
  EXPECT_FALSE(checked_after([](Tree& base, Tree&) { remove_line(base); }, agreed).accepted)
      << "a line made for this change";
  const Checked gone = checked_after([](Tree&, Tree& now) { remove_line(now); }, agreed);
  EXPECT_FALSE(gone.accepted) << "a line that is gone";
  EXPECT_NE(gone.reason.find("; make it with `assay attest"), std::string::npos) << gone.reason;
}

TEST(Agreements, NameAKernelOrABackEndAndAReason) {
  const std::vector<Subject> all{kSubject};
  EXPECT_EQ(agreements({"cuda: a reason: with a colon"}, all), (Agreements{{"cuda", "a reason: with a colon"}}));
  EXPECT_EQ(agreements({kKernel + ": r"}, all), (Agreements{{kKernel, "r"}}));
  EXPECT_THROW(agreements({"cuda"}, all), InputError);
  EXPECT_THROW(agreements({"cpu: which needs no evidence"}, all), InputError);
  EXPECT_THROW(agreements({"softmax: an operation"}, all), InputError);
}

}  // namespace
}  // namespace assay::falsify
