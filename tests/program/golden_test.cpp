// Decoder layers and models against PyTorch's (tests/golden), in double: the results that nobody here wrote.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "blocks.hpp"

namespace assay::program::golden_test {
namespace {

using falsify::Execution;
using nlohmann::json;

BlockCase case_of(const std::string& name, const json& c) {
  BlockCase made{name, {}, c["vocabulary"] > 1 ? Part::loss : Part::layer, c["s"], c["s"]};
  TransformerConfig& t = made.config;
  t.hidden = c["hidden"], t.intermediate = c["intermediate"], t.heads = c["heads"], t.kv_heads = c["kv_heads"];
  t.head_dim = c["head_dim"], t.layers = c["layers"], t.vocabulary = c["vocabulary"], t.theta = c["theta"];
  t.eps = c["eps"], t.qkv_bias = c["qkv_bias"], t.qk_norm = c["qk_norm"], t.tied_head = c["tied_head"];
  t.adapters.rank = c["rank"], t.adapters.alpha = c["alpha"];
  for (const Projection p : kProjections)
    for (const json& adapted : c["adapters"])
      if (adapted.get<std::string>() + "_proj" == program::name(p)) t.adapters.on.insert(p);
  return made;
}

json first_positions(Index s) {
  json positions = json::array();
  for (Index i = 0; i < s; ++i) positions.push_back(static_cast<double>(i));
  return positions;
}

TEST(GoldenBlocks, ArePyTorchs) {
  std::ifstream file(ASSAY_GOLDEN "/blocks.json");
  const json all = json::parse(file);
  std::size_t blocks = 0;
  for (const auto& [name, golden] : all.items()) {
    if (name == "made_by") continue;
    ++blocks;
    SCOPED_TRACE(name);
    const BlockCase c = case_of(name, golden["config"]);
    const Block block(c);
    const std::vector<Value> leaves = block.leaves();
    ASSERT_EQ(leaves.size(), golden["leaves"].size());
    const Differentiated d = block.differentiated();
    const Plan where = plan(d.program);
    Execution<double> exact(d.program, where, std::nan(""));
    Execution<Bounded> bounded(d.program, where, Bounded(std::nan("")));
    // Operands are float32 numbers, and their nine digits name them.
    const auto set = [&](auto& execution, Value v, const json& numbers) {
      std::vector<double> values;
      for (const double n : numbers) values.push_back(static_cast<float>(n));
      ASSERT_EQ(values.size(), static_cast<std::size_t>(execution[v].size()));
      write(execution[v], values);
    };
    const auto prepare = [&](auto& execution) {
      set_all(execution, d.program, c);  // lengths and class weights
      for (const Value leaf : leaves) set(execution, leaf, golden["leaves"].at(d.program[leaf].name)["value"]);
      for_each_set_by_host(d.program, [&](Value v) {
        const std::string& input = d.program[v].name;
        if (input == "class weights")
          write(execution[v], std::vector<double>(static_cast<std::size_t>(execution[v].size()), 1));
        else if (golden.contains(input)) set(execution, v, golden[input]);
        else if (input == "positions") set(execution, v, first_positions(c.s));
      });
      set(execution, d.upstream[0], golden["upstream"]);
      execution.run();
    };
    prepare(exact), prepare(bounded);
    // The bound of float32 arithmetic, scaled to double's unit roundoff; PyTorch's own rounding takes as much.
    const auto compare = [&](Value v, const json& numbers, const std::string& of) {
      const std::vector<double> want = numbers, got = read(exact[v]);
      ASSERT_EQ(want.size(), got.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        const double bound = 2 * 0x1p-29 * bounded[v].data()[i].error;
        ASSERT_LT(bound, 1e-6 * (1 + std::fabs(want[i]))) << of << " " << i << ": no bound";
        EXPECT_LE(std::fabs(got[i] - want[i]), bound) << of << " " << i;
      }
    };
    compare(block.y, golden["y"], "y");
    for (std::size_t n = 0; n < leaves.size(); ++n)
      compare(d.gradients[n], golden["leaves"][d.program[leaves[n]].name]["gradient"], d.program[leaves[n]].name);
  }
  EXPECT_EQ(blocks, 6u);
}

}  // namespace
}  // namespace assay::program::golden_test
