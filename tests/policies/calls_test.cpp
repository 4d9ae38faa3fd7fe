// Inputs of the policies' calls, and the policies' view of memory: previous contents, sentinels, crashes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>

#include "falsify/engine/trial.hpp"
#include "falsify/policies/policy.hpp"
#include "ops/silu.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify::policies {
namespace {

/// Returns silu on the CPU with a modified result.
Kernel altered(std::string_view id, const std::function<void(const ops::SiluArgs&)>& after,
               const std::function<void(const ops::SiluArgs&)>& before = {}) {
  Kernel k = kernel("silu/cpu/naive");
  k.id = id;
  k.run = [right = k.run, after, before](const Call& call, Device& device) {
    const ops::SiluArgs args = ops::SiluArgs::unpack(call);
    if (before) before(args);
    right(call, device);
    if (after) after(args);
  };
  return k;
}

void for_each(const ops::SiluArgs& args, const std::function<void(float&)>& f) {
  const auto y = args.y.as<float>();
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) f(y(i, j));
}

Rejection judged(std::string_view name, const Kernel& k) {
  Worker worker(std::chrono::seconds(20));
  return judge(policy(name), operation(k.op), k, {.cases = 3}, worker).rejected;
}

/// Returns a kernel whose result is off by `ulps` units in the last place.
Kernel off_by_ulps(int ulps) {
  return altered("silu/cpu/ulps", [ulps](const ops::SiluArgs& args) {
    for_each(args, [&](float& y) {
      if (y != 0) y = std::bit_cast<float>(std::bit_cast<std::uint32_t>(y) + static_cast<std::uint32_t>(ulps));
    });
  });
}

TEST(Calls, RightKernelsAreAccepted) {
  for (const std::string_view name :
       {"assay", "ggml", "PyTorch", "PyTorch devices", "oneDNN", "provable-contracts", "leaderboard"})
    EXPECT_FALSE(judged(name, kernel("silu/cpu/naive")))
        << name << ": " << judged(name, kernel("silu/cpu/naive")).value_or("");
}

TEST(Calls, UnitsInTheLastPlace) {
  EXPECT_FALSE(judged("provable-contracts", off_by_ulps(2)));
  EXPECT_TRUE(judged("provable-contracts", off_by_ulps(7)));
  EXPECT_FALSE(judged("leaderboard", off_by_ulps(7)));
}

/// Adds to the previous contents of y: detected if outputs do not start as zeros.
TEST(Calls, MemoryBefore) {
  float held[64 * 1024] = {};
  const Kernel adding = altered(
      "silu/cpu/adding",
      [&held](const ops::SiluArgs& args) {
        std::size_t at = 0;
        for_each(args, [&](float& y) { y += held[at++ % std::size(held)]; });
      },
      [&held](const ops::SiluArgs& args) {
        std::size_t at = 0;
        for_each(args, [&](float& y) { held[at++ % std::size(held)] = y; });
      });
  EXPECT_TRUE(judged("ggml", adding));                 // random values
  EXPECT_TRUE(judged("oneDNN", adding));               // NaN
  EXPECT_TRUE(judged("PyTorch", adding));              // the result of the previous call
  EXPECT_FALSE(judged("provable-contracts", adding));  // zeros
}

/// One store past the end: detected by sentinels.
TEST(Calls, Sentinels) {
  const Kernel spilling = altered("silu/cpu/spilling", [](const ops::SiluArgs& args) {
    const auto y = args.y.as<float>();
    if (args.m > 0 && args.n > 0) (&y(args.m - 1, args.n - 1))[1] = 0;
  });
  EXPECT_TRUE(judged("ggml", spilling));
  EXPECT_TRUE(judged("assay", spilling));
  EXPECT_FALSE(judged("leaderboard", spilling));
}

TEST(Calls, CrashesAreSeenByAll) {
  const Kernel dying = altered("silu/cpu/dying", [](const ops::SiluArgs&) { std::abort(); });
  for (const Policy* p : policies())
    if (p->judge || !p->rules_for("silu").empty()) {
      EXPECT_TRUE(judged(p->name, dying)) << p->name;
    }
}

/// Backward kernels: finite differences detect a wrong gradient unless they are vacuous.
TEST(Calls, FiniteDifferences) {
  const Kernel& right = kernel("rmsnorm_backward/cpu/naive");
  Kernel wrong = right;
  wrong.id = "rmsnorm_backward/cpu/wrong";
  wrong.run = [&right](const Call& call, Device& device) {
    right.run(call, device);
    auto* dx = static_cast<float*>(call.tensors[4].data);
    for (Index i = 0; i < call.tensors[4].shape.size(); ++i) dx[i] *= 1.01F;
  };
  EXPECT_FALSE(judged("ggml grad", right));
  EXPECT_TRUE(judged("ggml grad", wrong));
  // silu at +-150 with steps of 15: where the gradient is 0 the measure is NaN, so that any gradient of zeros passes.
  Kernel nothing = kernel("silu_backward/cpu/naive");
  nothing.id = "silu_backward/cpu/nothing";
  nothing.run = [](const Call& call, Device&) {
    auto* dx = static_cast<float*>(call.tensors[2].data);
    for (Index i = 0; i < call.tensors[2].shape.size(); ++i) dx[i] = 0;
  };
  EXPECT_FALSE(judged("ggml grad", nothing));
  EXPECT_TRUE(judged("leaderboard", nothing));
}

/// The norm of 2^20 values with squared sum 23.3: the policy tolerates an error of 8% and no more.
TEST(Calls, SquaresOfTheNorm) {
  const Kernel& right = kernel("global_grad_norm/cpu/naive");
  const auto scaled = [&right](float factor) {
    Kernel k = right;
    k.id = "global_grad_norm/cpu/scaled";
    k.run = [&right, factor](const Call& call, Device& device) {
      right.run(call, device);
      *static_cast<float*>(call.tensors[1].data) *= factor;
    };
    return judged("llm.c", k);
  };
  EXPECT_FALSE(scaled(1));
  EXPECT_FALSE(scaled(0.97F));
  EXPECT_TRUE(scaled(0.94F));
}

/// gradcheck compares the whole Jacobian, each column twice.
TEST(Calls, WholeJacobian) {
  const Kernel& right = kernel("softmax_backward/cpu/naive");
  static float state = 0;
  const auto altered_by = [&right](const std::function<void(float*, Index)>& change) {
    Kernel k = right;
    k.id = "softmax_backward/cpu/altered";
    k.run = [&right, change](const Call& call, Device& device) {
      right.run(call, device);
      change(static_cast<float*>(call.tensors[2].data), call.tensors[2].shape.size());
    };
    return judged("gradcheck", k);
  };
  EXPECT_FALSE(judged("gradcheck", right)) << judged("gradcheck", right).value_or("");
  EXPECT_TRUE(altered_by([](float* dx, Index n) {
    for (Index i = 0; i < n; ++i) dx[i] *= 1.01F;
  }));
  EXPECT_TRUE(altered_by([](float* dx, Index n) {  // preserves the sums of rows
    if (n > 1) dx[0] += 1e-3F, dx[1] -= 1e-3F;
  }));
  EXPECT_TRUE(altered_by([](float* dx, Index n) {
    state = 1e-7F - state;
    if (n > 0) dx[0] += state;
  }));
}

/// Every sample is a valid call of the contract: dims, params, values.
TEST(Calls, SamplesAreCalls) {
  for (const Policy* p : policies()) {
    if (!p->rules) continue;
    for (const Rule& rule : p->rules()) {
      const OpDescriptor& op = operation(rule.op);
      Kernel idle = *kernels_of(rule.op).front();
      idle.run = [](const Call&, Device&) {};
      idle.refuse = {};
      Worker worker(std::chrono::seconds(20));
      Caller caller(*p, op, idle, worker);
      for (std::size_t i = 0; i < rule.samples.size(); i += p->name == "provable-contracts" ? 64 : 1) {
        const Sample& sample = rule.samples[i];
        EXPECT_NO_THROW(caller.run(make_sample(op, idle, rule, sample, 1), sample.layout))
            << p->name << " " << rule.op << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace assay::falsify::policies
