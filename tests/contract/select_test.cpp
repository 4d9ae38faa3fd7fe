// Choice of a kernel for callers who name none, and lookup by name.
#include "serve/select.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "contract/descriptor.hpp"
#include "core/errors.hpp"
#include "ops/transpose.hpp"

namespace assay::select_test {
namespace {

std::string chosen;

template <char Name>
void run(const Call&, Device&) {
  chosen = std::string(1, Name);
}
std::optional<std::string> only_square(const Call& call) {
  if (call.dims[0] == call.dims[1]) return std::nullopt;
  return "it takes square matrices only";
}

template <char Name>
Kernel kernel_named(std::string_view id, int priority, KernelRole role = KernelRole::kernel) {
  return {.op = "transpose",
          .id = id,
          .source = "tests/contract/select_test.cpp",
          .summary = "of this test",
          .role = role,
          .run = &run<Name>,
          .refuse = priority == 2 ? &only_square : nullptr,
          .priority = priority};
}

const KernelRegistration low{kernel_named<'a'>("transpose/cpu/a", 0)};
const KernelRegistration equal{kernel_named<'b'>("transpose/cpu/b", 1)};
const KernelRegistration later{kernel_named<'c'>("transpose/cpu/c", 1)};
const KernelRegistration square{kernel_named<'d'>("transpose/cpu/d", 2)};
const KernelRegistration peer{kernel_named<'e'>("transpose/cpu/e", 9, KernelRole::peer)};
const KernelRegistration mutant{kernel_named<'f'>("transpose/cpu/f", 9, KernelRole::mutant)};

TEST(Select, HighestPriorityThatDoesNotRefuse) {
  EXPECT_EQ(select_kernel("transpose", Backend::cpu, {{3, 3}, {}, {}}).id, "transpose/cpu/d");
  EXPECT_EQ(select_kernel("transpose", Backend::cpu, {{3, 4}, {}, {}}).id, "transpose/cpu/b");
}

TEST(Select, EntryPointWithoutAKernelUsesIt) {
  float src[6] = {}, dst[6] = {};
  ops::transpose({2, 3, {src, {2, 3}}, {dst, {3, 2}}});
  EXPECT_EQ(chosen, "b");
}

TEST(Select, BrokenCallIsAViolationNotARefusal) {
  float src[6] = {}, dst[6] = {};
  EXPECT_THROW(ops::transpose({2, 3, {src, {2, 3}}, {dst, {2, 3}}}), ContractViolation);
}

TEST(Select, NothingFallsBackToAnotherBackEnd) {
  try {
    select_kernel("transpose", Backend::vulkan, {{3, 3}, {}, {}});
    FAIL();
  } catch (const Unavailable& e) {
    EXPECT_STREQ(e.what(), "a vulkan kernel for transpose is unavailable: none is part of this program");
  }
}

TEST(Operations, AreSortedAndFoundByName) {
  const auto all = operations();
  ASSERT_GE(all.size(), 6u);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1]->name, all[i]->name);
  for (const OpDescriptor* op : all) EXPECT_EQ(&operation(op->name), op);
  EXPECT_THROW(operation("matmull"), InputError);
}

TEST(Operations, ShapesFollowTheDims) {
  const OpDescriptor& op = operation("matmul_tn");
  const std::vector<Index> dims{2, 3, 5};
  EXPECT_EQ(op.tensors[0].shape(dims), (Shape{3, 2}));
  EXPECT_EQ(op.tensors[1].shape(dims), (Shape{3, 5}));
  EXPECT_EQ(op.tensors[2].shape(dims), (Shape{2, 5}));
}

}  // namespace
}  // namespace assay::select_test
