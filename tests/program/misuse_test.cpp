// Programs, sessions, trainers and decoders refuse wrong arguments in one sentence, before they compute anything.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <thread>

#include "blocks.hpp"
#include "core/errors.hpp"
#include "falsify/program/check.hpp"
#include "on_device.hpp"
#include "program/model/adapters.hpp"
#include "program/model/decode.hpp"
#include "program/model/parameters.hpp"
#include "program/model/safetensors.hpp"
#include "program/model/training.hpp"
#include "program/session.hpp"
#include "refusal.hpp"
#include "serve/prewarm.hpp"

namespace assay::program::misuse_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Expects an InputError whose sentence has these words.
template <class F>
void expect_refused(std::string_view words, const F& f) {
  std::string said;
  try {
    said = refusal(f);
  } catch (const std::exception& e) {
    said = std::string("no InputError: ") + e.what();
  }
  EXPECT_NE(said.find(words), std::string::npos) << said << "\nwithout: " << words;
}

Device& cpu() { return device(Backend::cpu); }

/// One product, x [2, 2] times a weight.
struct Product {
  Builder b;
  Value x = b.input("x", {2, 2}), w = b.parameter("w", {2, 2}), y = matmul_nt(b, x, w);
  Product() { b.output(y); }
};

const Kernel* kernel_of(std::string_view op, Backend backend) {
  for (const Kernel& k : kernels())
    if (k.op == op && k.backend == backend && k.role == KernelRole::kernel) return &k;
  return nullptr;
}

TEST(Builders, RefuseValuesThatNameNothingOrBelongElsewhere) {
  Builder b, other;
  const Value own = b.input("x", {4, 8}), foreign = other.input("x", {4, 8});
  const Sequences all = sequences(b, tiny(), 4);
  for (const auto& [v, words] : {std::pair{Value{}, "it names nothing"}, {foreign, "it is no value of this program"}}) {
    expect_refused(words, [&, v = v] { b.reshape(v, {2}); });
    expect_refused(words, [&, v = v] { b.rows(v, 0, 1); });
    expect_refused(words, [&, v = v] { b.shape(v); });
    expect_refused(words, [&, v = v] { b.latest(v); });
    expect_refused(words, [&, v = v] { decoder_layer(b, tiny(), v, all); });
  }
  expect_refused("it names nothing", [&] { differentiate(b.program(), std::vector{Value{}}, std::vector{own}); });
  expect_refused("no value of this program",
                 [&] { differentiate(b.program(), std::vector{Value{99}}, std::vector{own}); });
  expect_refused("no value of this program", [&] { scale(b, foreign, 2); });
  expect_refused("no value of this program", [&] { b.output(foreign); });
}

TEST(Builders, RefuseExtentsThatCannotBe) {
  constexpr Index kHuge = Index{1} << 40;
  Builder b;
  expect_refused("negative extent", [&] { b.input("a", {-1, 8}); });
  expect_refused("negative extent", [&] { b.state("b", {-2, -8}); });
  expect_refused("negative extent", [&] { b.parameter("c", {-1}); });
  expect_refused("negative extent", [&] { b.zeros({-1}); });
  expect_refused("negative extent", [&] { b.reshape(b.input("d", {16}), {-2, -8}); });
  expect_refused("more elements than can be counted", [&] { b.input("e", {kHuge, kHuge}); });
  expect_refused("more elements than can be counted", [&] { b.parameter("f", {kHuge, kHuge}); });
  expect_refused("more elements than can be counted", [&] {
    b.frozen_parameter("g", {kHuge, kHuge}, WeightFormat::f32, 1);
  });
  expect_refused("parts of 0 rows hold none", [&] { b.frozen_parameter("h", {8, 8}, WeightFormat::f32, 0); });
  expect_refused("no matrix", [&] { b.frozen_parameter("i", {8}, WeightFormat::f32, 4); });
}

TEST(Builders, RefuseNamesThatAreTaken) {
  for (const auto& take : std::vector<std::function<void(Builder&)>>{
           [](Builder& b) { b.input("m", {2}); }, [](Builder& b) { b.state("m", {2}); },
           [](Builder& b) { b.gradient("m", {2}); }, [](Builder& b) { b.parameter("m", {2}); },
           [](Builder& b) {
             b.frozen_parameter("m", {2, 2}, WeightFormat::f32, 2);
           }}) {
    Builder b;
    b.state("m", {2});
    expect_refused("m: ", [&] { take(b); });
    Builder again(b.take());
    expect_refused("which something has already", [&] { take(again); });
  }
  Builder b;
  const Value x = b.input("x", {2, 2});
  const NamedNumber twice[] = {{"alpha", 1}, {"alpha", 2}};
  expect_refused("alpha is given twice", [&] { b.call("scale", std::vector{x}, twice); });
}

TEST(Builders, JoinOnlyResultsOfOneHeight) {
  Builder b;
  const Value x = b.input("x", {4, 3}), z = b.input("z", {5, 3}), w = b.input("w", {3, 3});
  expect_refused("no part", [&] { b.join({}); });
  expect_refused("shape [5, 3], and the first part 4 rows", [&] {
    b.join(std::vector{matmul_nt(b, x, w), matmul_nt(b, z, w)});
  });
  expect_refused("not the whole result of a step", [&] { b.join(std::vector{x, b.input("y", {4, 3})}); });
  const Value once = matmul_nt(b, x, w);
  expect_refused("given twice", [&] { b.join(std::vector{once, once}); });
  const Value read = matmul_nt(b, x, w);
  scale(b, read, 2);
  expect_refused("is used by scale (scale) already", [&] { b.join(std::vector{read, once}); });
  const Value joined = b.join(std::vector{once, matmul_nt(b, x, w)});
  EXPECT_EQ(b.shape(joined), (Shape{4, 6}));
  expect_refused("not the whole result", [&] { b.join(std::vector{once, matmul_nt(b, x, w)}); });
}

TEST(Differentiation, SaysWhyThereIsNoGradient) {
  Builder b;
  const Value w = b.parameter("w", {2, 2}), ids = b.input("ids", {2}, DType::i32), x = b.input("x", {2, 2});
  const Value y = embedding(b, ids, w), u = matmul_nt(b, x, w), v = matmul_nt(b, x, w),
              joined = b.join(std::vector{u, v});
  const auto expect = [&](std::string_view words, std::vector<Value> outputs, std::vector<Value> wanted) {
    expect_refused(words, [&] { differentiate(b.program(), outputs, wanted); });
  };
  expect("w: its gradient is wanted twice", {y}, {w, w});
  expect("ids: it is i32, and has no gradient", {ids}, {w});
  expect("ids: it is i32, and has no gradient", {y}, {ids});
  expect("it is differentiated twice", {y, y}, {w});
  expect("given no output", {}, {w});
  expect("no gradient passes through a join", {joined}, {w});
}

TEST(Differentiation, OfAProgramThatHasGradientsAlreadyKeepsThemApart) {
  Product p;
  const Value outputs[] = {p.y};
  const Differentiated d = differentiate(p.b.program(), outputs), both = differentiate(d.program, outputs);
  Session first(both.program, cpu()), second(both.program, cpu(), {.shares = &first});
  for (Session* s : {&first, &second}) {
    s->set(p.x, std::vector<float>{1, 2, 3, 4});
    s->set(d.upstream[0], std::vector<float>(4, 1)), s->set(both.upstream[0], std::vector<float>(4, 10));
    s->run();
  }
  EXPECT_EQ(second.get<float>(d.gradients[0])[0], 8);
  EXPECT_EQ(second.get<float>(both.gradients[0])[0], 80);
}

/// It was quadratic in the number of layers.
TEST(Differentiation, OfDeepModelsIsQuick) {
  TransformerConfig c = tiny();
  const auto seconds = [&](Index layers) {
    c.layers = layers;
    const auto begin = std::chrono::steady_clock::now();
    Builder b;
    const Value ids = b.input("ids", {4}, DType::i32), logits = decoder(b, c, ids, sequences(b, c, 4));
    differentiate(b.program(), std::vector{logits});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  seconds(10);
  EXPECT_LT(seconds(320), 40 * seconds(40)) << "eight times as many layers: 64 times as long if it were quadratic";
  EXPECT_LT(seconds(300), 15);
}

TEST(Transformers, RefuseMoreLayersThanCanBeBuilt) {
  TransformerConfig c = tiny();
  c.layers = 1000000000;
  expect_refused("layers: it is 1000000000", [&] { check(c); });
}

TEST(Sessions, RefuseKernelsOfAnotherOperationOrBackEnd) {
  Product p;
  const auto choosing = [&](const Kernel* k) {
    return [&p, k] { Session(p.b.program(), cpu(), {.choose = [k](const Step&) { return k; }}); };
  };
  expect_refused("which is of matmul for cpu", choosing(kernel_of("matmul", Backend::cpu)));
  EXPECT_EQ(refusal(choosing(kernel_of("matmul_nt", Backend::cpu))), "not refused");
  if (const Kernel* k = kernel_of("matmul_nt", Backend::cuda_host)) expect_refused("for cuda-host", choosing(k));
  if (const Kernel* k = kernel_of("matmul_nt", Backend::vulkan)) expect_refused("for vulkan", choosing(k));
}

TEST(Sessions, RefuseARunWithoutAnInput) {
  Builder b;
  const Value x = b.input("x", {2, 2}), r = b.input("r", {2, 2}), unread = b.input("unread", {3});
  const Value y = residual_add(b, x, r, 1);
  b.output(y);
  static_cast<void>(unread);
  const Value upper = b.rows(r, 0, 1), lower = b.rows(r, 1, 2);
  Session s(b.take(), cpu());
  s.set(x, std::vector<float>(4, 1));
  expect_refused("r: this input was never set", [&] { s.run(); });
  s.set(upper, std::vector<float>(2, 1));
  expect_refused("r: elements 2 to 3 of this input were never set", [&] { s.run(); });
  s.set(lower, std::vector<float>(2, 2));
  s.run();
  EXPECT_EQ(s.get<float>(y), (std::vector<float>{2, 2, 3, 3}));
}

TEST(Sessions, RefuseElementsOfAnotherTypeAndValuesThatAreNone) {
  Product p;
  Session s(p.b.program(), cpu());
  expect_refused("x: its elements are f32, not i32", [&] { s.get<std::int32_t>(p.x); });
  expect_refused("x: its elements are f32, not i32", [&] { s.set(p.x, std::vector<std::int32_t>(4)); });
  expect_refused("it names nothing", [&] { s.get<float>(Value{}); });
  expect_refused("it names nothing", [&] { s.set(Value{}, std::vector<float>{1}); });
  expect_refused("no value of this program", [&] { s.get<float>(Value{99999}); });
}

/// No contract refuses infinities and NaN: they reach the results that they must, in a checked run as well.
TEST(Sessions, TakeNumbersThatAreNotFiniteAndShowThem) {
  for (const OpDescriptor* op : operations()) EXPECT_NE(op->nonfinite, Nonfinite::reject) << op->name << ": see set()";
  Product p;
  falsify::CheckedRun all;
  Session s(p.b.program(), cpu(), {.check = falsify::steps_within_bounds(all)});
  s.set(p.w, std::vector<float>{1, 0, 0, 1}), s.set(p.x, std::vector<float>{1, 2, 3, kNan});
  s.run(Check::steps);
  const std::vector<float> y = s.get<float>(p.y);
  EXPECT_EQ((std::vector<float>{y[0], y[1]}), (std::vector<float>{1, 2}));
  EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3])) << "0 times NaN is NaN";
  EXPECT_EQ(all.elements, 4);
}

/// Blocks hold the shapes of their inputs to the configuration before any step is added, with adapters as without.
TEST(Transformers, RefuseRowsThatAreNotTheirs) {
  TransformerConfig adapted = tiny();
  adapted.adapters.on = {Projection::q, Projection::v};
  for (const TransformerConfig& config : {tiny(), adapted}) {
    const auto with = [&](const Shape& shape, const auto& build) {
      return [&config, shape, build] {
        Builder b;
        build(b, config, b.input("x", shape));
      };
    };
    const auto attention = [](Builder& b, const TransformerConfig& c, Value x) {
      self_attention(b, c, x, sequences(b, c, 4, 2));
    };
    const auto block = [](Builder& b, const TransformerConfig& c, Value x) {
      attention_block(b, c, x, sequences(b, c, 4, 2));
    };
    const auto feed_forward = [](Builder& b, const TransformerConfig& c, Value x) { feed_forward_block(b, c, x); };
    const auto q = [](Builder& b, const TransformerConfig& c, Value x) { projection(b, c, Projection::q, x); };
    const auto down = [](Builder& b, const TransformerConfig& c, Value x) { projection(b, c, Projection::down, x); };
    const std::string wide =
        "transformer: x: it is [4, 7], and a row has 8 elements; give [batch * s, 8] of one row or";
    expect_refused(wide, with({4, 7}, attention));
    expect_refused(wide, with({4, 7}, block));
    expect_refused(wide, with({4, 7}, feed_forward));
    expect_refused(wide, with({4, 7}, q));
    expect_refused("x: it is [4, 8], and a row has 16 elements", with({4, 8}, down));
    expect_refused("x: it is [2, 2, 8], and a row has 8 elements", with({2, 2, 8}, attention));
    expect_refused("x: it is [0, 8], and a row has 8 elements", with({0, 8}, feed_forward));
    expect_refused("x: its 5 rows are no 2 sequences of one length; pad the shorter ones", with({5, 8}, attention));
    expect_refused("positions: there are others for 6 rows; make them by sequences()", with({6, 8}, block));
    expect_refused("positions: there are none for 4 rows",
                   with({4, 8}, [](Builder& b, const TransformerConfig& c, Value x) {
                     TransformerConfig still = c;
                     still.theta = 0;
                     self_attention(b, c, x, sequences(b, still, 4));
                   }));
    expect_refused("x: it is in f32, and weights in bf16 meet bf16; cast it",
                   with({4, 8}, [](Builder& b, TransformerConfig c, Value x) {
                     c.trains = false, c.weights = WeightFormat::bf16;
                     feed_forward_block(b, c, x);
                   }));
    expect_refused("heads: 3 heads cannot share 2 key-value heads evenly",
                   with({4, 8}, [](Builder& b, TransformerConfig c, Value x) {
                     c.heads = 3;
                     projection(b, c, Projection::q, x);
                   }));
    EXPECT_EQ(refusal(with({4, 8}, attention)), "not refused");
    EXPECT_EQ(refusal(with({4, 16}, down)), "not refused");
  }
}

TEST(Sessions, SayWhichElementViolatesAContract) {
  TransformerConfig c = tiny();
  Builder b;
  const Value x = b.input("x", {4, c.hidden});
  const Sequences all = sequences(b, c, 4);
  const Builder::Scope layer(b, "layers.7");
  b.output(attention_block(b, c, x, all));
  Session s(b.take(), cpu());
  initialize(s, 1);
  s.set(x, std::vector<float>(static_cast<std::size_t>(4 * c.hidden), 1));
  s.set(all.lengths, std::vector<std::int32_t>{4}), s.set(all.starts, std::vector<std::int32_t>{0});
  s.set(all.positions, std::vector<std::int32_t>{0, 1, -7, 3});
  const auto said = [&]() -> std::string {
    try {
      s.run();
    } catch (const ContractViolation& e) {
      EXPECT_EQ(e.kind, ContractViolation::Kind::precondition);
      return e.what();
    }
    return "not refused";
  };
  const auto expect = [&](std::string_view words) {
    const std::string sentence = said();
    EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
  };
  expect("layers.7.self_attn.rope (rope); positions[2] of the value positions is -7: set it anew");
  s.set(all.positions, std::vector<std::int32_t>{0, 1, 2, 3});
  s.set(all.lengths, std::vector<std::int32_t>{9});
  expect("layers.7.self_attn.attention (attention); lengths[0] of the value lengths is 9: set it anew");
  s.set(all.lengths, std::vector<std::int32_t>{4});
  EXPECT_EQ(said(), "not refused");
}

class OnDevices : public OnDevice {};

/// The device is shared: sessions take turns.
TEST_P(OnDevices, SessionsOfSeveralThreadsComputeTheSameBits) {
  const BlockCase c = block_case("llama_attention");
  const Differentiated d = Block(c).differentiated();
  const auto results = [&](Session& s) {
    set_all(s, c);
    s.clear_gradients();
    s.run();
    std::vector<std::vector<float>> all;
    for (const Value v : d.program.outputs) all.push_back(s.get<float>(v));
    for (const Value v : d.gradients) all.push_back(s.get<float>(v));
    return all;
  };
  Session alone(d.program, *device_);
  const auto want = results(alone);
  std::vector<int> same(4);
  std::vector<std::thread> threads;
  for (int& of : same)
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        Session s(d.program, *device_);
        for (int run = 0; run < 4; ++run) of += results(s) == want;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(same, std::vector<int>(4, 12));
}
INSTANTIATE_TEST_SUITE_P(Backends, OnDevices, testing::ValuesIn(built_backends()), backend_name);

ClassifierConfig classifier_config() { return {.model = tiny(), .classes = 3}; }
TrainingOptions small_options() { return {.batch = 2, .length = 4}; }

TEST(Trainers, RefuseOptionsThatNoOperationTakes) {
  struct Wrong {
    const char* words;
    void (*set)(TrainingOptions&);
  };
  for (const Wrong& wrong : std::initializer_list<Wrong>{
           {"training: lr: it is nan", [](TrainingOptions& o) { o.lr = kNan; }},
           {"training: lr: it is -1", [](TrainingOptions& o) { o.lr = -1; }},
           {"training: beta1: it is 1.5", [](TrainingOptions& o) { o.beta1 = 1.5; }},
           {"training: beta2: it is nan", [](TrainingOptions& o) { o.beta2 = kNan; }},
           {"training: eps: it is 0", [](TrainingOptions& o) { o.eps = 0; }},
           {"training: weight_decay: it is -1", [](TrainingOptions& o) { o.weight_decay = -1; }},
           {"training: weight_decay: it is nan", [](TrainingOptions& o) { o.weight_decay = kNan; }},
           {"training: max_norm: it is nan", [](TrainingOptions& o) { o.max_norm = kNan; }},
           {"training: max_norm: it is -1", [](TrainingOptions& o) { o.max_norm = -1; }},
           {"training: batch: it is 0", [](TrainingOptions& o) { o.batch = 0; }},
           {"training: length: it is -3", [](TrainingOptions& o) { o.length = -3; }}}) {
    TrainingOptions o = small_options();
    wrong.set(o);
    expect_refused(wrong.words, [&] { Trainer(classifier_config(), o, cpu()); });
    expect_refused(wrong.words, [&] {  // programs of other options
      Trainer(classifier_config(), o, step_programs(classifier_config(), small_options()), cpu(), {});
    });
  }
  ClassifierConfig weighted = classifier_config();
  weighted.class_weights = {1, -2, 1};
  expect_refused("class weights: one of them is -2", [&] { Trainer(weighted, small_options(), cpu()); });
  Trainer trainer(classifier_config(), small_options(), cpu());
  expect_refused("training: lr: it is nan", [&] { trainer.set_lr(kNan); });
  expect_refused("training: lr: it is 2", [&] { trainer.set_lr(2); });
  Gradients g = trainer.gradients();
  g.samples = -1;
  expect_refused("they are of -1 samples", [&] { trainer.set_gradients(g); });
  TrainerState state = trainer.state();
  state.steps = -5;
  expect_refused("-5 steps", [&] { trainer.set_state(state); });
}

TEST(Trainers, RefuseTargetsThatAreNoProbabilities) {
  ClassifierConfig c = classifier_config();
  c.multi_label = true;
  for (const float label : {7.0F, -3.0F, kNan})
    expect_refused("sample 0: the label of a class is", [&] {
      batch_of(c, small_options(), std::vector<Sample>{{{1}, 0, {0, label, 1}}});
    });
  EXPECT_EQ(refusal([&] { batch_of(c, small_options(), std::vector<Sample>{{{1}, 0, {0, 0.5F, 1}}}); }), "not refused");
}

TEST(Decoders, RefuseOptionsThatHoldNoToken) {
  const auto open = [](const DecoderOptions& o) { return [o] { Decoder(tiny(), o, cpu()); }; };
  expect_refused("decoder: chunk: it is -2", open({1, 4, -2}));
  expect_refused("decoder: capacity: it is -3", open({1, -3, 0}));
  expect_refused("decoder: batch: it is 0", open({0, 4, 0}));
  expect_refused("decoder: capacity: it is 9223372036854775807", open({1, std::numeric_limits<Index>::max(), 0}));
}

TEST(Prewarming, LeavesOutCallsThatDoNothing) {
  const std::vector<contract::PlannedCall> calls{
      {"matmul_nt", {0, 4, 4}}, {"matmul_nt", {4, 4, 4}}, {"matmul_nt", {4, 4, 4}}, {"matmul_nt", {4, 4, 0}}};
  const contract::Prewarmed done = contract::prewarm(calls, Backend::cpu);
  ASSERT_EQ(done.prepared.size(), 1u);
  EXPECT_EQ(done.prepared[0].call.dims, (std::vector<Index>{4, 4, 4}));
  EXPECT_TRUE(done.refused.empty());
}

TEST(Adapters, AreListedApartAndScaledByAlphaOverRank) {
  TransformerConfig c = tiny();
  c.trains = false, c.weights = WeightFormat::nf4, c.adapters = {{Projection::q, Projection::v}, 4, 8};
  Builder b;
  const Value x = b.input("x", {3, c.hidden});
  attention_block(b, c, x, sequences(b, c, 3));
  EXPECT_EQ(adapter_names(b.program()),
            (std::vector<std::string>{"self_attn.q_proj.lora_A.weight", "self_attn.q_proj.lora_B.weight",
                                      "self_attn.v_proj.lora_A.weight", "self_attn.v_proj.lora_B.weight"}));
  const auto added = std::ranges::find(b.program().steps, "self_attn.q_proj.residual_add", &Step::label);
  ASSERT_NE(added, b.program().steps.end());
  EXPECT_EQ(added->params, std::vector<double>{2}) << "8 / 4";
  // x = 1, W = 3, A = (1, 0, 0, 0), B = (5, 0, 0, 0): 3 + 2 * 5
  Builder one;
  const Value in = one.input("x", {1, 1}), w = one.input("w", {1, 1}), up = one.input("b", {1, 4}),
              down = one.input("a", {4, 1}), y = lora_linear(one, in, w, one.zeros({0, 1}), down, up, 8).y;
  one.output(y);
  Session s(one.take(), cpu());
  s.set(in, std::vector<float>{1}), s.set(w, std::vector<float>{3});
  s.set(down, std::vector<float>{1, 0, 0, 0}), s.set(up, std::vector<float>{5, 0, 0, 0});
  s.run();
  EXPECT_EQ(s.get<float>(y), std::vector<float>{13});
}

/// One projection: W of the base, A and B; y = x Wᵀ + b + alpha / rank (x Aᵀ) Bᵀ.
TEST(Adapters, OfOneProjection) {
  TransformerConfig c = tiny();
  c.trains = false, c.biases = {Projection::q}, c.adapters = {{Projection::q}, 4, 8};
  Builder b;
  const Value x = b.input("x", {1, 8}), y = projection(b, c, Projection::q, x);
  b.output(y);
  const Program p = b.take();
  EXPECT_EQ(adapter_names(p), (std::vector<std::string>{"q_proj.lora_A.weight", "q_proj.lora_B.weight"}));
  EXPECT_EQ(parameter_count(p, true), 4 * (8 + 8));
  const Differentiated d = differentiate(p, std::vector{y});
  EXPECT_EQ(d.gradients.size(), 2u) << "the base is frozen";
  Session s(p, cpu());
  initialize(s, 1);
  const auto is_zero = [&](const char* name) {
    return std::ranges::count(s.get<float>(parameter(p, name).value), 0.0F) == 32;
  };
  EXPECT_TRUE(is_zero("q_proj.lora_B.weight"));
  EXPECT_FALSE(is_zero("q_proj.lora_A.weight"));
  const auto set = [&](const char* name, const Shape& shape, const std::vector<float>& first) {
    std::vector<float> all(static_cast<std::size_t>(shape.size()));
    std::ranges::copy(first, all.begin());
    set_parameter(s, name, shape, all);
  };
  set("q_proj.weight", {8, 8}, {3, 2}), set("q_proj.bias", {8}, {100});
  set("q_proj.lora_A.weight", {4, 8}, {1, 1}), set("q_proj.lora_B.weight", {8, 4}, {5});
  s.set(x, std::vector<float>{7, 11, 0, 0, 0, 0, 0, 0});
  s.run();
  EXPECT_EQ(s.get<float>(y)[0], 3 * 7 + 2 * 11 + 100 + 2 * 5 * (7 + 11)) << "the scale is 8 / 4";
  expect_refused("q_proj.weight: it is [8, 8], and [8, 7] was given", [&] { set("q_proj.weight", {8, 7}, {}); });
  expect_refused("q_proj.lora_A.weight: it is [4, 8], and [8, 4] was given", [&] {
    set("q_proj.lora_A.weight", {8, 4}, {});
  });
}

/// Adapters on q, k, v, o around an attention that is there: eight tensors, A before B, and the base's weights.
TEST(Adapters, AroundTheWeightsOfAnAttention) {
  const auto attention = [](const TransformerConfig& c) {
    Builder b;
    b.output(self_attention(b, c, b.input("x", {3, c.hidden}), sequences(b, c, 3)));
    return b.take();
  };
  TransformerConfig c = full(), adapted = c;  // Q is not H
  c.adapters.on.clear();
  adapted.trains = false, adapted.adapters = {{Projection::q, Projection::k, Projection::v, Projection::o}, 4, 8};
  const Index h = c.hidden, q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim, r = 4;
  Session base(attention(c), cpu());
  Session s(attention(adapted), cpu());
  initialize(base, 7);
  set_parameter(base, "self_attn.k_proj.bias", {kv}, std::vector<float>(static_cast<std::size_t>(kv), 5));
  set_base(s, base, 1);
  std::vector<std::pair<std::string, Shape>> want, got;
  for (const auto& [name, in, out] : {std::tuple{"q", h, q}, {"k", h, kv}, {"v", h, kv}, {"o", q, h}}) {
    want.emplace_back(fmt::format("self_attn.{}_proj.lora_A.weight", name), Shape{r, in});
    want.emplace_back(fmt::format("self_attn.{}_proj.lora_B.weight", name), Shape{out, r});
  }
  for (const std::string& name : adapter_names(s.program())) got.emplace_back(name, parameter(s.program(), name).shape);
  EXPECT_EQ(got, want);
  EXPECT_EQ(parameter_count(s.program(), true), r * (h + q) + 2 * r * (h + kv) + r * (q + h));
  for (const Parameter& p : s.program().parameters)
    EXPECT_EQ(get_parameter(s, p), p.name.find("lora") == p.name.npos
                                       ? get_parameter(base, parameter(base.program(), p.name))
                                       : initial_values(p.name, p.shape, 1))
        << p.name;
  const std::vector<float> before = get_parameter(s, s.program().parameters[0]);
  TransformerConfig other = c;
  other.heads = 2;
  Session narrow(attention(other), cpu());
  expect_refused("self_attn.q_proj.weight: it is [16, 6], and the base has [8, 6]; take a base of the same",
                 [&] { set_base(s, narrow, 1); });
  other = c, other.k_norm = false;
  Session without(attention(other), cpu());
  expect_refused("self_attn.k_norm.weight: the program has no parameter of this name",
                 [&] { set_base(s, without, 1); });
  other = c, other.biases.insert(Projection::o);
  Session more(attention(other), cpu());
  expect_refused("self_attn.o_proj.bias: the base has it, and the model has not", [&] { set_base(s, more, 1); });
  EXPECT_EQ(get_parameter(s, s.program().parameters[0]), before);
}

/// Whose codes are what the adapters saw, not what was packed; here B is zero.
TEST(Adapters, MergeIntoTheBaseThatTheyWereTrainedOn) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("assay-merged-{}.safetensors", static_cast<long>(getpid()));
  for (const WeightFormat format : {WeightFormat::nf4, WeightFormat::q4_k}) {
    TransformerConfig c = tiny();
    c.trains = false, c.weights = format, c.adapters = {{Projection::q}, 4, 8};
    Builder b;
    b.output(self_attention(b, c, b.input("x", {1, c.hidden}), sequences(b, c, 1)));
    Session s(b.take(), cpu());
    initialize(s, 1);
    save_merged(s, c.adapters, file);
    const Weights merged(file);
    EXPECT_EQ(merged.entries().size(), 4u) << "no adapter";
    for (const std::string& name : attention_names(s.program())) {
      const Shape& shape = parameter(s.program(), name).shape;
      const std::vector<float> packed = initial_values(name, shape, 1);
      Builder both;
      const Value w = both.input("w", shape);
      Value meant;
      if (format == WeightFormat::q4_k) {
        meant = q4_k_dequantize(both, q4_k_quantize(both, w), shape[1]);
      } else {
        const Nf4QuantizeValues codes = nf4_quantize(both, w);
        meant = nf4_dequantize(both, codes.codes, codes.absmax, shape[1]);
      }
      both.output(meant);
      Session there_and_back(both.take(), cpu());
      there_and_back.set(w, packed), there_and_back.run();
      EXPECT_EQ(merged.read(name), there_and_back.get<float>(meant)) << name;
      EXPECT_NE(merged.read(name), packed) << name;
    }
  }
  std::filesystem::remove(file);
}

/// A fault of the whole run has no step of its own.
TEST(Faults, AreDescribedByTheirStepOrTheWholeRun) {
  EXPECT_EQ(falsify::describe({1, "layers.3.q_proj (linear)", "", {}}, 3), "step 2 of 3, layers.3.q_proj (linear)");
  EXPECT_EQ(falsify::describe({3, "the whole run", "", {}}, 3), "the whole run");
}

class Files : public testing::Test {
 protected:
  const std::filesystem::path file_ = std::filesystem::temp_directory_path() /
                                      fmt::format("assay-misuse-{}-{}.safetensors", static_cast<long>(getpid()),
                                                  testing::UnitTest::GetInstance()->current_test_info()->name());
  ~Files() override { std::filesystem::remove(file_); }

  static Program model(Index layers) {
    TransformerConfig c = tiny();
    c.layers = layers;
    Builder b;
    const Value ids = b.input("ids", {2}, DType::i32);
    b.output(decoder(b, c, ids, sequences(b, c, 2)));
    return b.take();
  }
};

TEST_F(Files, AMissingTensorIsNamedWithItsShapeAndWhatIsLikeIt) {
  Session one(model(1), cpu()), two(model(2), cpu());
  initialize(one, 1);
  save(one, file_);
  const Shape shape = parameter(two.program(), "model.layers.1.input_layernorm.weight").shape;
  expect_refused(
      fmt::format("has no tensor model.layers.1.input_layernorm.weight, which the model has as {}; like it, it "
                  "has model.layers.0.input_layernorm.weight {}; check the number of layers: the model has 2 "
                  "tensors of this kind, and the file 1",
                  to_string(shape), to_string(shape)),
      [&] { load(two, Weights(file_)); });
  expect_refused(file_.string(), [&] { load(two, Weights(file_)); });
  const std::vector<float> elements(4);
  save(file_, std::vector<NamedTensor>{{"other", {4}, elements}});
  expect_refused("it has none like it; check the model's configuration", [&] { load(one, Weights(file_)); });
}

TEST_F(Files, FurtherLayersAreNamed) {
  Session one(model(1), cpu()), two(model(2), cpu()), four(model(4), cpu());
  initialize(four, 1), save(four, file_);
  const Weights weights(file_);
  expect_refused(
      "model.layers.1 to model.layers.3: the weights have these 3 layers, and the model has 1; check the number of "
      "layers in the model's configuration",
      [&] { load(one, weights); });
  expect_refused("model.layers.2 to model.layers.3: the weights have these 2 layers, and the model has 2",
                 [&] { set_base(two, &weights, 1); });
  for (Session* s : {&one, &two})
    for (const Parameter& p : s->program().parameters)
      EXPECT_EQ(s->get<float>(p.value), std::vector<float>(static_cast<std::size_t>(p.shape.size()))) << p.name;
  const std::vector<std::string> left = load(one, weights, Layers::some);
  EXPECT_EQ(std::ssize(left), std::ssize(four.program().parameters) - std::ssize(one.program().parameters));
  const Parameter& p = parameter(one.program(), "model.layers.0.self_attn.v_proj.weight");
  EXPECT_EQ(one.get<float>(p.value), initial_values(p.name, p.shape, 1));
  initialize(two, 1), save(two, file_);
  expect_refused("model.layers.1: the weights have this layer, and the model has 1;",
                 [&] { load(one, Weights(file_)); });
}

/// Attention alone, by the names of a checkpoint.
TEST_F(Files, OneAttentionIsTakenOutOfAModel) {
  Session whole(model(1), cpu());
  initialize(whole, 1), save(whole, file_);
  Builder b;
  {
    const Builder::Scope layer(b, "model.layers.0");
    const Value x = b.input("x", {3, 8});
    b.output(self_attention(b, tiny(), x, sequences(b, tiny(), 3)));
  }
  Session s(b.take(), cpu());
  EXPECT_EQ(std::ssize(load(s, Weights(file_))), std::ssize(whole.program().parameters) - 4);
  for (const Parameter& p : s.program().parameters)
    EXPECT_EQ(s.get<float>(p.value), initial_values(p.name, p.shape, 1)) << p.name;
}

TEST_F(Files, AWeightThatIsNotFiniteIsNamed) {
  Session s(model(1), cpu());
  initialize(s, 1);
  const Parameter& p = parameter(s.program(), "model.layers.0.mlp.up_proj.weight");
  std::vector<float> weight = s.get<float>(p.value);
  weight[static_cast<std::size_t>(p.shape[1]) + 2] = kNan;
  s.set(p.value, weight);
  save(s, file_);
  expect_refused("model.layers.0.mlp.up_proj.weight: has the element nan at [1, 2]", [&] { load(s, Weights(file_)); });
}

}  // namespace
}  // namespace assay::program::misuse_test
