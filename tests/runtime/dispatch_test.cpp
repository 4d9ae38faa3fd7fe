// Automatic dispatch: order, skipped kernels and the reasons, failures, whole-layer passes, operands on devices. A
// kernel that is switched off stays off for the process, so each test runs in a child.
#include "serve/dispatch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "contract/enforce.hpp"
#include "far_device.hpp"
#include "serve/prewarm.hpp"
#include "serve/serve.hpp"

namespace assay {
namespace {

using far::behaviour;
using Why = SkippedCandidate::Why;

template <Backend backend>
std::unique_ptr<Device> make() {
  if (behaviour(backend).absent) throw Unavailable("far device", "it is not plugged in");
  return std::make_unique<far::FarDevice>(backend);
}
const DeviceRegistration cuda_device(Backend::cuda, &make<Backend::cuda>);
const DeviceRegistration vulkan_device(Backend::vulkan, &make<Backend::vulkan>);

bool simd_lacks_memory = false;
void simd(const ops::MatmulArgs& args, Device& device) {
  if (simd_lacks_memory) throw Unavailable("scratch memory", "none is left");
  far::multiply(args, device);
}

template <void (*F)(const ops::MatmulArgs&, Device&)>
Kernel row(std::string_view id, int priority, double above = -1) {
  return {.id = id,
          .summary = "of this test",
          .run = &run_typed<ops::MatmulArgs, F>,
          .priority = priority,
          .automatic_above = above};
}
const KernelRegistration kernels_of_this_test[] = {
    KernelRegistration(row<&far::multiply>("matmul/cpu/loops", -1)),
    KernelRegistration(row<&simd>("matmul/cpu/simd", 1)),
    KernelRegistration(row<&far::multiply>("matmul/vulkan/far", 0, 32768)),
    KernelRegistration(row<&far::multiply>("matmul/cuda/far", 0)),
};

/// An n x n product on the host with rows one element further apart than their width.
struct Square {
  explicit Square(Index size) : n(size), a(size_of_matrix()), b(size_of_matrix()), c(size_of_matrix(), -1) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
      b[i] = static_cast<float>(static_cast<int>(i % 5) - 2);
    }
  }
  std::size_t size_of_matrix() const { return static_cast<std::size_t>(n * (n + 1)); }
  ops::MatmulArgs args() {
    const Shape shape{n, n}, strides{n + 1, 1};
    return {n,
            n,
            n,
            View<float>{a.data(), shape, strides},
            View<float>{b.data(), shape, strides},
            View<float>{c.data(), shape, strides}};
  }
  /// Returns true if every element is correct and every gap between rows is unchanged.
  bool right() const {
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j <= n; ++j) {
        float want = j == n ? -1.0F : 0.0F;
        for (Index p = 0; j < n && p < n; ++p) want += a[at(i, p)] * b[at(p, j)];
        if (c[at(i, j)] != want) return false;
      }
    return true;
  }
  bool untouched() const {
    return std::ranges::all_of(c, [](float x) { return x == -1; });
  }
  std::size_t at(Index i, Index j) const { return static_cast<std::size_t>(i * (n + 1) + j); }

  Index n;
  std::vector<float> a, b, c;
};

std::vector<std::string> messages;

/// Runs `test` in a child process with a sink set.
template <class Test>
void in_child(const Test& test) {
  EXPECT_EXIT(
      {
        set_dispatch_sink([](const std::string& message) { messages.push_back(message); });
        test();
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

std::string served_by(Square& s) { return std::string(ops::matmul(s.args(), automatic).kernel->id); }

TEST(Dispatch, CudaFirst) {
  in_child([] {
    Square s(4);
    const Dispatched d = ops::matmul(s.args(), automatic);
    EXPECT_EQ(d.kernel->id, "matmul/cuda/far");
    EXPECT_TRUE(d.passed_over.empty());
    EXPECT_TRUE(s.right());
    EXPECT_EQ(fallbacks(), 0U);
    EXPECT_TRUE(messages.empty());
  });
}

TEST(Dispatch, ABackEndThatIsNotHereIsSwitchedOffWithOneMessageAndNamedInEveryResult) {
  in_child([] {
    behaviour(Backend::cuda).absent = true;
    Square s(33);
    for (int call = 0; call < 3; ++call) {
      const Dispatched d = ops::matmul(s.args(), automatic);
      EXPECT_EQ(d.kernel->id, "matmul/vulkan/far");
      ASSERT_EQ(d.passed_over.size(), 1U);
      EXPECT_EQ(d.passed_over[0].backend, Backend::cuda);
      EXPECT_EQ(d.passed_over[0].reason, Why::switched_off);
      EXPECT_EQ(d.passed_over[0].says, "it is not plugged in");
      EXPECT_TRUE(d.fell_back());
    }
    EXPECT_TRUE(s.right());
    EXPECT_EQ(fallbacks(), 3U);
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_EQ(messages[0], "back end cuda is switched off for this process: it is not plugged in");
    EXPECT_EQ(switched_off(Backend::cuda), "it is not plugged in");
    EXPECT_EQ(switched_off(Backend::vulkan), std::nullopt);
  });
}

TEST(Dispatch, SmallProductsStayOnTheCpu) {
  in_child([] {
    behaviour(Backend::cuda).absent = true;
    Square small(32), large(33);  // 32³ = 32768
    const Dispatched d = ops::matmul(small.args(), automatic);
    EXPECT_EQ(d.kernel->id, "matmul/cpu/simd");
    ASSERT_EQ(d.passed_over.size(), 2U);
    EXPECT_EQ(d.passed_over[1].reason, Why::too_small);
    EXPECT_FALSE(d.passed_over[1].fallback());
    EXPECT_EQ(behaviour(Backend::vulkan).made, 0) << "a device was made for a call that it is not to serve";
    EXPECT_EQ(served_by(large), "matmul/vulkan/far");
    EXPECT_TRUE(small.right() && large.right());
  });
}

/// An extent of 0 often stands for an absent tensor, such as the bias of a linear layer: the rest may be large.
TEST(Dispatch, AnAbsentExtentMakesNoCallSmall) {
  in_child([] {
    behaviour(Backend::cuda).absent = true;
    std::vector<float> c(256 * 256, -1);
    const ops::MatmulArgs args{
        256, 0, 256, View<float>{nullptr, {256, 0}}, View<float>{nullptr, {0, 256}}, View<float>{c.data(), {256, 256}}};
    EXPECT_EQ(ops::matmul(args, automatic).kernel->id, "matmul/vulkan/far");
    EXPECT_TRUE(std::ranges::all_of(c, [](float x) { return x == 0; }));
  });
}

TEST(Dispatch, ADeviceThatFailsOnceIsNotTriedAgain) {
  for (bool far::Behaviour::*fault :
       {&far::Behaviour::fails, &far::Behaviour::upload_fails, &far::Behaviour::download_fails})
    in_child([fault] {
      behaviour(Backend::cuda).*fault = true;
      Square s(33);
      EXPECT_EQ(served_by(s), "matmul/vulkan/far");
      EXPECT_TRUE(s.right());
      const int runs = behaviour(Backend::cuda).runs;
      behaviour(Backend::cuda).*fault = false;
      behaviour(Backend::vulkan).*fault = true;
      EXPECT_EQ(served_by(s), "matmul/cpu/simd");
      EXPECT_TRUE(s.right());
      EXPECT_EQ(behaviour(Backend::cuda).runs, runs);
      EXPECT_EQ(messages.size(), 2U);
      EXPECT_NE(switched_off(Backend::vulkan)->find("FAR_LOST"), std::string::npos);
    });
}

TEST(Dispatch, ACallThatDoesNotFitPassesOnAndSwitchesNothingOff) {
  in_child([] {
    behaviour(Backend::cuda).memory = 64;
    Square s(4);
    const Dispatched d = ops::matmul(s.args(), automatic);
    EXPECT_EQ(d.kernel->id, "matmul/cpu/simd");
    EXPECT_EQ(d.passed_over[0].reason, Why::refused);
    EXPECT_TRUE(d.fell_back());
    EXPECT_TRUE(messages.empty());
    behaviour(Backend::cuda).memory = 1 << 20;
    EXPECT_EQ(served_by(s), "matmul/cuda/far");
    EXPECT_EQ(fallbacks(), 1U);
  });
}

TEST(Dispatch, CallsAreCountedByTheBackEndThatServedThem) {
  in_child([] {
    const auto counts = [] {
      return std::array{serve::calls(Backend::cpu), serve::calls(Backend::vulkan), serve::calls(Backend::cuda)};
    };
    Square small(4), large(33);
    const contract::PlannedCall planned[] = {{"matmul", {33, 33, 33}}};
    EXPECT_EQ(contract::prewarm(planned, automatic).prepared.size(), 1U);
    EXPECT_EQ(counts(), (std::array<std::uint64_t, 3>{0, 0, 0})) << "preparation is no call";
    EXPECT_EQ(served_by(small), "matmul/cuda/far");
    behaviour(Backend::cuda).fails = true;
    EXPECT_EQ(served_by(large), "matmul/vulkan/far");
    EXPECT_EQ(served_by(small), "matmul/cpu/simd");
    ops::matmul(small.args());
    ops::matmul(small.args(), kernel("matmul/cpu/loops"), device(Backend::cpu));
    EXPECT_EQ(counts(), (std::array<std::uint64_t, 3>{3, 1, 1}));
  });
}

/// KAIZEN-003: a message a call floods a log. Calls of the CPU say nothing.
TEST(Dispatch, TheFirstCallOfABackEndAndEachTenThousandthAreSaid) {
  in_child([] {
    std::vector<std::string> said;
    serve::set_call_sink([&](const std::string& message) { said.push_back(message); });
    Square s(2);
    for (int call = 0; call < 10000; ++call) {
      EXPECT_EQ(served_by(s), "matmul/cuda/far");
      ops::matmul(s.args());
    }
    EXPECT_EQ(said, (std::vector<std::string>{"back end cuda has served its first call: matmul (m=2 k=2 n=2)",
                                              "back end cuda has served 10000 calls"}));
    EXPECT_EQ(serve::calls(Backend::cpu), 10000U);
    EXPECT_TRUE(messages.empty());
    serve::set_call_sink({});
    for (int call = 0; call < 10000; ++call) ops::matmul(s.args(), automatic);
    EXPECT_EQ(said.size(), 2U);
  });
}

TEST(Dispatch, ABackEndThatPreparesNothingIsSwitchedOffBeforeTheFirstCall) {
  in_child([] {
    behaviour(Backend::cuda).prepare_fails = true;
    const contract::PlannedCall planned[] = {{"matmul", {33, 33, 33}}};
    const contract::Prewarmed made = contract::prewarm(planned, automatic);
    ASSERT_EQ(made.prepared.size(), 1U);
    EXPECT_EQ(made.prepared[0].kernel->id, "matmul/vulkan/far");
    EXPECT_EQ(behaviour(Backend::vulkan).prepared, 1);
    EXPECT_TRUE(switched_off(Backend::cuda).has_value());
    EXPECT_EQ(messages.size(), 1U);
    Square s(33);
    EXPECT_EQ(served_by(s), "matmul/vulkan/far");
    EXPECT_EQ(behaviour(Backend::cuda).runs, 0);
  });
}

TEST(Dispatch, TheCpuTriesItsKernelsByPriority) {
  in_child([] {
    behaviour(Backend::cuda).absent = behaviour(Backend::vulkan).absent = true;
    simd_lacks_memory = true;
    Square s(33);
    const Dispatched d = ops::matmul(s.args(), automatic);
    EXPECT_EQ(d.kernel->id, "matmul/cpu/loops");
    ASSERT_EQ(d.passed_over.size(), 3U);
    EXPECT_EQ(d.passed_over[2].says, "matmul/cpu/simd: scratch memory is unavailable: none is left");
    EXPECT_TRUE(s.right());
  });
}

TEST(Dispatch, ALayerPassKeepsHostOperandsOfItsThreadOnTheCpu) {
  in_child([] {
    Square s(33), other(33);
    {
      const LayerPass pass;
      {
        const LayerPass inner;
        EXPECT_EQ(served_by(s), "matmul/cpu/simd");
      }
      const Dispatched d = ops::matmul(s.args(), automatic);
      EXPECT_EQ(d.kernel->id, "matmul/cpu/simd");
      EXPECT_EQ(d.passed_over[0].reason, Why::suppressed);
      EXPECT_FALSE(d.fell_back());
      std::thread([&] { EXPECT_EQ(served_by(other), "matmul/cuda/far"); }).join();
    }
    EXPECT_EQ(served_by(s), "matmul/cuda/far");
    EXPECT_TRUE(s.right() && other.right());
  });
}

/// Tensors of a product of 2 x 2 in a device's memory.
struct Resident {
  explicit Resident(Device& device) : a(device.allocate(16)), b(device.allocate(16)), c(device.allocate(16)) {
    const float values[] = {1, 2, 3, 4};
    device.upload(a.address(), values, 16);
    device.upload(b.address(), values, 16);
  }
  ops::MatmulArgs args() const {
    const auto at = [](const Buffer& buffer) { return static_cast<float*>(buffer.address()); };
    return {2, 2, 2, View<float>{at(a), {2, 2}}, View<float>{at(b), {2, 2}}, View<float>{at(c), {2, 2}}};
  }
  Buffer a, b, c;
};

TEST(Dispatch, OperandsOnADeviceAreServedThere) {
  in_child([] {
    contract::set_level(contract::Level::full);
    Device& vulkan = device(Backend::vulkan);
    const Resident r(vulkan);
    const LayerPass pass;  // applies to host operands only; and 2³ is a small product
    EXPECT_EQ(ops::matmul(r.args(), automatic).kernel->id, "matmul/vulkan/far");
    std::array<float, 4> got{};
    vulkan.download(got.data(), r.c.address(), 16);
    EXPECT_EQ(got, (std::array<float, 4>{7, 10, 15, 22}));
  });
}

TEST(Dispatch, OperandsOfSeveralDevicesAreTheCallersMistake) {
  in_child([] {
    const Resident r(device(Backend::vulkan)), s(device(Backend::cuda));
    ops::MatmulArgs mixed = r.args();
    mixed.b = s.args().b;
    EXPECT_THROW(ops::matmul(mixed, automatic), InputError);
    float host[4] = {};
    mixed = r.args();
    mixed.c = View<float>{host, {2, 2}};
    EXPECT_THROW(ops::matmul(mixed, automatic), InputError);
  });
}

TEST(Dispatch, AFailureWhereTheOperandsLieIsTheCallersAndSwitchesOff) {
  in_child([] {
    const Resident r(device(Backend::vulkan));
    behaviour(Backend::vulkan).fails = true;
    for (int call = 0; call < 2; ++call) EXPECT_THROW(ops::matmul(r.args(), automatic), DeviceError);
    EXPECT_TRUE(switched_off(Backend::vulkan).has_value());
    EXPECT_EQ(messages.size(), 1U);
  });
}

TEST(Dispatch, AWrongResultIsAViolationNotAFallback) {
  in_child([] {
    contract::set_level(contract::Level::full);
    Square s(4);
    EXPECT_EQ(served_by(s), "matmul/cuda/far");
    behaviour(Backend::cuda).wrong = true;
    EXPECT_THROW(ops::matmul(s.args(), automatic), ContractViolation);
    Square broken(4);
    ops::MatmulArgs args = broken.args();
    args.m = 5;
    EXPECT_THROW(ops::matmul(args, automatic), ContractViolation);
    EXPECT_TRUE(broken.untouched());
    EXPECT_EQ(fallbacks(), 0U);
  });
}

TEST(Dispatch, WithoutASinkNothingIsPrinted) {
  EXPECT_EXIT(
      {
        behaviour(Backend::cuda).absent = behaviour(Backend::vulkan).absent = true;
        testing::internal::CaptureStdout();
        Square s(33);
        EXPECT_EQ(served_by(s), "matmul/cpu/simd");
        EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
        EXPECT_EQ(switched_off(Backend::vulkan), "it is not plugged in");
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), testing::Eq(""));  // standard error
}

TEST(Dispatch, ThreadsTakeTurnsOnADevice) {
  in_child([] {
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int call = 0; call < 100; ++call) {
          Square s(9);
          right += served_by(s) == "matmul/cuda/far" && s.right();
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 400);
    EXPECT_EQ(behaviour(Backend::cuda).runs, 400);
    EXPECT_EQ(behaviour(Backend::cuda).made, 1);
    EXPECT_FALSE(far::overlapped) << "two threads used a device at the same time";
  });
}

}  // namespace
}  // namespace assay
