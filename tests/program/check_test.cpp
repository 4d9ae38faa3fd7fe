// Runs whose every step is held to its bounds.
#include "falsify/program/check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "core/errors.hpp"
#include "falsify/engine/random.hpp"
#include "feed_forward.hpp"
#include "program/differentiate.hpp"

namespace assay::program::check_test {
namespace {

using falsify::check_steps;
using falsify::CheckedRun;

Differentiated block() {
  Block made(19, 33, 70);
  std::vector<Value> wanted{made.x};
  for (const Parameter& p : made.builder.program().parameters) wanted.push_back(p.value);
  return differentiate(made.builder.program(), std::vector{made.y}, wanted);
}

void set_leaves(Session& session) {
  const Program& program = session.program();
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    const Value v{static_cast<std::int32_t>(i)};
    const Kind kind = program.storage_of(v).kind;
    if (program.base_of(v) != v || (kind != Kind::input && kind != Kind::parameter)) continue;
    falsify::Random random(i);
    std::vector<float> values(static_cast<std::size_t>(program[v].shape.size()));
    for (float& x : values) x = static_cast<float>(random.gaussian());
    session.set(v, values);
  }
}

/// Checks a block of which one step is computed by another kernel.
CheckedRun checked(const Differentiated& d, Device& device, std::size_t step = SIZE_MAX,
                   const Kernel* wrong = nullptr) {
  std::size_t chosen = 0;
  Session session(d.program, device, {.choose = [&](const Step&) {
                    return chosen++ == step ? wrong : static_cast<const Kernel*>(nullptr);
                  }});
  set_leaves(session);
  return check_steps(session);
}

/// True for a fault that reads and writes where the right kernel does: this process does not survive all others.
bool computes_in_its_place(const Kernel& mutant) {
  const std::string_view classes[] = {"formula", "constant", "precision", "accumulation", "mask", "head_map"};
  return std::ranges::find(classes, mutant.fault_class) != std::end(classes);
}

class CheckedRuns : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    try {
      device_ = &device(GetParam());
    } catch (const Unavailable& e) {
      GTEST_SKIP() << e.what();
    }
  }
  Device* device_ = nullptr;
};

TEST_P(CheckedRuns, OfRightKernelsPass) {
  const Differentiated d = block();
  const CheckedRun run = checked(d, *device_);
  ASSERT_FALSE(run.fault) << run.fault->label << ": " << run.fault->finding.message;
  EXPECT_EQ(run.steps, d.program.steps.size());
  std::int64_t written = 0;
  for (const Step& step : d.program.steps)
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
      if (step.op->tensors[t].role != Role::in) written += d.program[step.tensors[t]].shape.size();
  EXPECT_EQ(run.elements, written);  // 19 rows are few enough for the whole oracle
  EXPECT_GT(run.nonzero, written / 2);
  EXPECT_GT(run.worst, 0);
  EXPECT_LE(run.worst, 1);
}

/// A planted fault of a step's kernel that shows at this shape is found at that step.
TEST_P(CheckedRuns, NameTheStepWhoseKernelIsWrong) {
  const Differentiated d = block();
  std::map<std::string_view, std::pair<int, int>> faults;  // by operation: planted, found
  for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
    const Step& step = d.program.steps[s];
    for (const Kernel& mutant : kernels()) {
      if (mutant.role != KernelRole::mutant || mutant.backend != GetParam() || mutant.op != step.op->name) continue;
      if (mutant.storage != DType::f32 || !computes_in_its_place(mutant)) continue;
      const CheckedRun run = checked(d, *device_, s, &mutant);
      auto& [planted, found] = faults[step.op->name];
      ++planted;
      if (!run.fault) continue;
      ++found;
      EXPECT_EQ(run.fault->step, s) << mutant.id;
      EXPECT_EQ(run.fault->label, describe(step)) << mutant.id;
    }
  }
  int shown = 0;
  for (const auto& [op, count] : faults) {
    std::printf("%s: %d of %d planted faults show at this shape\n", std::string(op).c_str(), count.second, count.first);
    shown += count.second > 0;
  }
  EXPECT_GE(shown, 4) << "operations whose faults show";
}

/// A right kernel, and then `meddle`.
Kernel then(std::string_view op, std::function<void(const Call&)> meddle) {
  const Kernel& right = *kernels_of(op).front();
  Kernel kernel = right;
  kernel.run = [&right, meddle = std::move(meddle)](const Call& call, Device& device) {
    right.run(call, device);
    meddle(call);
  };
  return kernel;
}

struct Planted {
  std::size_t step = SIZE_MAX;
  std::string value, says;
};
Planted fault_of(const CheckedRun& run) {
  if (!run.fault) return {};
  return {run.fault->step, run.fault->value, run.fault->finding.message};
}

/// The smallest wrong result: one element of one result of one step, beyond its bound.
TEST(CheckedSteps, EveryElementOfEveryResultCounts) {
  const Differentiated d = block();
  falsify::Random random(7);
  for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
    const Step& step = d.program.steps[s];
    for (std::size_t t = 0; t < step.tensors.size(); ++t) {
      if (step.op->tensors[t].role == Role::in) continue;
      const auto at = random.below(static_cast<std::uint64_t>(d.program[step.tensors[t]].shape.size()));
      const Kernel off = then(step.op->name, [&](const Call& call) {
        float& y = static_cast<float*>(call.tensors[t].data)[at];
        y += 1 + std::fabs(y) / 8;
      });
      const Planted fault = fault_of(checked(d, device(Backend::cpu), s, &off));
      EXPECT_EQ(fault.step, s) << describe(step);
      EXPECT_EQ(fault.value, d.program[step.tensors[t]].name) << describe(step);
    }
  }
}

TEST(CheckedMemory, AStepLeavesWhatItReads) {
  const Differentiated d = block();
  const Kernel writes = then("rmsnorm", [](const Call& call) { static_cast<float*>(call.tensors[0].data)[40] += 1; });
  const Planted fault = fault_of(checked(d, device(Backend::cpu), 0, &writes));
  EXPECT_EQ(fault.step, 0u);
  EXPECT_EQ(fault.value, "x");
  EXPECT_NE(fault.says.find("it changed what it only reads"), std::string::npos) << fault.says;
}

/// Checks the block with a kernel at `step` that adds 1 to one element of a tensor of another step.
Planted stray_write(std::size_t step, std::size_t other, std::size_t tensor, Index element) {
  const Differentiated d = block();
  float* stray = nullptr;  // null while the session prepares its kernels
  const Kernel writes = then(d.program.steps[step].op->name, [&](const Call&) {
    if (stray != nullptr) stray[element] += 1;
  });
  std::size_t chosen = 0;
  Session session(d.program, device(Backend::cpu),
                  {.reuse = false, .choose = [&](const Step&) { return chosen++ == step ? &writes : nullptr; }});
  set_leaves(session);
  stray = static_cast<float*>(session.call(other).tensors[tensor].data);
  return fault_of(check_steps(session));
}

TEST(CheckedMemory, AnOperandIsAsItsWriterLeftIt) {
  // Step 3 multiplies what steps 1 and 2 have made; step 2 has changed what step 1 made.
  const Planted fault = stray_write(2, 1, 2, 5);
  EXPECT_EQ(fault.step, 3u);
  EXPECT_NE(fault.says.find("it reads what is no longer as ffn.matmul_nt"), std::string::npos) << fault.says;
}

TEST(CheckedMemory, NoStepWritesToTheParametersOfAnother) {
  const std::size_t last = block().program.steps.size() - 1;
  const Planted fault = stray_write(last, 0, 1, 3);
  EXPECT_EQ(fault.step, last + 1);
  EXPECT_EQ(fault.value, "ffn.norm.weight");
}

TEST(CheckedMemory, TheWholeRunHasTheBitsOfItsSteps) {
  const Differentiated d = block();
  int calls = 0;
  std::size_t step = d.program.steps.size();
  while (d.program.steps[step - 1].op->name != "matmul_nt") --step;
  const Kernel drifts =
      then("matmul_nt", [&](const Call& call) {  // within its bound every time, but at times not the same
        float& y = static_cast<float*>(call.tensors.back().data)[5];
        if (++calls % 2 == 0) y += 4e-7F * std::fabs(y);
      });
  --step;
  const CheckedRun run = checked(d, device(Backend::cpu), step, &drifts);
  ASSERT_TRUE(run.fault);
  EXPECT_EQ(run.steps, d.program.steps.size());
  EXPECT_EQ(run.fault->label, "the whole run");
}

TEST(CheckedMemory, ACheckedRunLeavesWhatOneRunDoes) {
  const Differentiated d = block();
  Session once(d.program, device(Backend::cpu)), checked_once(d.program, device(Backend::cpu));
  set_leaves(once), set_leaves(checked_once);
  once.run();
  ASSERT_FALSE(check_steps(checked_once).fault);
  for (const Value g : d.gradients) EXPECT_EQ(once.get<float>(g), checked_once.get<float>(g));
}

INSTANTIATE_TEST_SUITE_P(On, CheckedRuns, testing::Values(Backend::cpu, Backend::cuda_host, Backend::vulkan),
                         [](const auto& info) {
                           std::string text(name(info.param));
                           std::ranges::replace(text, '-', '_');
                           return text;
                         });

}  // namespace
}  // namespace assay::program::check_test
