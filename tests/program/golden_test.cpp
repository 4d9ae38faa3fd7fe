// Decoder layers and models against PyTorch's (tests/golden), in double: the results that nobody here wrote.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "blocks.hpp"
#include "falsify/program/check.hpp"
#include "on_device.hpp"
#include "program/model/parameters.hpp"

namespace assay::program::golden_test {
namespace {

using falsify::Execution;
using nlohmann::json;

BlockCase case_of(const std::string& name, const json& c) {
  BlockCase made{name, {}, c["vocabulary"] > 1 ? Part::loss : Part::layer, c["s"], c.value("length", c["s"])};
  made.batch = c.value("batch", 1), made.multi_label = c.value("multi_label", false);
  if (made.classes = c.value("classes", 0); made.classes > 0) made.part = Part::classifier;
  TransformerConfig& t = made.config;
  t.hidden = c["hidden"], t.intermediate = c["intermediate"], t.heads = c["heads"], t.kv_heads = c["kv_heads"];
  t.head_dim = c["head_dim"], t.layers = c["layers"], t.vocabulary = c["vocabulary"], t.theta = c["theta"];
  t.eps = c["eps"], t.q_norm = t.k_norm = c["qk_norm"], t.tied_head = c["tied_head"];
  t.adapters.rank = c["rank"], t.adapters.alpha = c["alpha"];
  t.causal = c.value("causal", true);
  const auto set_of = [](const json& names) {
    std::set<Projection> set;
    for (const Projection p : kProjections)
      for (const json& name : names)
        if (name.get<std::string>() + "_proj" == program::name(p)) set.insert(p);
    return set;
  };
  t.adapters.on = set_of(c["adapters"]), t.biases = set_of(c.value("biases", json::array()));
  if (c["qkv_bias"]) t.biases = {Projection::q, Projection::k, Projection::v};
  return made;
}

/// Operands and results by name: a leaf, "LEAF.gradient", "ids", "targets", "class weights" or ones, "upstream", "y".
struct Golden {
  std::string name;
  json config;
  std::map<std::string, std::vector<double>> numbers;
};

/// Blocks by equations in plain PyTorch (blocks.py).
std::vector<Golden> blocks() {
  std::ifstream file(ASSAY_GOLDEN "/blocks.json");
  const json all = json::parse(file);
  std::vector<Golden> read;
  for (const auto& [name, block] : all.items()) {
    if (name == "made_by") continue;
    Golden& golden = read.emplace_back(Golden{name, block["config"], {}});
    for (const auto& [key, numbers] : block.items())
      if (numbers.is_array()) golden.numbers[key] = numbers.get<std::vector<double>>();
    for (const auto& [leaf, of] : block["leaves"].items()) {
      golden.numbers[leaf] = of["value"].get<std::vector<double>>();
      golden.numbers[leaf + ".gradient"] = of["gradient"].get<std::vector<double>>();
    }
  }
  return read;
}

/// Models by the classes of transformers and peft (models.py).
std::vector<Golden> models(const std::string& name) {
  std::ifstream file(ASSAY_GOLDEN "/" + name + ".safetensors", std::ios::binary);
  std::uint64_t bytes = 0;
  file.read(reinterpret_cast<char*>(&bytes), sizeof bytes);
  std::string text(bytes, ' ');
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  const std::streamoff data = file.tellg();
  const json header = json::parse(text);
  std::map<std::string, Golden> read;
  for (const auto& [model, config] : header["__metadata__"].items())
    if (model != "made_by") read[model] = {model, json::parse(config.get<std::string>()), {}};
  for (const auto& [key, tensor] : header.items()) {
    if (key == "__metadata__") continue;
    const std::size_t slash = key.find('/');
    std::vector<double>& numbers = read.at(key.substr(0, slash)).numbers[key.substr(slash + 1)];
    const auto& offsets = tensor["data_offsets"];
    numbers.resize((offsets[1].get<std::size_t>() - offsets[0].get<std::size_t>()) / sizeof(double));
    file.seekg(data + offsets[0].get<std::streamoff>());
    file.read(reinterpret_cast<char*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * sizeof(double)));
  }
  std::vector<Golden> all;
  for (auto& [model, golden] : read) all.push_back(std::move(golden));
  return all;
}

void expect_same(const Golden& golden) {
  SCOPED_TRACE(golden.name);
  const BlockCase c = case_of(golden.name, golden.config);
  const Block block(c);
  const std::vector<Value> leaves = block.leaves();
  const Differentiated d = block.differentiated();
  const Plan where = plan(d.program);
  Execution<double> exact(d.program, where, std::nan(""));
  Execution<Bounded> bounded(d.program, where, Bounded(std::nan("")));
  // Operands are float32 numbers, and their nine digits name them.
  const auto set = [&](auto& execution, Value v, const std::vector<double>& numbers) {
    std::vector<double> values;
    for (const double n : numbers) values.push_back(static_cast<float>(n));
    ASSERT_EQ(values.size(), static_cast<std::size_t>(execution[v].size())) << d.program[v].name;
    write(execution[v], values);
  };
  const auto prepare = [&](auto& execution) {
    set_all(execution, d.program, c);  // lengths and class weights
    for (const Value leaf : leaves) set(execution, leaf, golden.numbers.at(d.program[leaf].name));
    for_each_set_by_host(d.program, [&](Value v) {
      const std::string& input = d.program[v].name;
      if (golden.numbers.contains(input)) set(execution, v, golden.numbers.at(input));
      else if (input == "class weights")
        write(execution[v], std::vector<double>(static_cast<std::size_t>(execution[v].size()), 1));
      else if (input == "positions") {
        std::vector<double> positions(static_cast<std::size_t>(c.rows()));
        for (std::size_t i = 0; i < positions.size(); ++i)
          positions[i] = static_cast<double>(static_cast<Index>(i) % c.s);
        set(execution, v, positions);
      }
    });
    set(execution, d.upstream[0], golden.numbers.at("upstream"));
    execution.run();
  };
  prepare(exact), prepare(bounded);
  // The bound of float32 arithmetic, scaled to double's unit roundoff; PyTorch's own rounding takes as much.
  const auto compare = [&](Value v, const std::string& of) {
    const std::vector<double>&want = golden.numbers.at(of), got = read(exact[v]);
    ASSERT_EQ(want.size(), got.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double bound = 2 * 0x1p-29 * bounded[v].data()[i].error;
      ASSERT_LT(bound, 1e-6 * (1 + std::fabs(want[i]))) << of << " " << i << ": no bound";
      EXPECT_LE(std::fabs(got[i] - want[i]), bound) << of << " " << i;
    }
  };
  compare(block.y, "y");
  for (std::size_t n = 0; n < leaves.size(); ++n) compare(d.gradients[n], d.program[leaves[n]].name + ".gradient");
  std::size_t gradients = 0;
  for (const auto& [name, numbers] : golden.numbers) gradients += name.ends_with(".gradient");
  EXPECT_EQ(gradients, leaves.size());
}

TEST(Golden, BlocksArePyTorchs) {
  const std::vector<Golden> all = blocks();
  EXPECT_EQ(all.size(), 6U);
  for (const Golden& golden : all) expect_same(golden);
}

TEST(Golden, ModelsAreThoseOfTransformersAndPeft) {
  const std::vector<Golden> all = models("models");
  EXPECT_EQ(all.size(), 6U);
  for (const Golden& golden : all) expect_same(golden);
}

/// Padded batches, encoders, biases of every projection, biases beside norms of heads, adapters on other sets, classifiers.
TEST(Golden, VariantsAreThoseOfTransformersAndPeft) {
  const std::vector<Golden> all = models("variants");
  EXPECT_EQ(all.size(), 8U);
  for (const Golden& golden : all) expect_same(golden);
}

/// Logits of a model in bf16 as transformers computes them, eager: which results it rounds, beside the bound of what
/// happens in f32 between two such roundings. Linear maps and norms sum in f32; angles are f32 and their cosines and
/// sines bf16; scores, their multiples by the scale, probabilities and each product of elements are rounded alone.
/// Without `rounds` the same equations with no rounding to bf16.
class OfTransformers {
 public:
  OfTransformers(const Golden& golden, const TransformerConfig& config, bool rounds)
      : golden_(golden), c_(config), rounds_(rounds) {}

  std::vector<Bounded> logits() const {
    Rows x;
    for (const double id : golden_.numbers.at("ids")) x.push_back(row("model.embed_tokens.weight", id, c_.hidden));
    for (Index layer = 0; layer < c_.layers; ++layer) {
      const std::string of = "model.layers." + std::to_string(layer) + ".";
      const Rows h = norm(x, of + "input_layernorm.weight");
      Rows q = linear(h, of + "self_attn.q_proj"), k = linear(h, of + "self_attn.k_proj");
      const Rows v = linear(h, of + "self_attn.v_proj");
      if (c_.q_norm) q = norm(q, of + "self_attn.q_norm.weight"), k = norm(k, of + "self_attn.k_norm.weight");
      add(x, linear(attention(rotated(q), rotated(k), v), of + "self_attn.o_proj"));
      const Rows z = norm(x, of + "post_attention_layernorm.weight"), up = linear(z, of + "mlp.up_proj");
      Rows gate = linear(z, of + "mlp.gate_proj");
      each(gate, [&](Index i, Index j) { gate[i][j] = bf16(bf16(gate[i][j] * sigmoid(gate[i][j])) * up[i][j]); });
      add(x, linear(gate, of + "mlp.down_proj"));
    }
    std::vector<Bounded> flat;
    for (const Row& of_token : linear(norm(x, "model.norm.weight"), c_.tied_head ? "model.embed_tokens" : "lm_head"))
      flat.insert(flat.end(), of_token.begin(), of_token.end());
    return flat;
  }

 private:
  using Row = std::vector<Bounded>;
  using Rows = std::vector<Row>;

  /// Nearly always one number: those within the bound of x are rounded to the same.
  Bounded bf16(const Bounded& x) const {
    if (!rounds_) return x;
    const auto rounded = [](double of) { return stored(DType::bf16, static_cast<float>(of)); };
    const double to = rounded(x.value), below = rounded(x.value - x.error), above = rounded(x.value + x.error);
    return {to, std::max(to - below, above - to), 0, x.may_overflow};
  }
  template <class F>
  static void each(const Rows& x, F f) {
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < x[i].size(); ++j) f(i, j);
  }
  void add(Rows& x, const Rows& y) const {
    each(x, [&](std::size_t i, std::size_t j) { x[i][j] = bf16(x[i][j] + y[i][j]); });
  }
  Row row(const std::string& name, double at, Index width) const {
    const auto begin = golden_.numbers.at(name).begin() + static_cast<Index>(at) * width;
    return {begin, begin + width};
  }
  Rows linear(const Rows& x, const std::string& name) const {
    const std::vector<double>& weight = golden_.numbers.at(name + ".weight");
    const auto inner = static_cast<Index>(x[0].size()), outer = std::ssize(weight) / inner;
    const bool biased = golden_.numbers.contains(name + ".bias");
    Rows y(x.size(), Row(static_cast<std::size_t>(outer)));
    each(y, [&](std::size_t i, std::size_t j) {
      const Row w = row(name + ".weight", static_cast<double>(j), inner);
      Sum<Bounded> sum;
      for (std::size_t p = 0; p < w.size(); ++p) sum += x[i][p] * w[p];
      if (biased) sum += Bounded(golden_.numbers.at(name + ".bias")[j]);
      y[i][j] = bf16(sum.value());
    });
    return y;
  }
  /// Norms of parts as wide as the weight.
  Rows norm(Rows x, const std::string& name) const {
    const std::vector<double>& weight = golden_.numbers.at(name);
    for (Row& r : x) {
      for (std::size_t part = 0; part < r.size(); part += weight.size()) {
        Sum<Bounded> squares;
        for (std::size_t j = part; j < part + weight.size(); ++j) squares += r[j] * r[j];
        const Bounded rrms =
            reciprocal_sqrt(quotient(squares.value(), Bounded(static_cast<double>(weight.size()))) + Bounded(c_.eps));
        for (std::size_t j = part; j < part + weight.size(); ++j)
          r[j] = bf16(bf16(r[j] * rrms) * Bounded(weight[j - part]));
      }
    }
    return x;
  }
  /// Frequencies in f32 are powers of theta: the exponent's rounding counts ln theta times, the power and its reciprocal
  /// and the angle each round once.
  Rows rotated(const Rows& x) const {
    const auto d = static_cast<std::size_t>(c_.head_dim);
    Rows y = x;
    each(x, [&](std::size_t i, std::size_t j) {
      const std::size_t pair = j % d % (d / 2), other = j % d < d / 2 ? j + d / 2 : j - d / 2;
      const double angle = static_cast<double>(i) * std::pow(c_.theta, -2.0 * static_cast<double>(pair) / c_.head_dim);
      const Bounded a(angle, angle * (std::log(c_.theta) + 4) * 0x1p-24, 0, false);
      const Bounded turned = bf16(x[i][other] * bf16(sin(a)));
      y[i][j] = bf16(bf16(x[i][j] * bf16(cos(a))) + (other > j ? -turned : turned));
    });
    return y;
  }
  Rows attention(const Rows& q, const Rows& k, const Rows& v) const {
    const auto d = static_cast<std::size_t>(c_.head_dim);
    const Bounded scale(1 / std::sqrt(static_cast<double>(d)));
    Rows y(q.size(), Row(q[0].size()));
    for (std::size_t i = 0; i < q.size(); ++i) {
      for (std::size_t head = 0; head < q[0].size(); head += d) {
        const std::size_t shared = head / d / static_cast<std::size_t>(c_.heads / c_.kv_heads) * d;
        Row score;
        for (std::size_t j = 0; j <= i; ++j) {
          Sum<Bounded> sum;
          for (std::size_t p = 0; p < d; ++p) sum += q[i][head + p] * k[j][shared + p];
          score.push_back(bf16(bf16(sum.value()) * scale));
        }
        Bounded largest = score[0];
        for (const Bounded& s : score) largest = maximum(largest, s);
        Sum<Bounded> total;
        for (Bounded& s : score) total += s = exp(s - largest);
        for (Bounded& s : score) s = bf16(quotient(s, total.value()));
        for (std::size_t p = 0; p < d; ++p) {
          Sum<Bounded> sum;
          for (std::size_t j = 0; j <= i; ++j) sum += score[j] * v[j][shared + p];
          y[i][head + p] = bf16(sum.value());
        }
      }
    }
    return y;
  }

  const Golden& golden_;
  const TransformerConfig& c_;
  bool rounds_;
};

/// transformers' bits in bf16 follow from the equations of our program and the places where transformers rounds; our
/// own program in bf16 holds each of its steps to its bound.
TEST(Golden, ModelsInBf16AreThoseOfTransformers) {
  const std::vector<Golden> all = models("bf16");
  EXPECT_EQ(all.size(), 3U);
  for (const Golden& golden : all) {
    SCOPED_TRACE(golden.name);
    TransformerConfig config = case_of(golden.name, golden.config).config;
    config.weights = WeightFormat::bf16, config.trains = false;
    const std::vector<double>&ids = golden.numbers.at("ids"), want = golden.numbers.at("y");
    const auto s = std::ssize(ids);
    Builder b;
    const Sequences sequence = sequences(b, config, s);
    const Value in = b.input("ids", {s}, DType::i32), logits = decoder(b, config, in, sequence);
    b.output(logits);
    const Program p = b.take();
    std::vector<double> places(ids.size());
    std::iota(places.begin(), places.end(), 0);
    const auto set_all_by = [&](const auto& set) {
      for (const Parameter& parameter : p.parameters) set(parameter.value, golden.numbers.at(parameter.name));
      set(in, ids), set(sequence.lengths, {static_cast<double>(s)}), set(sequence.starts, {0});
      if (sequence.positions) set(sequence.positions, places);
    };
    const Plan where = plan(p);
    Execution<Bounded> exact(p, where, Bounded(std::nan("")));
    set_all_by([&](Value v, const std::vector<double>& numbers) { write(exact[v], numbers); });
    exact.run();
    const std::vector<Bounded> equations = read(exact[logits]),
                               unrounded = OfTransformers(golden, config, false).logits(),
                               rounded = OfTransformers(golden, config, true).logits();
    ASSERT_EQ(rounded.size(), want.size());
    std::size_t known = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_LE(std::fabs(unrounded[i].value - equations[i].value), unrounded[i].error + equations[i].error) << i;
      EXPECT_LE(std::fabs(want[i] - rounded[i].value), rounded[i].error) << i;
      known += rounded[i].error == 0;
    }
    EXPECT_GT(2 * known, want.size()) << "the bits of most logits follow";
    for (const Backend backend : built_backends()) {
      falsify::CheckedRun checked;
      Session session(p, device(backend), {.check = falsify::steps_within_bounds(checked)});
      set_all_by([&](Value v, const std::vector<double>& numbers) {
        if (p.storage_of(v).dtype == DType::i32)
          session.set(v, std::vector<std::int32_t>(numbers.begin(), numbers.end()));
        else session.set(v, std::vector<float>(numbers.begin(), numbers.end()));
      });
      EXPECT_NO_THROW(session.run(Check::steps)) << name(backend);
      EXPECT_EQ(checked.steps, p.steps.size());
    }
  }
}

}  // namespace
}  // namespace assay::program::golden_test
