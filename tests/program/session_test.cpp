// Programs on devices, and their plans.
#include "program/session.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "blocks.hpp"
#include "core/errors.hpp"
#include "core/half.hpp"
#include "on_device.hpp"
#include "serve/select.hpp"
#include "serve/trace.hpp"

namespace assay::program::session_test {
namespace {

/// A bound below this part of the rms of its tensor counts as small.
constexpr double kSmall = 0.01;

/// Runs a case once: the output and every gradient.
std::vector<std::vector<float>> results(Session& session, const Differentiated& d, const BlockCase& c) {
  set_all(session, c);
  session.run();
  std::vector<std::vector<float>> all;
  for (const Value v : d.program.outputs) all.push_back(session.get<float>(v));
  for (const Value v : d.gradients) all.push_back(session.get<float>(v));
  return all;
}

/// A block that runs on devices, and the least share of its bounds that are small, over all back ends. With two layers
/// the bounds of gradients in layer 0 are wide on the way of queries and keys.
struct DeviceCase {
  BlockCase block;
  double small;
};
std::vector<DeviceCase> device_cases() {
  return {{block_case("feed_forward"), 1},  {block_case("llama_attention"), 1},
          {block_case("encoder"), 1},       {block_case("lora_on_all_attention"), 0.85},
          {block_case("lora_on_all"), 0.9}, {block_case("tied_loss"), 0.5}};
}

class Sessions : public OnDevice {};

TEST_P(Sessions, ReuseOfMemoryChangesNoBit) {
  for (const auto& [c, share] : device_cases()) {
    const Differentiated d = Block(c).differentiated();
    Session reusing(d.program, *device_), apart(d.program, *device_, {.reuse = false});
    EXPECT_LT(reusing.plan().bytes, apart.plan().bytes);
    EXPECT_EQ(results(reusing, d, c), results(apart, d, c)) << c.name;
  }
}

/// Results are stored as what is read: 1 + 2^-9 is 1 in bfloat16.
TEST_P(Sessions, Run16BitFormats) {
  Builder b;
  const Value x = b.input("x", {1, 2}, DType::bf16), r = b.input("r", {1, 2}, DType::bf16),
              wide = b.input("wide", {1, 2});
  const Value y = residual_add(b, x, r, 1), z = residual_add(b, y, r, 1);
  EXPECT_THROW(residual_add(b, x, wide, 1), InputError);
  b.output(z);
  Session session(b.take(), *device_);
  session.set(x, std::vector<BFloat16>{to_bfloat16(1), to_bfloat16(-3)});
  session.set(r, std::vector<BFloat16>{to_bfloat16(0x1p-9F), to_bfloat16(0.5F)});
  session.run();
  std::vector<float> got;
  for (const BFloat16 v : session.get<BFloat16>(z)) got.push_back(widen(v));
  EXPECT_EQ(got, (std::vector<float>{1, -2}));
}

/// R7: what is computed again has the bits of what was kept.
TEST_P(Sessions, ComputingAgainChangesNoBit) {
  for (const auto& [c, share] : device_cases()) {
    const Block block(c);
    const Program& forward = block.builder.program();
    const std::vector<Value> leaves = block.leaves();
    const Differentiated d = block.differentiated();
    Session keeping(d.program, *device_);
    const auto kept = results(keeping, d, c);
    for (const Kept& keep : {Kept{}, inputs_of_layers(forward)}) {
      const Differentiated again = differentiate(forward, std::vector{block.y}, leaves, &keep);
      Session computing(again.program, *device_);
      EXPECT_EQ(results(computing, again, c), kept) << c.name << ", " << keep.size() << " kept";
    }
  }
}

TEST_P(Sessions, AreWithinTheBoundsOfTheirKernels) {
  for (const auto& [c, share] : device_cases()) {
    const Block block(c);
    const Differentiated d = block.differentiated();
    Session session(d.program, *device_);
    falsify::Execution<Bounded> bounded(d.program, session.plan(), Bounded(std::nan("")));
    set_all(bounded, d.program, c);
    for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
      const ArithmeticScope scope(session.kernel(s).arithmetic);
      bounded.run(d.program.steps[s]);
    }
    const auto got = results(session, d, c);
    std::vector<std::pair<std::string, Value>> looked_at{{"y", block.y}};
    const std::vector<Value> leaves = block.leaves();
    for (std::size_t n = 0; n < leaves.size(); ++n)
      looked_at.emplace_back("gradient of " + d.program[leaves[n]].name, d.gradients[n]);
    std::size_t elements = 0, small = 0;
    double widest = 0;
    for (std::size_t n = 0; n < looked_at.size(); ++n) {
      const auto& [name, value] = looked_at[n];
      const std::vector<Bounded> want = read(bounded[value]);
      double squares = 0;
      for (const Bounded& w : want) squares += w.value * w.value;
      const double rms = vanishes(c, name) ? 1 : std::sqrt(squares / static_cast<double>(want.size()));
      for (std::size_t i = 0; i < want.size(); ++i, ++elements) {
        EXPECT_LE(std::fabs(static_cast<double>(got[n][i]) - want[i].value), want[i].error)
            << c.name << ", " << name << " " << i;
        EXPECT_TRUE(std::isfinite(want[i].error)) << c.name << ", " << name << " " << i;
        small += want[i].error < kSmall * rms;
        widest = std::max(widest, want[i].error / rms);
      }
    }
    const double of_all = static_cast<double>(small) / static_cast<double>(elements);
    fmt::print("{}: {:.3f} of {} bounds are below {} of the rms, the widest is {:.1e} of it\n", c.name, of_all,
               elements, kSmall, widest);
    EXPECT_GE(of_all, share) << c.name;
  }
}

TEST_P(Sessions, RunsAsItsStepsDoOneByOne) {
  const BlockCase c = block_case("lora_on_all");
  const Differentiated d = Block(c).differentiated();
  Session whole(d.program, *device_), steps(d.program, *device_);
  const auto want = results(whole, d, c);
  results(steps, d, c);
  steps.clear_gradients();
  for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
    steps.kernel(s).run(steps.call(s), *device_);
    device_->synchronize();
  }
  for (std::size_t i = 0; i < d.gradients.size(); ++i) EXPECT_EQ(steps.get<float>(d.gradients[i]), want[i + 1]);
}

TEST_P(Sessions, GradientsAddUpOverRunsUntilTheyAreCleared) {
  const BlockCase c = block_case("lora_on_all");
  const Block block(c);  // each parameter is used once
  const Differentiated d = differentiate(block.builder.program(), std::vector{block.y});
  Session session(d.program, *device_);
  const auto once = results(session, d, c);
  session.run();
  for (std::size_t i = 0; i < d.gradients.size(); ++i) {
    const std::vector<float> twice = session.get<float>(d.gradients[i]);
    for (std::size_t e = 0; e < twice.size(); ++e) EXPECT_EQ(twice[e], 2 * once[i + 1][e]);
  }
  session.clear_gradients();
  EXPECT_EQ(results(session, d, c), once);
}

TEST_P(Sessions, StepsTakeAsLongAsTheWhole) {
  const BlockCase c = block_case("lora_on_all");
  const Differentiated d = Block(c).differentiated();
  Session session(d.program, *device_);
  results(session, d, c);
  EXPECT_GT(session.seconds(), 0);
  const std::vector<double> steps = session.step_seconds();
  ASSERT_EQ(steps.size(), d.program.steps.size());
  double sum = 0;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    EXPECT_GE(steps[s], 0) << describe(d.program.steps[s]);
    sum += steps[s];
  }
  fmt::print("{:.3f} ms in one run, {:.3f} ms step by step\n", 1e3 * session.seconds(), 1e3 * sum);
  // Clocks of milliseconds or of ticks would be off by more than any load of the machine.
  EXPECT_LT(sum, 100 * session.seconds());
  EXPECT_GT(sum, 0.01 * session.seconds());
}

TEST_P(Sessions, TracedRunsHaveASpanForEachStep) {
  struct Kept final : trace::Sink {
    void ended(const trace::Span& span) noexcept override { spans.push_back(span); }
    std::vector<trace::Span> spans;
  } kept;
  const BlockCase c = block_case("feed_forward");
  const Differentiated d = Block(c).differentiated();
  Session plain(d.program, *device_), traced(d.program, *device_);
  const auto want = results(plain, d, c);
  set_all(traced, c);
  traced.run(), traced.clear_gradients();
  {
    const trace::Recording recording(kept);
    traced.run();
  }
  std::erase_if(kept.spans, [](const trace::Span& s) { return s.name == "alloc" || s.name == "transfer"; });
  ASSERT_EQ(kept.spans.size(), d.program.steps.size() + 1);
  for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
    const trace::Span& span = kept.spans[s];
    EXPECT_EQ(span.name, d.program.steps[s].op->name);
    EXPECT_EQ(span.attribute("step"), d.program.steps[s].label);
    EXPECT_EQ(span.attribute("kernel"), traced.kernel(s).id);
    EXPECT_EQ(span.attribute("backend"), name(GetParam()));
    EXPECT_FALSE(span.attribute("shape").empty());
    EXPECT_EQ(span.depth, 1);
    EXPECT_GE(span.begin_ns, s == 0 ? 0 : kept.spans[s - 1].end_ns);
  }
  EXPECT_EQ(kept.spans.back().name, "program");
  for (std::size_t i = 0; i < d.gradients.size(); ++i) EXPECT_EQ(traced.get<float>(d.gradients[i]), want[i + 1]);
  const std::size_t spans = kept.spans.size();
  traced.run();
  EXPECT_EQ(kept.spans.size(), spans);
}

INSTANTIATE_TEST_SUITE_P(On, Sessions, testing::ValuesIn(built_backends()), backend_name);

TEST(Plans, LivesThatMeetShareNothing) {
  const Differentiated d = Block(block_case("tied_loss")).differentiated();
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

using Product = std::pair<std::string, std::vector<Index>>;
std::set<Product> products(const Program& program) {
  std::set<Product> all;
  for (const contract::PlannedCall& call : planned_calls(program)) {
    if (!call.op.starts_with("matmul")) continue;
    EXPECT_TRUE(all.emplace(call.op, call.dims).second) << call.op << " twice";
  }
  return all;
}
std::set<Product> list(const std::vector<std::vector<Index>>& nt, const std::vector<std::vector<Index>>& nn,
                       const std::vector<std::vector<Index>>& tn) {
  std::set<Product> all;
  for (const auto& dims : nt) all.emplace("matmul_nt", dims);
  for (const auto& dims : nn) all.emplace("matmul", dims);
  for (const auto& dims : tn) all.emplace("matmul_tn", dims);
  return all;
}

/// Extents of a layer, all different: rows, hidden, queries, keys, intermediate, rank, samples, classes.
constexpr Index S = 5, H = 14, Q = 24, KV = 12, I = 11, R = 3, B = 2, C = 7;

TEST(PlannedCalls, AreThePreWarmListOfAConfiguration) {
  TransformerConfig config{.hidden = H, .intermediate = I, .heads = 4, .kv_heads = 2, .head_dim = 6};
  const auto layer = [&] {
    Builder b;
    const Value x = b.input("x", {S, H});
    const Value y = decoder_layer(b, config, x, sequences(b, config, S));
    std::vector<Value> wanted{x};
    for (const Parameter& p : b.program().parameters)
      if (p.trainable) wanted.push_back(p.value);
    return differentiate(b.program(), std::vector{y}, wanted).program;
  };
  const std::vector<std::vector<Index>> nt{{S, H, Q}, {S, H, KV}, {S, Q, H}, {S, H, I}, {S, I, H}},
      dx{{S, Q, H}, {S, KV, H}, {S, H, Q}, {S, I, H}, {S, H, I}};
  EXPECT_EQ(products(layer()), list(nt, dx, {{Q, S, H}, {KV, S, H}, {H, S, Q}, {I, S, H}, {H, S, I}}));
  config.adapters = {{kProjections.begin(), kProjections.end()}, R, 8};
  config.trains = false;
  const Program adapted = layer();
  const std::vector<contract::PlannedCall> calls = planned_calls(adapted);
  EXPECT_LT(calls.size(), adapted.steps.size()) << "k and v are of one shape";
  for (const Step& step : adapted.steps)
    EXPECT_EQ(std::ranges::count(calls, contract::PlannedCall{std::string(step.op->name), step.dims, step.params}), 1)
        << describe(step);
  const contract::Prewarmed made = contract::prewarm(calls, Backend::cpu);
  EXPECT_EQ(made.prepared.size(), calls.size());
  EXPECT_TRUE(made.refused.empty());
}

TEST(PlannedCalls, OfAdaptersAndAClassifierMadeOfProducts) {
  Builder b;
  const Value x = b.input("x", {S, H}), pooled = b.input("pooled", {B, H});
  const auto project = [&](std::string name, Value in, Index out) {  // only the adapter trains
    const Builder::Scope scope(b, name);
    const Index width = b.shape(in)[1];
    const Value t = matmul_nt(b, in, b.parameter("a", {R, width}));
    return residual_add(b, matmul_nt(b, in, b.parameter("w", {out, width}, false)),
                        matmul_nt(b, t, b.parameter("b", {out, R})), 2);
  };
  const Value q = project("q", x, Q), k = project("k", x, KV), v = project("v", x, KV), y = project("o", q, H),
              logits = matmul(b, pooled, b.parameter("classifier", {H, C}));
  std::vector<Value> wanted{x, pooled};
  for (const Parameter& p : b.program().parameters)
    if (p.trainable) wanted.push_back(p.value);
  const Differentiated d = differentiate(b.program(), std::vector{k, v, y, logits}, wanted);
  EXPECT_EQ(products(d.program),
            list({{S, H, Q}, {S, H, KV}, {S, Q, H}, {S, H, R}, {S, Q, R}, {S, R, Q}, {S, R, KV}, {S, R, H}, {B, C, H}},
                 {{S, Q, H}, {S, KV, H}, {S, H, Q}, {S, Q, R}, {S, KV, R}, {S, H, R}, {S, R, H}, {S, R, Q}, {B, H, C}},
                 {{R, S, H}, {R, S, Q}, {Q, S, R}, {KV, S, R}, {H, S, R}, {H, B, C}}));
}

/// Host memory that notes in which order kernels are prepared and elements arrive.
class Watched final : public Device {
 public:
  Backend backend() const override { return Backend::cpu; }
  std::string description() const override { return "of this test"; }
  MemoryInfo memory() const override { return {1 << 30, 1 << 30}; }
  bool host_visible() const override { return true; }
  void synchronize() override {}
  void prepare(const Kernel&, const Call&) override {
    if (prepared == fails_at) throw DeviceError("prepare", "LOST");
    ++prepared;
    EXPECT_FALSE(weights) << "a kernel is prepared behind the weights";
  }

  std::unique_ptr<RecordedWork> record(const std::function<void()>& work) override {
    struct Work final : RecordedWork {
      explicit Work(std::function<void()> all) : steps(std::move(all)) {}
      void run() override { steps(); }
      double seconds() const override { return 1; }
      std::function<void()> steps;
    };
    if (!records) return nullptr;
    ++recorded;
    return std::make_unique<Work>(work);
  }

  std::size_t prepared = 0, fails_at = SIZE_MAX, recorded = 0;
  bool records = false;
  bool weights = false;

 protected:
  void* allocate_bytes(std::size_t bytes) override { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  void release_bytes(void* address, std::size_t) noexcept override { std::free(address); }
  void upload_bytes(void* to, const void* from, std::size_t bytes) override {
    const std::span source(static_cast<const std::byte*>(from), bytes);
    if (std::ranges::any_of(source, [](std::byte b) { return b != std::byte{}; })) weights = true;
    std::memcpy(to, from, bytes);
  }
  void download_bytes(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
};

TEST(SessionChecks, C_PREWARM_001) {  // every kernel is prepared before the weights are uploaded, or none runs
  const BlockCase c = block_case("lora_on_all");
  const Differentiated d = Block(c).differentiated();
  Watched device;
  Session session(d.program, device);
  EXPECT_EQ(device.prepared, d.program.steps.size());
  results(session, d, c);
  EXPECT_TRUE(device.weights);
  EXPECT_EQ(device.prepared, d.program.steps.size());
  Watched broken;
  broken.fails_at = d.program.steps.size() - 1;
  EXPECT_THROW(Session(d.program, broken), DeviceError);
  EXPECT_FALSE(broken.weights);
}

TEST(SessionChecks, RefuseWrongLengthsAndMemoryThatIsNoLongerTheirs) {
  const Block made(block_case("feed_forward"));
  const Differentiated d = made.differentiated();
  Session session(d.program, device(Backend::cpu));
  EXPECT_THROW(session.set(made.x, std::vector<float>(7)), InputError);
  EXPECT_THROW(session.set(made.y, std::vector<float>(18)), InputError);
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

TEST(SessionChecks, AnAdjustedStepIsRecordedAlone) {
  Builder b;
  const Value x = b.input("x", {1, 2}), y = scale(b, silu(b, x), 2);
  b.output(silu(b, y));
  const Program program = b.take();
  const Value out = program.outputs[0];
  std::vector<std::vector<float>> results;
  for (const bool alone : {false, true}) {
    Watched device;
    device.records = true;
    Session session(program, device,
                    {.adjusted = alone ? std::vector<std::string>{"scale"} : std::vector<std::string>{}});
    EXPECT_EQ(device.recorded, alone ? 3u : 1u);
    session.set(x, std::vector<float>{1, -2});
    session.set_param("scale", "alpha", 3);
    EXPECT_EQ(device.recorded, alone ? 4u : 2u);
    session.set_param("scale", "alpha", 3);
    EXPECT_EQ(device.recorded, alone ? 4u : 2u);
    session.run();
    EXPECT_EQ(session.seconds(), alone ? 3 : 1);
    results.push_back(session.get<float>(out));
  }
  Watched other;
  EXPECT_THROW(Session(program, other, {.adjusted = {"scales"}}), InputError);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NEAR(results[0][0], 3 * 0.73106 / (1 + std::exp(-3 * 0.73106)), 1e-3);
}

TEST(SessionChecks, AFailureOfADeviceNamesTheStep) {
  Builder b;
  const Value x = b.input("x", {1, 2});
  b.output(silu(b, silu(b, x)));
  const Program program = b.take();
  Kernel broken = select_kernel("silu", Backend::cpu, Session(program, device(Backend::cpu)).call(1));
  int runs = 0;
  broken.id = "silu/cpu/broken";
  broken.run = [&](const Call&, Device&) {
    if (++runs == 4) throw DeviceError("launch", "too_large", "more than it has");  // 2 while they are prepared
  };
  Session session(program, device(Backend::cpu), {.choose = [&](const Step&) { return &broken; }});
  session.set(x, std::vector<float>{1, -2});
  try {
    session.run();
    ADD_FAILURE();
  } catch (const DeviceError& e) {
    EXPECT_EQ(std::string(e.what()),
              "step 2 of 2, silu.1 (silu), by silu/cpu/broken failed with too_large: "
              "launch failed with too_large: more than it has");
  }
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

/// After the first run, layers that read the same elements under the same clauses are checked by one of them.
TEST(SessionChecks, WhatOneStepHoldsNoOtherStepIsTakenToHold) {
  Builder b;
  const Value ids = b.input("ids", {2}, DType::i32), others = b.input("others", {2}, DType::i32),
              large = b.input("large", {8, 1}), small = b.input("small", {4, 1});
  for (const Value read : {ids, others})
    for (const Value table : {large, large, small}) b.output(embedding(b, read, table));
  Session session(b.take(), device(Backend::cpu));
  session.set(large, std::vector<float>(8)), session.set(small, std::vector<float>(4));
  const auto runs = [&](std::int32_t first, std::int32_t second) {
    session.set(ids, std::vector<std::int32_t>{0, first}), session.set(others, std::vector<std::int32_t>{0, second});
    try {
      session.run();
    } catch (const ContractViolation&) {
      return false;
    }
    return true;
  };
  for (int run = 0; run < 2; ++run) {
    EXPECT_TRUE(runs(3, 3));
    EXPECT_FALSE(runs(4, 3));
    EXPECT_FALSE(runs(3, 4));
    EXPECT_FALSE(runs(8, 3));
    EXPECT_FALSE(runs(3, 8));
  }
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
