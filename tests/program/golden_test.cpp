// Decoder layers and models against PyTorch's (tests/golden), in double: the results that nobody here wrote.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "blocks.hpp"

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

}  // namespace
}  // namespace assay::program::golden_test
