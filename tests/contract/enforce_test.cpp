// Enforcement at run time: exceptions, their timing, their source, and counters.
#include "contract/enforce.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/errors.hpp"
#include "ops/matmul.hpp"
#include "runtime/registry.hpp"
#include "serve/trace.hpp"

namespace assay::contract::enforce_test {
namespace {

int runs = 0;

void multiply(const ops::MatmulArgs& args, Device&) {
  ++runs;
  const auto a = args.a.as<const float>(), b = args.b.as<const float>();
  const auto c = args.c.as<float>();
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0;
      for (Index p = 0; p < args.k; ++p) sum += a(i, p) * b(p, j);
      c(i, j) = sum;
    }
}
void leave_zero(const ops::MatmulArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.c.as<float>()(i, j) = 0;
}
void give_up(const ops::MatmulArgs&, Device&) { throw DeviceError("vkQueueSubmit", "VK_ERROR_DEVICE_LOST"); }

template <void (*F)(const ops::MatmulArgs&, Device&)>
Kernel kernel_of(int priority = 0, KernelRole role = KernelRole::kernel) {
  return {.op = "matmul",
          .id = "matmul/cpu/test",
          .source = "tests/contract/enforce_test.cpp",
          .summary = "of this test",
          .role = role,
          .run = &run_typed<ops::MatmulArgs, F>,
          .priority = priority};
}
const Kernel kCorrect = kernel_of<&multiply>();
const Kernel kWrong = kernel_of<&leave_zero>();
const Kernel kFailing = kernel_of<&give_up>();

class Enforce : public testing::Test {
 protected:
  void SetUp() override { set_level(Level::pre); }
  void TearDown() override { set_level(Level::pre); }

  /// Arguments of [2, 3] times [3, 2].
  ops::MatmulArgs args() {
    return {2, 3, 2, View<float>{a.data(), {2, 3}}, View<float>{b.data(), {3, 2}}, View<float>{c.data(), {2, 2}}};
  }
  std::string thrown(const ops::MatmulArgs& call, const Kernel& kernel = kCorrect) {
    try {
      ops::matmul(call, kernel, device(Backend::cpu));
      return "";
    } catch (const ContractViolation& e) {
      return e.what();
    }
  }
  std::uint64_t count(std::string_view clause) {
    const OpDescriptor& op = operation("matmul");
    for (std::size_t i = 0; i < op.clauses.size(); ++i)
      if (op.clauses[i].id == clause) return op.counters()[i];
    ADD_FAILURE() << "no clause " << clause;
    return 0;
  }

  std::vector<float> a{1, 2, 3, 4, 5, 6}, b{1, 2, 3, 4, 5, 6}, c = std::vector<float>(4, -1);
};

TEST_F(Enforce, ViolationReadsAsTheContractWordsIt) {
  ops::MatmulArgs call = args();
  call.a = View<float>{a.data(), {1, 3}};
  call.m = 1, call.k = 4, call.c = View<float>{c.data(), {1, 2}};
  EXPECT_EQ(thrown(call),
            "Contract [matmul] Pre-condition violated: a.len() == m * k (MM-PRE-001): a.len() = 3, m*k = 4");
}

TEST_F(Enforce, ViolationNamesTheFirstConditionThatIsFalse) {
  ops::MatmulArgs call = args();
  call.k = 1048577;
  EXPECT_EQ(thrown(call),
            "Contract [matmul] Pre-condition violated: m_min <= m && m <= m_max && k_min <= k && "
            "k <= k_max && n_min <= n && n <= n_max (MM-PRE-006): k = 1048577, k_max = 1048576");
  call = args();
  call.c = View<float>{c.data(), {4, 1}};
  EXPECT_EQ(thrown(call),
            "Contract [matmul] Pre-condition violated: a is [m, k], b is [k, n], c is [m, n] "
            "(MM-PRE-003): c.shape() = [4, 1], Shape{m,n} = [2, 2]");
}

TEST_F(Enforce, ViolationShowsShapesWhereThereAreNoSides) {
  ops::MatmulArgs call = args();
  call.b = View<float>{b.data(), {3, 2}, {1, 1}};
  EXPECT_EQ(thrown(call),
            "Contract [matmul] Pre-condition violated: rows are dense and do not overlap: inner stride 1, "
            "leading dimension at least the width (MM-PRE-004): b = [3, 2] with strides [1, 1]");
  call = args();
  call.a = View<float>{nullptr, {2, 3}};
  EXPECT_EQ(thrown(call),
            "Contract [matmul] Pre-condition violated: a tensor of at least one element has memory "
            "(MM-PRE-007): a = [2, 3] at no address");
  call = args();
  call.c = View<float>{a.data(), {2, 2}};
  EXPECT_EQ(thrown(call),
            "Contract [matmul] Pre-condition violated: c shares no memory with a or b (MM-PRE-005): "
            "c = [2, 2], a = [2, 3]");
}

TEST_F(Enforce, BrokenCallNeverReachesTheKernel) {
  ops::MatmulArgs call = args();
  call.n = 3;
  runs = 0;
  EXPECT_NE(thrown(call), "");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(c, std::vector<float>(4, -1));
  EXPECT_EQ(thrown(args()), "");
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(c, std::vector<float>({22, 28, 49, 64}));
}

TEST_F(Enforce, OffChecksNothing) {
  set_level(Level::off);
  ops::MatmulArgs call = args();
  call.k = 1;  // violates MM-PRE-001
  const std::uint64_t before = count("MM-PRE-001");
  EXPECT_EQ(thrown(call), "");
  EXPECT_EQ(count("MM-PRE-001"), before);
}

TEST_F(Enforce, WrongResultsPassAtPreAndFailAtFull) {
  EXPECT_EQ(thrown(args(), kWrong), "");
  set_level(Level::full);
  const std::string what = thrown(args(), kWrong);
  EXPECT_EQ(what.find("Contract [matmul] Post-condition violated: C·r = A·(B·r) within its bound (MM-POST-003): "), 0u)
      << what;
  EXPECT_EQ(thrown(args(), kCorrect), "");
}

TEST_F(Enforce, ErrorsOfTheKernelPassThroughAtEveryLevel) {
  for (Level level : {Level::off, Level::pre, Level::full}) {
    set_level(level);
    EXPECT_THROW(ops::matmul(args(), kFailing, device(Backend::cpu)), DeviceError);
  }
}

TEST_F(Enforce, CountsEveryEvaluation) {
  const OpDescriptor& op = operation("matmul");
  std::ranges::fill(op.counters(), 0);
  EXPECT_EQ(never_evaluated(op).size(), op.clauses.size());
  thrown(args());
  thrown(args());
  EXPECT_EQ(count("MM-PRE-001"), 2u);
  EXPECT_EQ(never_evaluated(op), std::vector<std::string_view>({"MM-POST-003"}));
  set_level(Level::full);
  thrown(args());
  EXPECT_TRUE(never_evaluated(op).empty());
  EXPECT_EQ(count("MM-POST-003"), 1u);
}

TEST_F(Enforce, ClausesBehindAFalseOneAreNotCounted) {
  const std::uint64_t before = count("MM-PRE-002");
  ops::MatmulArgs call = args();
  call.m = 1;
  EXPECT_NE(thrown(call), "");
  EXPECT_EQ(count("MM-PRE-002"), before);
}

TEST_F(Enforce, CallsOfSeveralThreadsAreAllChecked) {
  std::ranges::fill(operation("matmul").counters(), 0);
  constexpr int kThreads = 4, kCalls = 2000;
  std::vector<int> caught(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      ops::MatmulArgs call = args();
      call.m = 1;
      for (int i = 0; i < kCalls; ++i) caught[static_cast<std::size_t>(t)] += !thrown(call).empty();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(caught, std::vector<int>(kThreads, kCalls));
  EXPECT_EQ(count("MM-PRE-001"), static_cast<std::uint64_t>(kThreads * kCalls));
}

TEST_F(Enforce, ARunIsASpanThatNamesShapeAndKernel) {
  struct Kept final : trace::Sink {
    void ended(const trace::Span& span) noexcept override { spans.push_back(span); }
    std::vector<trace::Span> spans;
  } kept;
  {
    const trace::Recording recording(kept);
    thrown(args());
  }
  ASSERT_EQ(kept.spans.size(), 1U);
  EXPECT_EQ(kept.spans[0].name, "matmul");
  EXPECT_EQ(kept.spans[0].attribute("shape"), "m=2 k=3 n=2");
  EXPECT_EQ(kept.spans[0].attribute("kernel"), "matmul/cpu/test");
  EXPECT_EQ(kept.spans[0].attribute("backend"), "cpu");
}

TEST_F(Enforce, UnpackRefusesACallOfAnotherOperation) {
  Call call = args().pack();
  call.dims.pop_back();
  EXPECT_THROW(operation("matmul").checked(call, kCorrect, device(Backend::cpu)), InputError);
}

}  // namespace
}  // namespace assay::contract::enforce_test
