// Programs on devices, and their plans.
#include "program/session.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/errors.hpp"
#include "falsify/engine/random.hpp"
#include "feed_forward.hpp"
#include "program/differentiate.hpp"

namespace assay::program::session_test {
namespace {

std::vector<float> gaussians(Index n, std::uint64_t seed) {
  falsify::Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& v : values) v = static_cast<float>(random.gaussian());
  return values;
}

Differentiated block() {
  Block made(6, 17, 40);
  const Value x[] = {made.x};
  std::vector<Value> wanted(std::begin(x), std::end(x));
  for (const Parameter& p : made.builder.program().parameters) wanted.push_back(p.value);
  return differentiate(made.builder.program(), std::vector{made.y}, wanted);
}

/// Runs it once on random inputs: the output and every gradient.
std::vector<std::vector<float>> results(Session& session, const Differentiated& d) {
  for (std::size_t i = 0; i < d.program.values.size(); ++i) {
    const Value v{static_cast<std::int32_t>(i)};
    const Kind kind = d.program.storage_of(v).kind;
    if (d.program.base_of(v) == v && (kind == Kind::input || kind == Kind::parameter))
      session.set(v, gaussians(d.program[v].shape.size(), i));
  }
  session.run();
  std::vector<std::vector<float>> all;
  for (const Value v : d.program.outputs) all.push_back(session.get<float>(v));
  for (const Value v : d.gradients) all.push_back(session.get<float>(v));
  return all;
}

class Sessions : public testing::TestWithParam<Backend> {
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

TEST_P(Sessions, ReuseOfMemoryChangesNoBit) {
  const Differentiated d = block();
  Session reusing(d.program, *device_), apart(d.program, *device_, {.reuse = false});
  EXPECT_LT(reusing.plan().bytes, apart.plan().bytes);
  EXPECT_EQ(results(reusing, d), results(apart, d));
}

TEST_P(Sessions, RunsAsItsStepsDoOneByOne) {
  const Differentiated d = block();
  Session whole(d.program, *device_), steps(d.program, *device_);
  const auto want = results(whole, d);
  results(steps, d);
  steps.clear_gradients();
  for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
    steps.kernel(s).run(steps.call(s), *device_);
    device_->synchronize();
  }
  for (std::size_t i = 0; i < d.gradients.size(); ++i) EXPECT_EQ(steps.get<float>(d.gradients[i]), want[i + 1]);
}

TEST_P(Sessions, GradientsAddUpOverRunsUntilTheyAreCleared) {
  Block made(6, 17, 40);
  const Differentiated d = differentiate(made.builder.program(), std::vector{made.y});  // each parameter is used once
  Session session(d.program, *device_);
  const auto once = results(session, d);
  session.run();
  for (std::size_t i = 0; i < d.gradients.size(); ++i) {
    const std::vector<float> twice = session.get<float>(d.gradients[i]);
    for (std::size_t e = 0; e < twice.size(); ++e) EXPECT_EQ(twice[e], 2 * once[i + 1][e]);
  }
  session.clear_gradients();
  EXPECT_EQ(results(session, d), once);
}

INSTANTIATE_TEST_SUITE_P(On, Sessions, testing::Values(Backend::cpu, Backend::cuda_host, Backend::vulkan),
                         [](const auto& info) {
                           std::string text(name(info.param));
                           std::ranges::replace(text, '-', '_');
                           return text;
                         });

TEST(Plans, LivesThatMeetShareNothing) {
  const Differentiated d = block();
  const Plan where = plan(d.program);
  std::vector<std::int32_t> holder(where.slot_bytes.size(), -1);
  std::vector<std::size_t> written(d.program.storages.size(), 0);
  for (const Step& step : d.program.steps) {
    for (std::size_t t = 0; t < step.tensors.size(); ++t) {
      const ValueInfo& v = d.program[step.tensors[t]];
      std::int32_t& holds = holder[static_cast<std::size_t>(where.slot_of[static_cast<std::size_t>(v.storage)])];
      if (step.op->tensors[t].role == Role::out) {
        holds = v.storage;
      } else if (d.program.storages[static_cast<std::size_t>(v.storage)].kind == Kind::temporary) {
        EXPECT_EQ(holds, v.storage) << describe(step);
      }
    }
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
      for (std::size_t u = 0; u < t; ++u) {
        const auto one = static_cast<std::size_t>(d.program[step.tensors[t]].storage),
                   other = static_cast<std::size_t>(d.program[step.tensors[u]].storage);
        EXPECT_TRUE(one == other || where.slot_of[one] != where.slot_of[other]) << describe(step);
      }
  }
}

TEST(SessionChecks, RefuseWrongLengthsAndMemoryThatIsNoLongerTheirs) {
  Block made(2, 4, 6);
  const Differentiated d = differentiate(made.builder.program(), std::vector{made.y});
  Session session(d.program, device(Backend::cpu));
  EXPECT_THROW(session.set(made.x, std::vector<float>(7)), InputError);
  EXPECT_THROW(session.set(made.y, std::vector<float>(8)), InputError);
  std::size_t refused = 0, temporaries = 0;
  for (const Step& step : d.program.steps)
    for (const Value v : step.tensors) {
      if (d.program.storage_of(v).kind != Kind::temporary) continue;
      ++temporaries;
      try {
        session.get<float>(v);
      } catch (const InputError&) {
        ++refused;
      }
    }
  EXPECT_GT(refused, 0u);
  EXPECT_LT(refused, temporaries);
}

TEST(SessionChecks, PreconditionsReadOnlyWhatTheHostSets) {
  Builder b;
  const Value logits = b.input("logits", {2, 3}), targets = b.input("targets", {2}, DType::i32);
  const Value weights = softmax(b, b.input("scores", {1, 3}));
  b.output(cross_entropy(b, logits, targets, b.reshape(weights, {3}), 1).loss);
  const auto reads = [](const ClauseInfo& c) { return c.kind == ClauseKind::requires_clause && !c.reads.empty(); };
  ASSERT_TRUE(std::ranges::any_of(operation("cross_entropy").clauses, reads));
  Session session(b.take(), device(Backend::cpu));  // it reads the targets, which are an input
  Program program = session.program();
  program.storages[static_cast<std::size_t>(program[targets].storage)].kind = Kind::temporary;
  EXPECT_THROW(Session(program, device(Backend::cpu)), InputError);
}

TEST(SessionChecks, PreconditionsAreEvaluatedOnceInputsAreThere) {
  Builder b;
  const Value ids = b.input("ids", {2}, DType::i32), table = b.parameter("table", {3, 2});
  const Value y = embedding(b, ids, table);
  b.output(y);
  Session session(b.take(), device(Backend::cpu));
  session.set(ids, std::vector<std::int32_t>{2, 3});
  EXPECT_THROW(session.run(), ContractViolation);
  session.set(ids, std::vector<std::int32_t>{2, 0});
  session.run();
  session.set(ids, std::vector<std::int32_t>{-1, 0});
  EXPECT_THROW(session.run(), ContractViolation);
}

}  // namespace
}  // namespace assay::program::session_test
