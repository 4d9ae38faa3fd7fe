// Blocks against PyTorch's (tests/golden), in double: the results that nobody here wrote.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "falsify/program/execute.hpp"
#include "feed_forward.hpp"
#include "program/differentiate.hpp"

namespace assay::program::golden_test {
namespace {

using falsify::Execution;
using nlohmann::json;

std::vector<double> numbers(const json& texts) {
  std::vector<double> values;
  for (const json& text : texts) values.push_back(std::strtod(text.get<std::string>().c_str(), nullptr));
  return values;
}

template <class T>
void set(Execution<T>& execution, Value v, const json& texts) {
  const std::vector<double> values = numbers(texts);
  ASSERT_EQ(values.size(), static_cast<std::size_t>(execution[v].size()));
  for (std::size_t i = 0; i < values.size(); ++i) execution[v].data()[i] = T(values[i]);
}

TEST(GoldenBlocks, FeedForwardIsPyTorchs) {
  std::ifstream file(ASSAY_GOLDEN "/feed_forward.json");
  const json golden = json::parse(file);
  Block block(golden["rows"], golden["hidden"], golden["inner"]);
  std::map<std::string, Value> leaves{{"x", block.x}};
  for (const Parameter& p : block.builder.program().parameters) leaves[p.name] = p.value;
  ASSERT_EQ(leaves.size(), golden["leaves"].size());
  std::vector<Value> wanted;
  for (const auto& [name, leaf] : leaves) wanted.push_back(leaf);
  const Differentiated d = differentiate(block.builder.program(), std::vector{block.y}, wanted);
  const Plan where = plan(d.program);
  Execution<double> exact(d.program, where, std::nan(""));
  Execution<Bounded> bounded(d.program, where, Bounded(std::nan("")));
  const auto prepare = [&](auto& execution) {
    for (const auto& [name, leaf] : leaves) set(execution, leaf, golden["leaves"][name]["value"]);
    set(execution, d.upstream[0], golden["upstream"]);
    execution.run();
  };
  prepare(exact), prepare(bounded);
  // The bound of float32 arithmetic, scaled to double's unit roundoff; PyTorch's own rounding takes as much.
  const auto compare = [&](Value v, const json& texts, const std::string& name) {
    const std::vector<double> want = numbers(texts);
    ASSERT_EQ(want.size(), static_cast<std::size_t>(exact[v].size()));
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double bound = 2 * 0x1p-29 * bounded[v].data()[i].error;
      ASSERT_TRUE(std::isfinite(bound) && bound < 1e-6 * (1 + std::fabs(want[i]))) << name << " " << i << ": no bound";
      EXPECT_LE(std::fabs(exact[v].data()[i] - want[i]), bound) << name << " " << i;
    }
  };
  compare(block.y, golden["y"], "y");
  std::size_t n = 0;
  for (const auto& [name, leaf] : leaves) compare(d.gradients[n++], golden["leaves"][name]["gradient"], name);
}

}  // namespace
}  // namespace assay::program::golden_test
