// Automatic dispatch of every operation whose kernels have a rule of size: calls at the border stay on the CPU, larger
// ones leave it, and copies of host memory never do.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "contract/descriptor.hpp"
#include "core/errors.hpp"
#include "ops/matmul_nt.hpp"
#include "serve/dispatch.hpp"

namespace assay::program::dispatch_rules_test {
namespace {

/// Dims of the largest call that stays, whose volume is 32768, and of a call beyond it; or of a call that always stays.
struct Rule {
  std::string_view op;
  std::vector<Index> border, beyond;
};
const Rule kRules[] = {
    {"matmul", {32, 32, 32}, {33, 33, 33}},
    {"matmul_nt", {32, 32, 32}, {33, 33, 33}},
    {"matmul_tn", {32, 32, 32}, {33, 33, 33}},
    {"linear", {32, 32, 32, 1}, {33, 33, 33, 0}},
    {"lora_linear", {16, 16, 16, 8, 1}, {17, 16, 16, 8, 1}},
    {"lora_linear_backward", {16, 16, 16, 8}, {17, 16, 16, 8}},
    {"lora_merge", {64, 64, 8}, {65, 64, 8}},
    {"lora_unmerge", {64, 64, 8}, {65, 64, 8}},
    {"gemv", {256, 128}, {257, 128}},
    {"q4_k_gemv", {128, 256}, {129, 256}},
    {"q4_k_matmul_nt", {8, 256, 16}, {9, 256, 16}},
    {"nf4_matmul", {32, 16, 64}, {33, 16, 64}},
    {"nf4_matmul_nt", {32, 64, 16}, {33, 64, 16}},
    {"attention", {1, 16, 16, 1, 2, 64}, {1, 17, 16, 1, 2, 64}},
    {"attention_backward", {1, 16, 16, 1, 2, 64}, {1, 17, 16, 1, 2, 64}},
    {"transpose", {1024, 1024}, {}},
    {"tensor_layout", {1024, 1024}, {}},
};

void nothing(const Kernel&, Device&) {}
Dispatched dispatched(std::string_view op, const std::vector<Index>& dims,
                      const std::function<void(const Kernel&, Device&)>& attempt = nothing) {
  Call call;
  call.dims = dims;
  for (const ParamInfo& p : operation(op).params) call.params.push_back(p.typical);
  for (const TensorInfo& t : operation(op).tensors) {
    const Shape shape = t.shape(dims);
    call.tensors.push_back({t.dtype, nullptr, shape, row_major_strides(shape)});
  }
  return dispatch(op, call, nullptr, attempt);
}

bool passed_as(const Dispatched& d, Backend backend, SkippedCandidate::Why reason) {
  return std::ranges::any_of(d.passed_over,
                             [&](const SkippedCandidate& c) { return c.backend == backend && c.reason == reason; });
}

TEST(DispatchRules, AreListed) {
  std::set<std::string_view> listed, have;
  for (const Rule& rule : kRules) listed.insert(rule.op);
  for (const Kernel& k : kernels())
    if (k.role == KernelRole::kernel && k.backend == Backend::vulkan && k.automatic_above >= 0) have.insert(k.op);
  EXPECT_EQ(have, listed);
}

TEST(DispatchRules, SmallCallsStayOnTheCpuAndLargerOnesLeaveIt) {
  for (const Rule& rule : kRules) {
    SCOPED_TRACE(rule.op);
    const Dispatched small = dispatched(rule.op, rule.border);
    if (small.kernel->backend != Backend::cuda) {  // which takes calls of any size
      EXPECT_EQ(small.kernel->backend, Backend::cpu) << small.kernel->id;
      EXPECT_TRUE(passed_as(small, Backend::vulkan, SkippedCandidate::Why::too_small));
      EXPECT_FALSE(small.fell_back());
    }
    if (rule.beyond.empty()) continue;
    double volume = 1;
    for (const Index d : rule.border) volume *= static_cast<double>(d);
    EXPECT_EQ(volume, 32768);
    const Dispatched large = dispatched(rule.op, rule.beyond);
    EXPECT_NE(large.kernel->backend, Backend::cpu) << large.kernel->id;
  }
}

Backend of_large_product() { return dispatched("matmul_nt", {33, 33, 33}).kernel->backend; }

/// Also where an exception leaves it. Other threads see nothing of it.
TEST(DispatchRules, ALayerPassEndsWithItsScope) {
  try {
    const LayerPass pass;
    EXPECT_EQ(of_large_product(), Backend::cpu);
    std::thread([] { EXPECT_NE(of_large_product(), Backend::cpu) << "of another thread"; }).join();
    throw 1;
  } catch (int) {}
  EXPECT_NE(of_large_product(), Backend::cpu);
}

/// The type of the exception does not matter: only a failure of the device itself switches a back end off.
TEST(DispatchRules, AFailedCallLeavesTheNextOneItsBackEnd) {
  const Backend first = of_large_product();
  ASSERT_NE(first, Backend::cpu);
  const auto fail_once = [&](const auto& error) {
    return dispatched("matmul_nt", {33, 33, 33}, [&, failed = false](const Kernel&, Device&) mutable {
      if (!std::exchange(failed, true)) throw error;
    });
  };
  EXPECT_TRUE(passed_as(fail_once(Unavailable("memory", "none is left")), first, SkippedCandidate::Why::refused));
  EXPECT_EQ(of_large_product(), first);
  EXPECT_THROW(fail_once(std::runtime_error("a bug of a kernel")), std::runtime_error);
  EXPECT_EQ(of_large_product(), first);
}

/// The product of every projection, with its operands.
TEST(DispatchRules, ProjectionsLeaveTheCpu) {
  for (const Index n : {32, 33}) {
    std::vector<float> a(static_cast<std::size_t>(n * n)), b(a.size()), c(a.size(), -1);
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<float>(static_cast<int>(i % 7) - 3), b[i] = static_cast<float>(static_cast<int>(i % 5) - 2);
    const Dispatched d = ops::matmul_nt(
        {n, n, n, View<float>{a.data(), {n, n}}, View<float>{b.data(), {n, n}}, View<float>{c.data(), {n, n}}},
        automatic);
    if (d.kernel->backend != Backend::cuda) {  // which takes calls of any size
      EXPECT_EQ(d.kernel->backend == Backend::cpu, n == 32) << d.kernel->id;
    }
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) {
        float want = 0;
        for (Index p = 0; p < n; ++p)
          want += a[static_cast<std::size_t>(i * n + p)] * b[static_cast<std::size_t>(j * n + p)];
        ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], want);
      }
  }
}

}  // namespace
}  // namespace assay::program::dispatch_rules_test
