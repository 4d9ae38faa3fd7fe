// What programs, sessions, trainers and decoders are given wrongly: one sentence each, before anything is computed.
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
