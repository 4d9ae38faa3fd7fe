// The machinery behind the generated negative tests sees each way in which a contract can fail to stop a call.
#include "falsify/engine/negative.hpp"

#include <gtest/gtest.h>

#include "core/errors.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify {
namespace {

const OpDescriptor& honest() { return operation("matmul"); }
constexpr Violation kLongerA{Violation::Kind::shape, 0, -1, [](std::span<const Index>) { return Shape{2, 4}; }, 0};

OpDescriptor with(void (*checked)(const Call&, const Kernel&, Device&)) {
  OpDescriptor op = honest();
  op.checked = checked;
  return op;
}
bool is_broken(const Call& call) { return call.tensors[0].shape == Shape{2, 4}; }
ContractViolation violation(const char* clause) {
  return {"matmul", ContractViolation::Kind::precondition, clause, "a.len() == m * k", "a.len() = 8, m*k = 6"};
}

TEST(Negative, HonestContractHasNoFault) { EXPECT_EQ(broken_call_fault(honest(), "MM-PRE-001", kLongerA), ""); }

TEST(Negative, ClauseThatIsAlwaysFalse) {
  const OpDescriptor op = with([](const Call&, const Kernel&, Device&) { throw violation("MM-PRE-001"); });
  EXPECT_EQ(broken_call_fault(op, "MM-PRE-001", kLongerA).find("a valid call is refused: "), 0u);
}

TEST(Negative, ContractThatNeverCallsTheKernel) {
  const OpDescriptor op = with([](const Call&, const Kernel&, Device&) {});
  EXPECT_EQ(broken_call_fault(op, "MM-PRE-001", kLongerA), "a valid call does not reach the kernel");
}

TEST(Negative, ClauseThatIsAlwaysTrue) {
  const OpDescriptor op =
      with([](const Call& call, const Kernel& kernel, Device& device) { kernel.run(call, device); });
  EXPECT_EQ(broken_call_fault(op, "MM-PRE-001", kLongerA), "the call that breaks MM-PRE-001 is accepted");
}

TEST(Negative, WrongClause) {
  EXPECT_EQ(broken_call_fault(honest(), "MM-PRE-002", kLongerA)
                .find("the call that breaks MM-PRE-002 is stopped by another clause: "),
            0u);
}

TEST(Negative, KernelThatRunsFirst) {
  const OpDescriptor op = with([](const Call& call, const Kernel& kernel, Device& device) {
    kernel.run(call, device);
    if (is_broken(call)) throw violation("MM-PRE-001");
  });
  EXPECT_EQ(broken_call_fault(op, "MM-PRE-001", kLongerA), "the kernel ran although MM-PRE-001 was broken");
}

TEST(Negative, MemoryThatChanged) {
  const OpDescriptor op = with([](const Call& call, const Kernel& kernel, Device& device) {
    if (!is_broken(call)) return kernel.run(call, device);
    static_cast<float*>(call.tensors[2].data)[3] = 0;
    throw violation("MM-PRE-001");
  });
  EXPECT_EQ(broken_call_fault(op, "MM-PRE-001", kLongerA), "memory changed although MM-PRE-001 was broken");
}

}  // namespace
}  // namespace assay::falsify
