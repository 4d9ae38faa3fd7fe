// Runs whose every step is held to its bounds.
#include "falsify/program/check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "blocks.hpp"
#include "core/errors.hpp"
#include "falsify/engine/random.hpp"
#include "on_device.hpp"
#include "program/differentiate.hpp"

namespace assay::program::check_test {
namespace {

using falsify::check_steps;
using falsify::CheckedRun;

constexpr std::string_view kBlock = "lora_on_all";

Differentiated block(std::string_view name = kBlock) { return Block(block_case(name)).differentiated(); }

void set_leaves(Session& session, std::string_view name = kBlock) { set_all(session, block_case(name)); }

/// Checks a block of which one step is computed by another kernel.
CheckedRun checked(const Differentiated& d, Device& device, std::size_t step = SIZE_MAX,
                   const Kernel* wrong = nullptr) {
  std::size_t chosen = 0;
  Session session(d.program, device, {.choose = [&](const Step&) { return chosen++ == step ? wrong : nullptr; }});
  set_leaves(session);
  return check_steps(session);
}

/// True for a fault that reads and writes where the right kernel does: this process does not survive all others.
bool computes_in_its_place(const Kernel& mutant) {
  const std::string_view classes[] = {"formula", "constant", "precision", "accumulation", "mask", "head_map"};
  return std::ranges::find(classes, mutant.fault_class) != std::end(classes);
}

class CheckedRuns : public OnDevice {};

TEST_P(CheckedRuns, OfRightKernelsPass) {
  for (const BlockCase& c : block_cases()) {
    const Differentiated d = block(c.name);
    Session session(d.program, *device_);
    set_leaves(session, c.name);
    const CheckedRun run = check_steps(session);
    EXPECT_FALSE(run.fault) << c << ": " << run.fault->label << ": " << run.fault->finding.message;
  }
  const Differentiated d = block();
  const CheckedRun run = checked(d, *device_);
  ASSERT_FALSE(run.fault) << run.fault->label << ": " << run.fault->finding.message;
  EXPECT_EQ(run.steps, d.program.steps.size());
  std::int64_t written = 0;
  for (const Step& step : d.program.steps)
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
      if (step.op->tensors[t].role != Role::in) written += d.program[step.tensors[t]].shape.size();
  EXPECT_EQ(run.elements, written);  // the block is small enough for the whole oracle
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
    if (faults.contains(step.op->name)) continue;
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

/// Where the oracle of a whole step takes too long, a sample of rows or of columns finds a fault of all of them.
TEST(CheckedSteps, LongOnesAreSampled) {
  Builder b;
  const Value x = b.input("x", {300, 128}), w = b.parameter("w", {128, 128});
  b.output(matmul_nt(b, x, w));
  const Program program = b.take();
  const auto run = [&](const Kernel* kernel) {
    Session session(program, device(Backend::cpu), {.choose = [&](const Step&) { return kernel; }});
    set_leaves(session);
    return check_steps(session);
  };
  const CheckedRun right = run(nullptr);
  EXPECT_FALSE(right.fault);
  EXPECT_GT(right.elements, 128);
  EXPECT_LT(right.elements, 300 * 128);
  const Kernel wrong = then("matmul_nt", [&](const Call& call) {
    for (Index i = 0; i < 300 * 128; ++i) static_cast<float*>(call.tensors.back().data)[i] += 100;
  });
  EXPECT_EQ(fault_of(run(&wrong)).step, 0u);
}

TEST(CheckedMemory, AStepLeavesWhatItReads) {
  const Differentiated d = block();
  const Kernel writes = then("rmsnorm", [](const Call& call) { static_cast<float*>(call.tensors[0].data)[4] += 1; });
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

/// The whole run leaves right results where the steps write theirs.
TEST(CheckedMemory, NoResultOfTheWholeRunStandsInForOneOfAStep) {
  const Differentiated d = block();
  for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
    const Step& step = d.program.steps[s];
    if (std::ranges::any_of(step.op->tensors, [](const TensorInfo& t) { return t.role == Role::inout; })) continue;
    const Kernel& right = *kernels_of(step.op->name).front();
    Kernel once = right;
    int calls = 0;
    once.run = [&](const Call& call, Device& device) {
      if (++calls == 1) right.run(call, device);
    };
    std::size_t chosen = 0;
    Session session(d.program, device(Backend::cpu),
                    {.reuse = false, .choose = [&](const Step&) { return chosen++ == s ? &once : nullptr; }});
    set_leaves(session);
    calls = 0;
    EXPECT_EQ(fault_of(check_steps(session)).step, s) << describe(step);
  }
}

TEST(CheckedMemory, AnOperandIsAsItsWriterLeftIt) {
  const Differentiated d = block();
  const std::vector<Step>& steps = d.program.steps;
  const auto users = [&](Value v) {
    std::vector<std::size_t> all;
    for (std::size_t s = 0; s < steps.size(); ++s)
      if (std::ranges::any_of(steps[s].tensors, [&](Value u) { return d.program[u].storage == d.program[v].storage; }))
        all.push_back(s);
    return all;
  };
  int tried = 0;
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (std::size_t t = 0; t < steps[s].tensors.size(); ++t) {
      const Value v = steps[s].tensors[t];
      const std::vector<std::size_t> at = users(v);
      const bool is_result = steps[s].op->tensors[t].role == Role::out;
      if (!is_result || d.program.storage_of(v).kind != Kind::temporary || at.front() != s) continue;
      if (at.size() < 2 || at[1] == s + 1) continue;  // no step is between writer and reader
      const Planted fault = stray_write(s + 1, s, t, 0);
      EXPECT_EQ(fault.step, at[1]) << describe(steps[s]);
      EXPECT_NE(fault.says.find("it reads what is no longer as " + describe(steps[s])), std::string::npos)
          << fault.says;
      ++tried;
    }
  EXPECT_GT(tried, 3);
}

TEST(CheckedMemory, NoStepWritesToTheParametersOfAnother) {
  const std::size_t last = block().program.steps.size() - 1;
  const Planted fault = stray_write(last, 0, 1, 3);
  EXPECT_EQ(fault.step, last + 1);
  EXPECT_EQ(fault.value, "input_layernorm.weight");
}

TEST(CheckedMemory, TheWholeRunHasTheBitsOfItsSteps) {
  const Differentiated d = block();
  std::size_t step = 0, calls = 0;
  while (d.program.steps[step].op->name != "rmsnorm_backward") ++step;
  Kernel drifts = then("rmsnorm_backward", [&](const Call& call) {  // within its bound, but not always the same
    float& y = static_cast<float*>(call.tensors.back().data)[0];
    if (++calls % 2 == 0) y = std::nextafter(y, 2 * y);
  });
  const CheckedRun run = checked(d, device(Backend::cpu), step, &drifts);
  ASSERT_TRUE(run.fault);
  EXPECT_EQ(run.steps, d.program.steps.size());
  EXPECT_EQ(run.fault->label, "the whole run");
  EXPECT_EQ(run.fault->finding.kind, falsify::Finding::Kind::bits);
  drifts.deterministic = false;
  EXPECT_FALSE(checked(d, device(Backend::cpu), step, &drifts).fault);
}

TEST(CheckedMemory, ACheckedRunLeavesWhatOneRunDoes) {
  const Differentiated d = block();
  Session once(d.program, device(Backend::cpu)), checked_once(d.program, device(Backend::cpu));
  set_leaves(once), set_leaves(checked_once);
  once.run();
  ASSERT_FALSE(check_steps(checked_once).fault);
  for (const Value g : d.gradients) EXPECT_EQ(once.get<float>(g), checked_once.get<float>(g));
}

INSTANTIATE_TEST_SUITE_P(On, CheckedRuns, testing::ValuesIn(built_backends()), backend_name);

}  // namespace
}  // namespace assay::program::check_test
