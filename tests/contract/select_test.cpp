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
  return {.id = id,
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
const KernelRegistration mutant{kernel_named<'f'>("mutant/cpu/transpose/f", 9)};

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

TEST(Registration, SaysWhatTheIdAndThePlaceSay) {
  const Kernel& right = kernel("transpose/cpu/a");
  EXPECT_EQ(right.op, "transpose");
  EXPECT_EQ(right.backend, Backend::cpu);
  EXPECT_EQ(right.role, KernelRole::kernel);
  EXPECT_EQ(right.source, "tests/contract/select_test.cpp");
  const Kernel& wrong = kernel("mutant/cpu/transpose/f");
  EXPECT_EQ(wrong.op, "transpose");
  EXPECT_EQ(wrong.backend, Backend::cpu);
  EXPECT_EQ(wrong.role, KernelRole::mutant);
}

TEST(Registration, RefusesIdsThatAreNone) {
  for (const std::string_view id : {"", "transpose", "transpose/cpu", "transpose/cpu/a/b", "transpose//a", "/cpu/a",
                                    "transpose/gpu/a", "transpose/cpu/A", "transpose/cpu/a b", "mutant/cpu/transpose",
                                    "mutant/adversarial/f", "mutant/gpu/transpose/f", "transpose/adversarial/f"}) {
    const std::size_t before = kernels().size();
    try {
      const KernelRegistration registration{kernel_named<'a'>(id, 0)};
      ADD_FAILURE() << id;
    } catch (const InputError& e) {
      EXPECT_EQ(std::string_view(e.what()).find('\n'), std::string_view::npos) << e.what();
    }
    EXPECT_EQ(kernels().size(), before) << id;
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
