// Transformers as programs: what configurations are refused, parameters by name, and results and derivatives against
// the equations, in double.
#include "program/model/transformer.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "blocks.hpp"
#include "core/errors.hpp"
#include "falsify/program/wiring.hpp"
#include "program/model/parameters.hpp"
#include "refusal.hpp"

namespace assay::program::transformer_test {
namespace {

class Blocks : public testing::TestWithParam<BlockCase> {};

TEST_P(Blocks, AreTheirEquationsAndSoAreTheirDerivatives) {
  const BlockCase& c = GetParam();
  const falsify::Wiring wiring(c);
  const auto got = wiring.run(wiring.right());
  const auto compare = [&](const falsify::Expected& expected, const std::vector<double>& numbers) {
    const falsify::Outcome outcome = falsify::judge(expected, numbers);
    EXPECT_FALSE(outcome.finding) << expected.name << ": " << outcome.finding->message;
    // Fewer: a bound that is too wide, or a gradient of zeros throughout.
    EXPECT_TRUE(vanishes(c, expected.name) || outcome.elements == std::ssize(numbers)) << expected.name;
  };
  for (std::size_t row = 0; row < got.size(); ++row) compare(wiring.expected()[row], got[row]);
  const std::vector<falsify::Expected> by_complex_step = wiring.by_complex_step();
  for (std::size_t leaf = 0; leaf < by_complex_step.size(); ++leaf)
    compare(by_complex_step[leaf], got[falsify::Wiring::kRuns + leaf]);
}

INSTANTIATE_TEST_SUITE_P(Of, Blocks, testing::ValuesIn(block_cases()),
                         [](const auto& info) { return info.param.name; });

/// A prompt in two chunks, then a decode step at its own position, against attention over all of it.
TEST(Relations, PrefillAndDecodeAreAttention) {
  constexpr Index s = 5, capacity = 7, heads = 4, kv_heads = 2, d = 4;
  const double scale = 0.5;
  Builder b;
  const Value q = b.input("q", {s, heads, d}), k = b.input("k", {s, kv_heads, d}), v = b.input("v", {s, kv_heads, d}),
              positions = b.input("positions", {s}, DType::i32), places = b.input("places", {s + 1}, DType::i32);
  const auto rotated = [&](Value x, Index from, Index to) {
    return rope(b, b.rows(x, from, to), b.rows(positions, from, to), 10000, 0, 0);
  };
  const auto batched = [&](Value x) {
    const Shape shape = b.shape(x);
    return b.reshape(x, {1, shape[0], shape[1], shape[2]});
  };
  const auto place = [&](Index i) { return b.rows(places, i, i + 1); };
  const Value all =
      attention(b, batched(rotated(q, 0, s)), batched(rotated(k, 0, s)), batched(v), place(s), place(0), scale, 1).y;
  Value keys = b.state("keys", {1, capacity, kv_heads, d}), values = b.state("values", {1, capacity, kv_heads, d});
  for (const auto& [from, to] : {std::pair<Index, Index>{0, 3}, {3, s - 1}}) {
    keys = cache_append(b, batched(rotated(k, from, to)), place(from), keys, capacity - (to - from));
    values = cache_append(b, batched(b.rows(v, from, to)), place(from), values, capacity - (to - from));
  }
  const Value step = attention_decode(b, rotated(q, s - 1, s), rotated(k, s - 1, s), b.rows(v, s - 1, s), place(s - 1),
                                      keys, values, scale)
                         .y;
  b.output(all), b.output(step);
  const Program& p = b.program();
  const Plan where = plan(p);
  falsify::Execution<double> run(p, where, std::nan(""));
  for_each_set_by_host(p, [&](Value of) {
    std::vector<double> numbers = numbers_of({"", full(), Part::attention, s, s}, p, of);
    if (of == places)
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
    write(run[of], numbers);
  });
  run.run();
  const std::vector<double> whole = read(run[all]);
  EXPECT_EQ(read(run[step]), std::vector<double>(whole.end() - heads * d, whole.end())) << "bit for bit";
}

TEST(TransformerConfigs, AreRefusedInOneSentence) {
  const auto with = [](const std::function<void(TransformerConfig&)>& change) {
    TransformerConfig c = full();
    change(c);
    return refusal([&] { check(c); });
  };
  using C = TransformerConfig;
  EXPECT_EQ(with([](C&) {}), "not refused");
  EXPECT_EQ(with([](C& c) { c.hidden = 0; }),
            "transformer: hidden: it is 0, and rmsnorm takes 1 to 1048576; choose one in that range");
  EXPECT_EQ(with([](C& c) { c.intermediate = -1; }).substr(0, 37), "transformer: intermediate: it is -1, ");
  EXPECT_EQ(with([](C& c) { c.heads = 5; }),
            "transformer: heads: 5 heads cannot share 2 key-value heads evenly; make heads a multiple of kv_heads");
  EXPECT_EQ(with([](C& c) { c.heads = 0; }).substr(0, 29), "transformer: heads: it is 0, ");
  EXPECT_EQ(with([](C& c) { c.kv_heads = 0; }).substr(0, 32), "transformer: kv_heads: it is 0, ");
  EXPECT_EQ(with([](C& c) { c.heads = 512; }),
            "transformer: heads: it is 512, and rope takes 1 to 256; choose one in that range");
  EXPECT_EQ(with([](C& c) { c.heads = 512, c.theta = 0; }), "not refused");
  EXPECT_EQ(with([](C& c) { c.head_dim = 3; }),
            "transformer: head_dim: 3 elements of a head are no pairs to rotate; make head_dim even, or theta 0");
  EXPECT_EQ(with([](C& c) { c.head_dim = 3, c.theta = 0; }), "not refused");
  EXPECT_EQ(with([](C& c) { c.head_dim = 3, c.theta = -1; }), "not refused");
  EXPECT_EQ(with([](C& c) { c.head_dim = 258; }).substr(0, 49), "transformer: head_dim: it is 258, and attention t");
  EXPECT_EQ(with([](C& c) { c.theta = 10; }).substr(0, 42), "transformer: theta: it is 10, and rope tak");
  EXPECT_EQ(with([](C& c) { c.theta = std::nan(""); }).substr(0, 43), "transformer: theta: it is nan, and rope tak");
  EXPECT_EQ(with([](C& c) { c.eps = 0; }).substr(0, 41), "transformer: eps: it is 0, and rmsnorm ta");
  EXPECT_EQ(with([](C& c) { c.layers = 0; }), "transformer: layers: it is 0; have 1 to 10000");
  EXPECT_EQ(with([](C& c) { c.vocabulary = 0; }).substr(0, 34), "transformer: vocabulary: it is 0, ");
  EXPECT_EQ(with([](C& c) { c.adapters.rank = 0; }).substr(0, 58),
            "transformer: adapters.rank: it is 0, and lora_linear takes");
  EXPECT_EQ(with([](C& c) { c.adapters.alpha = 0; }).substr(0, 40), "transformer: adapters.alpha: it is 0, an");
  EXPECT_EQ(with([](C& c) { c.weights = WeightFormat::nf4; }),
            "transformer: weights: nf4 does not train; set trains to false");
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::nf4})
    EXPECT_EQ(
        with([&](C& c) { c.trains = false, c.weights = format, c.adapters.rank = 1, c.adapters.alpha = 32; }),
        format == WeightFormat::f32
            ? "not refused"
            : "transformer: adapters.alpha / rank: it is 32, and residual_add takes -16 to 16; choose one in that "
              "range");
  EXPECT_EQ(with([](C& c) { c.adapters.on.clear(), c.trains = false; }), "not refused");
  EXPECT_EQ(refusal([] {
              Builder b;
              TransformerConfig c = full();
              c.heads = 5;
              attention_block(b, c, b.input("x", {2, c.hidden}), sequences(b, c, 2));
            }).substr(0, 26),
            "transformer: heads: 5 head")
      << "a block is not built";
  EXPECT_EQ(refusal([] {
              Builder b;
              sequences(b, full(), 7, 2);
            }),
            "transformer: batch: 7 rows are no 2 sequences of one length; pad the shorter ones");
}

TEST(TransformerConfigs, WithANegativeBaseRotateNothing) {
  const auto steps = [](double theta) {
    BlockCase c = block_case("encoder");
    c.config.theta = theta;
    return Block(c).builder.program().steps;
  };
  const std::vector<Step> none = steps(0), negative = steps(-1);
  EXPECT_TRUE(std::ranges::none_of(none, [](const Step& s) { return s.op->name == "rope"; }));
  EXPECT_TRUE(std::ranges::equal(negative, none, [](const Step& a, const Step& b) {
    return a.label == b.label && a.dims == b.dims && a.params == b.params && a.tensors == b.tensors;
  }));
}

Program attention_program(const TransformerConfig& config) {
  return Block({"", config, Part::attention}).builder.program();
}

TEST(TransformerParameters, HaveTheNamesAndShapesOfCheckpoints) {
  TransformerConfig c = full();
  c.adapters.on = {Projection::q};
  std::map<std::string, Shape> shapes;
  const Program p = attention_program(c);
  for (const Parameter& parameter : p.parameters) shapes[parameter.name] = p[parameter.value].shape;
  const std::map<std::string, Shape> want{{"input_layernorm.weight", {6}},
                                          {"self_attn.q_proj.weight", {16, 6}},
                                          {"self_attn.q_proj.bias", {16}},
                                          {"self_attn.q_proj.lora_A.weight", {2, 6}},
                                          {"self_attn.q_proj.lora_B.weight", {16, 2}},
                                          {"self_attn.k_proj.weight", {8, 6}},
                                          {"self_attn.k_proj.bias", {8}},
                                          {"self_attn.v_proj.weight", {8, 6}},
                                          {"self_attn.v_proj.bias", {8}},
                                          {"self_attn.o_proj.weight", {6, 16}},
                                          {"self_attn.q_norm.weight", {4}},
                                          {"self_attn.k_norm.weight", {4}}};
  EXPECT_EQ(shapes, want);

  const Program model = Block(block_case("tied_loss")).builder.program();
  EXPECT_EQ(model.parameters.front().name, "model.embed_tokens.weight");
  EXPECT_EQ(parameter(model, "model.layers.1.mlp.down_proj.lora_B.weight").value.id >= 0, true);
  EXPECT_EQ(model.parameters.back().name, "model.norm.weight") << "a tied head has no weight of its own";
  EXPECT_EQ(Block(block_case("untied_loss")).builder.program().parameters.back().name, "lm_head.weight");
  EXPECT_EQ(refusal([&] { parameter(model, "w_q"); }).substr(0, 47), "w_q: the program has no parameter of this name;");
}

std::vector<std::string> names(const Program& program, const std::function<bool(const Parameter&)>& which) {
  std::vector<std::string> all;
  for (const Parameter& p : program.parameters)
    if (which(p)) all.push_back(p.name);
  return all;
}

TEST(TransformerParameters, HaveOneOrder) {
  TransformerConfig c = full();
  c.layers = 2, c.biases.insert(Projection::o);
  const std::vector<std::string> layer{
      "input_layernorm.weight",         "self_attn.q_proj.weight",         "self_attn.q_proj.bias",
      "self_attn.q_proj.lora_A.weight", "self_attn.q_proj.lora_B.weight",  "self_attn.k_proj.weight",
      "self_attn.k_proj.bias",          "self_attn.k_proj.lora_A.weight",  "self_attn.k_proj.lora_B.weight",
      "self_attn.v_proj.weight",        "self_attn.v_proj.bias",           "self_attn.v_proj.lora_A.weight",
      "self_attn.v_proj.lora_B.weight", "self_attn.q_norm.weight",         "self_attn.k_norm.weight",
      "self_attn.o_proj.weight",        "self_attn.o_proj.bias",           "self_attn.o_proj.lora_A.weight",
      "self_attn.o_proj.lora_B.weight", "post_attention_layernorm.weight", "mlp.gate_proj.weight",
      "mlp.gate_proj.lora_A.weight",    "mlp.gate_proj.lora_B.weight",     "mlp.up_proj.weight",
      "mlp.up_proj.lora_A.weight",      "mlp.up_proj.lora_B.weight",       "mlp.down_proj.weight",
      "mlp.down_proj.lora_A.weight",    "mlp.down_proj.lora_B.weight"};
  std::vector<std::string> model{"model.embed_tokens.weight"};
  for (const char* prefix : {"model.layers.0.", "model.layers.1."})
    for (const std::string& name : layer) model.push_back(prefix + name);
  model.insert(model.end(), {"model.norm.weight", "lm_head.weight"});
  const auto any = [](const Parameter&) { return true; };
  EXPECT_EQ(names(Block({"", c, Part::loss}).builder.program(), any), model);
  c.trains = false;
  // By other operations, in the same order.
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::nf4, WeightFormat::q4_k}) {
    c.weights = format;
    EXPECT_EQ(names(Block({"", c, Part::loss}).builder.program(), any), model);
  }
}

/// Of an attention block: weights, biases, norms, whatever else lies between.
TEST(TransformerParameters, OfAttentionAreListedInTheirOrder) {
  using Names = std::vector<std::string>;
  const Names weights{"q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight"};
  const auto listed = [](const TransformerConfig& c) {
    Names all = attention_names(attention_program(c));
    for (std::string& name : all) name = name.substr(std::string_view("self_attn.").size());
    return all;
  };
  const auto with = [&](const Names& more) {
    Names all = weights;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  TransformerConfig c = full();
  EXPECT_EQ(listed(c), with({"q_proj.bias", "k_proj.bias", "v_proj.bias", "q_norm.weight", "k_norm.weight"}))
      << "all nine, and no adapter";
  c.q_norm = c.k_norm = false;
  EXPECT_EQ(listed(c), with({"q_proj.bias", "k_proj.bias", "v_proj.bias"}));
  c.biases = {Projection::o, Projection::k}, c.k_norm = true;
  EXPECT_EQ(listed(c), with({"k_proj.bias", "o_proj.bias", "k_norm.weight"})) << "each alone";
  c.biases.clear(), c.k_norm = false;
  EXPECT_EQ(listed(c), weights);
  const Program model = Block(block_case("tied_loss")).builder.program();
  EXPECT_EQ(attention_names(model, "model.layers.1.self_attn").size(), 9u);
  EXPECT_EQ(refusal([&] { attention_names(model); }).substr(0, 52),
            "self_attn.q_proj.weight: the program has no paramete");
}

TEST(TransformerConfigs, TinyIsALlamaOfOneLayer) {
  const TransformerConfig c = tiny();
  EXPECT_EQ(refusal([&] { check(c); }), "not refused");
  EXPECT_EQ(c.heads * c.head_dim, c.hidden);
  EXPECT_EQ((std::vector{c.hidden, c.intermediate, c.heads, c.kv_heads, c.head_dim, c.layers, c.vocabulary}),
            (std::vector<Index>{8, 16, 2, 2, 4, 1, 11}));
  EXPECT_TRUE(c.theta > 0 && c.causal && c.biases.empty() && c.adapters.on.empty());
}

/// The block without its norm and what passes by it: the same bits.
TEST(SelfAttention, IsTheBlocksOwn) {
  const TransformerConfig c = full();
  const Index rows = 6;
  const auto session = [&](bool whole, Value& x, Value& y, Value& normed) {
    Builder b;
    x = b.input("x", {rows, c.hidden});
    const Sequences all = sequences(b, c, rows, 2);
    y = whole ? attention_block(b, c, x, all) : self_attention(b, c, x, all);
    b.output(y);
    for (const Activation& a : activations(b.program()))
      if (a.name == "attn_norm_out") b.output(normed = a.value);
    auto s = std::make_unique<Session>(b.take(), device(Backend::cpu));
    initialize(*s, 3);
    s->set(all.lengths, std::vector<std::int32_t>{3, 2}), s->set(all.starts, std::vector<std::int32_t>{0, 0});
    s->set(all.positions, std::vector<std::int32_t>{0, 1, 2, 0, 1, 2});
    return s;
  };
  Value x, y, normed, bare_x, bare_y, none;
  const auto block = session(true, x, y, normed), bare = session(false, bare_x, bare_y, none);
  EXPECT_FALSE(none);
  EXPECT_EQ(bare->program().steps.size() + 2, block->program().steps.size());
  std::vector<float> given(static_cast<std::size_t>(rows * c.hidden));
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = 0.5F * std::sin(0.17F * static_cast<float>(i));
  block->set(x, given), block->run();
  bare->set(bare_x, block->get<float>(normed)), bare->run();
  std::vector<float> want = bare->get<float>(bare_y);
  EXPECT_GT(std::ranges::count_if(want, [](float f) { return std::fabs(f) > 1e-10F; }), std::ssize(want) / 2);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += given[i];
  EXPECT_EQ(block->get<float>(y), want);
}

/// ENT-272, ALB-038: with rotation and no frozen weight, gradients reach q, k, v, o and x.
TEST(SelfAttention, ENT_272) {
  const TransformerConfig c = tiny();
  constexpr Index s = 3;
  Builder b;
  const Value x = b.input("x", {s, c.hidden});
  const Sequences all = sequences(b, c, s);
  const Value y = self_attention(b, c, x, all);
  b.output(y);
  std::vector<Value> leaves{x};
  for (const std::string& name : attention_names(b.program())) leaves.push_back(parameter(b.program(), name).value);
  ASSERT_EQ(leaves.size(), 5u);
  const Differentiated d = differentiate(b.program(), std::vector{y}, leaves);
  Session session(d.program, device(Backend::cpu));
  initialize(session, 1);
  std::vector<float> given;
  for (Index i = 0; i < s * c.hidden; ++i) given.push_back(0.5F * std::sin(0.17F * static_cast<float>(i)));
  session.set(x, given), session.set(d.upstream[0], std::vector<float>(given.size(), 1));
  session.set(all.lengths, std::vector<std::int32_t>{s}), session.set(all.starts, std::vector<std::int32_t>{0});
  session.set(all.positions, std::vector<std::int32_t>{0, 1, 2});
  session.run();
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const std::vector<float> gradient = session.get<float>(d.gradients[leaf]);
    EXPECT_TRUE(std::ranges::all_of(gradient, [](float g) { return std::isfinite(g); }))
        << d.program[leaves[leaf]].name;
    EXPECT_TRUE(std::ranges::any_of(gradient, [](float g) { return std::fabs(g) > 1e-10F; }))
        << d.program[leaves[leaf]].name;
  }
}

/// Of a frozen base what names say trains, each bias and norm alone; packed weights and names of nothing are refused.
TEST(TransformerParameters, TrainByName) {
  TransformerConfig c = full();
  c.trains = false, c.adapters.on = {Projection::q}, c.weights = WeightFormat::nf4;
  const auto trained = [&](std::vector<std::string> patterns) {
    c.trained = std::move(patterns);
    const Program p = attention_program(c);
    check_trained(c, p);
    std::vector<std::string> all = names(p, [](const Parameter& parameter) { return parameter.trainable; });
    std::erase_if(all, [](const std::string& name) { return name.find("lora_") != name.npos; });
    return all;
  };
  using Names = std::vector<std::string>;
  const std::string self = "self_attn.";
  EXPECT_EQ(trained({}), Names{});
  EXPECT_EQ(trained({"*.bias"}), (Names{self + "q_proj.bias", self + "k_proj.bias", self + "v_proj.bias"}));
  EXPECT_EQ(trained({self + "v_proj.bias"}), Names{self + "v_proj.bias"});
  EXPECT_EQ(trained({"*k_norm*"}), Names{self + "k_norm.weight"});
  EXPECT_EQ(trained({"*norm.weight"}),
            (Names{"input_layernorm.weight", self + "q_norm.weight", self + "k_norm.weight"}));
  EXPECT_EQ(refusal([&] {
              trained({"*.bias", "*.biases"});
            }),
            "transformer: trained: '*.biases' names no parameter of the model; name parameters as checkpoints do, with "
            "* for any characters");
  EXPECT_EQ(refusal([&] { trained({"*v_proj.weight"}); }),
            "transformer: trained: self_attn.v_proj.weight is in nf4, which does not train; name other parameters, or "
            "have weights in f32");
  c.weights = WeightFormat::f32;
  EXPECT_EQ(trained({"*v_proj.weight"}), Names{self + "v_proj.weight"});
  c.decodes = true;
  EXPECT_EQ(trained({"*.bias"}), Names{}) << "nothing trains while it decodes";
}

TEST(TransformerParameters, AreCounted) {
  // Adapters on q, k, v, o: R (H + Q) + 2 R (H + KV) + R (Q + H), whether Q is H or not.
  TransformerConfig c = full();
  c.adapters.on = {Projection::q, Projection::k, Projection::v, Projection::o};
  c.trains = false;
  const Index h = 6, q = 16, kv = 8, r = 2;
  const Index adapters = r * (h + q) + 2 * r * (h + kv) + r * (q + h);
  EXPECT_EQ(parameter_count(attention_program(c), true), adapters);
  const Index base = h + q * h + q + 2 * (kv * h + kv) + h * q + 2 * c.head_dim;
  EXPECT_EQ(parameter_count(attention_program(c)), base + adapters);
  c.trains = true;
  EXPECT_EQ(parameter_count(attention_program(c), true), base + adapters);
}

TEST(TransformerParameters, BeginAsSeedAndFullNameSay) {  // C-INIT-001
  const Shape shape{40, 50};
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  const std::vector<float> one = initial_values(name, shape, 7);
  EXPECT_EQ(one, initial_values(name, shape, 7));
  EXPECT_NE(one, initial_values(name, shape, 8));
  EXPECT_NE(one, initial_values("model.layers.1.self_attn.q_proj.weight", shape, 7)) << "layers begin alike";
  EXPECT_NE(one, initial_values("model.layers.0.self_attn.k_proj.weight", shape, 7));
  EXPECT_EQ(std::vector(one.begin(), one.begin() + 4),
            (std::vector{0x1.3de7aep-5F, 0x1.168e14p-6F, 0x1.3da29p-6F, 0x1.a06b86p-6F}))
      << "of every version, on every platform";
  double sum = 0, squares = 0, fourths = 0;
  for (const float w : one) sum += w, squares += std::pow(w, 2), fourths += std::pow(w, 4);
  // Within six standard errors of normal(0, 0.02): of the mean 0.02 / sqrt(n), of the variance 0.02² sqrt(2 / n), of
  // the kurtosis sqrt(24 / n). Of a sum of twelve uniform numbers the kurtosis is 2.9, of one such number 1.8.
  EXPECT_LE(std::fabs(sum / 2000), 6 * 0.02 / std::sqrt(2000.0));
  EXPECT_LE(std::fabs(squares / 2000 - 0.0004), 6 * 0.0004 * std::sqrt(2 / 2000.0));
  EXPECT_LE(std::fabs(fourths / 2000 / std::pow(squares / 2000, 2) - 2.9), 6 * std::sqrt(24 / 2000.0));
  EXPECT_EQ(initial_values("model.norm.weight", {3}, 7), std::vector<float>(3, 1));
  EXPECT_EQ(initial_values("model.layers.0.self_attn.q_norm.weight", {3}, 7), std::vector<float>(3, 1));
  EXPECT_EQ(initial_values("model.layers.0.self_attn.q_proj.bias", {3}, 7), std::vector<float>(3, 0));
  EXPECT_EQ(initial_values("model.layers.0.self_attn.q_proj.lora_B.weight", {3, 2}, 7), std::vector<float>(6, 0));
  EXPECT_NE(initial_values("model.layers.0.self_attn.q_proj.lora_A.weight", {3, 2}, 7), std::vector<float>(6, 0));

  Session session(attention_program(full()), device(Backend::cpu));
  initialize(session, 7);
  const Program& p = session.program();
  for (const Parameter& parameter : p.parameters)
    EXPECT_EQ(session.get<float>(parameter.value), initial_values(parameter.name, p[parameter.value].shape, 7))
        << parameter.name;
}

TEST(TransformerParameters, OfAnotherShapeAreRejected) {
  Session session(attention_program(full()), device(Backend::cpu));
  const Program& p = session.program();
  for (const Parameter& parameter : p.parameters) {
    Shape wrong = p[parameter.value].shape;
    if (wrong.rank() == 2 && wrong[0] != wrong[1]) std::swap(wrong[0], wrong[1]);  // transposed: as many elements
    else wrong[0] += 1;
    const std::vector<float> elements(static_cast<std::size_t>(wrong.size()), 1);
    EXPECT_EQ(refusal([&] { set_parameter(session, parameter.name, wrong, elements); }),
              fmt::format("{}: it is {}, and {} was given; give it in its own layout: a weight is [out, in]",
                          parameter.name, to_string(p[parameter.value].shape), to_string(wrong)));
    const std::vector<float> right(static_cast<std::size_t>(p[parameter.value].shape.size()), 2);
    EXPECT_EQ(
        refusal([&] { set_parameter(session, parameter.name, p[parameter.value].shape, std::span(right).subspan(1)); }),
        fmt::format("{}: it is {}, and {} elements were given; give {}", parameter.name,
                    to_string(p[parameter.value].shape), right.size() - 1, right.size()));
    set_parameter(session, parameter.name, p[parameter.value].shape, right);
    EXPECT_EQ(session.get<float>(parameter.value), right);
  }
}

TEST(TransformerParameters, OfAFrozenBaseGetNoGradientsUnlessAsked) {
  TransformerConfig c = full();
  c.trains = false;
  const Block block({"", c, Part::layer});
  const Differentiated d = differentiate(block.builder.program(), std::vector{block.y});
  EXPECT_EQ(d.gradients.size(), 2 * kProjections.size()) << "A and B of every projection";
  for (const Storage& s : d.program.storages) EXPECT_EQ(s.name.find("gradients of frozen"), std::string::npos);
}

}  // namespace
}  // namespace assay::program::transformer_test
