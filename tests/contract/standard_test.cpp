// Standard conditions and obligations follow from dims and tensors, and yield to those that a contract states.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "contract/expression.hpp"
#include "contract/loader.hpp"

namespace assay::contract::standard_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGather = R"yaml(
op: gather
code: GATHER
summary: "y = rows of a table"
sources: ["a test"]
dims:
  v: {min: 1, max: 64, says: "rows of the table"}
  heads: {min: 1, max: 8, says: "heads"}
  n: {min: 4, max: 64, multiple: 4, says: "elements"}
tensors:
  table: {role: in, dtype: storage, shape: [v, heads, n], says: "table"}
  scale: {role: in, dtype: f32, shape: [n], strided: true, says: "factors"}
  ids: {role: in, dtype: i32, shape: [heads], values: {min: "0 - v", max: "v - 1"}, says: "rows"}
  y: {role: out, dtype: storage, shape: [heads, n], says: "rows"}
  total: {role: out, dtype: f32, shape: [1], says: "sum"}
equations:
  gather: "y[h] = table[ids[h], h] scale"
nonfinite: propagate
determinism: bitwise
no_gradients: "none of a test's"
)yaml";

model::Contract contract_of(const std::string& text) {
  const fs::path file = fs::path(testing::TempDir()) / "gather.yaml";
  std::ofstream(file) << text;
  return load(file.string(), "gather.yaml");
}

std::vector<std::string> conditions(const model::Contract& contract) {
  std::vector<std::string> result;
  for (const model::Clause& clause : contract.clauses)
    result.push_back(fmt::format("{}: {}", clause.id.value, clause.expr.value));
  return result;
}

TEST(Standard, PreconditionsFollowFromDimsAndTensors) {
  const model::Contract contract = contract_of(kGather);
  EXPECT_EQ(
      conditions(contract),
      (std::vector<std::string>{
          "GATHER-PRE-001: v_min <= v && v <= v_max && heads_min <= heads && heads <= heads_max && n_min <= n && n <= n_max",
          "GATHER-PRE-002: n % 4 == 0",
          "GATHER-PRE-003: table.shape() == Shape{v, heads, n} && scale.shape() == Shape{n}",
          "GATHER-PRE-004: ids.shape() == Shape{heads} && y.shape() == Shape{heads, n} && total.shape() == Shape{1}",
          "GATHER-PRE-005: row_major(table) && distinct(scale) && row_major(ids) && row_major(y)",
          "GATHER-PRE-006: !overlap(y, table) && !overlap(y, scale) && !overlap(y, ids) && !overlap(total, table) && !overlap(total, scale) && "
          "!overlap(total, ids) && !overlap(total, y)",
          "GATHER-PRE-007: has_address(table) && has_address(scale) && has_address(ids) && has_address(y) && has_address(total)",
          "GATHER-PRE-008: in_range(ids, 0 - v, v)"}));
  std::vector<std::string> says;
  for (const model::Clause& clause : contract.clauses) says.push_back(clause.says);
  EXPECT_EQ(
      says,
      (std::vector<std::string>{
          contract.clauses[0].expr.value, "n is a multiple of 4", "table is [v, heads, n], scale is [n]",
          "ids is [heads], y is [heads, n], total is [1]",
          "rows are dense and do not overlap: inner stride 1, outer strides at least what they hold; no two indices of scale reach the same element",
          "y and total share no memory with table, scale, ids or each other",
          "a tensor of at least one element has memory", "ids are between -v and v - 1"}));
  for (const model::Clause& clause : contract.clauses)
    EXPECT_GE(clause.violate.size(), conjuncts(clause.expr.value).size()) << clause.expr.value;
}

TEST(Standard, AStatedConditionIsNotAdded) {
  const model::Contract contract = contract_of(std::string(kGather) + R"yaml(
requires:
  - {id: GATHER-PRE-002, expr: "!overlap(total, y) && row_major( ids )", violate: [{alias: [total, y]}, {strides: {ids: "[3]"}}]}
  - {id: GATHER-PRE-009, expr: "n % 4==0", violate: {dim: {n: "6"}}}
)yaml");
  const std::vector<std::string> all = conditions(contract);
  ASSERT_EQ(all.size(), 9U);
  EXPECT_EQ(all[1], "GATHER-PRE-009: n % 4==0");  // names no tensor
  EXPECT_EQ(all[2], "GATHER-PRE-002: !overlap(total, y) && row_major( ids )");
  EXPECT_EQ(all[5], "GATHER-PRE-005: row_major(table) && distinct(scale) && row_major(y)");
  for (const std::string& condition : all)
    EXPECT_FALSE(condition.starts_with("GATHER-PRE-006") && condition.find("(total, y)") != std::string::npos)
        << condition;
}

TEST(Standard, ObligationsOfTheEngineNeedNoEntry) {
  const auto obligations = [](const model::Contract& contract) {
    std::vector<std::string> result;
    for (const model::Obligation& o : contract.obligations)
      result.push_back(
          fmt::format("{} {}: {} / {}", o.id.value.substr(o.id.value.size() - 3), o.by.value, o.claim, o.if_fails));
    return result;
  };
  EXPECT_EQ(
      obligations(contract_of(kGather)),
      (std::vector<std::string>{
          "001 frame: every element of y and total is written, nothing else is / an edge or all rows but the first left unwritten, or a store out of bounds",
          "002 differential: every element is within its worst-case bound of the oracle / an index, a leading dimension, or a term of the formula",
          "003 nonfinite: NaN and Inf reach exactly the elements they must / a comparison or a skipped term swallows NaN",
          "004 determinism: the same call twice gives the same bits / a race, or state kept between calls"}));
  const model::Contract ensured = contract_of(std::string(kGather) + R"yaml(
ensures:
  - {id: GATHER-POST-001, certificate: "sums(y, total)", says: "total is the sum"}
falsify:
  - {id: FALSIFY-GATHER-002, claim: "c", by: rows, if_fails: "f"}
  - {id: FALSIFY-GATHER-008, by: frame}
  - {by: differential, if_fails: "another row"}
  - by: statistical
)yaml");
  EXPECT_EQ(ensured.clauses.front().id.value, "GATHER-PRE-001") << "numbers of postconditions are their own";
  EXPECT_EQ(
      obligations(ensured),
      (std::vector<std::string>{
          "001 differential: every element is within its worst-case bound of the oracle / another row",
          "002 rows: c / f",
          "003 statistical: every element is within the statistical bound for round-to-nearest accumulation / computes in less precision than declared",
          "004 nonfinite: NaN and Inf reach exactly the elements they must / a comparison or a skipped term swallows NaN",
          "005 determinism: the same call twice gives the same bits / a race, or state kept between calls",
          "006 postconditions: on return the contract holds: its ensures clauses and certificates / see the clause",
          "008 frame: every element of y and total is written, nothing else is / an edge or all rows but the first left unwritten, or a store out of bounds"}));
}

/// Checks the contract files: each states or implies the conditions on every dim and tensor.
TEST(Standard, EveryDimAndTensorOfTheRepositoryIsConstrained) {
  for (const auto& entry : fs::directory_iterator(ASSAY_SOURCE "/contracts")) {
    if (entry.path().extension() != ".yaml" || entry.path().stem() == "numerics") continue;
    const model::Contract contract = load(entry.path().string(), entry.path().filename().string());
    std::set<std::string> stated;
    for (const model::Clause& clause : contract.clauses)
      if (clause.kind == ClauseKind::requires_clause)
        for (const std::string& condition : conjuncts(clause.expr.value)) stated.insert(condition);
    const auto expect = [&](const std::string& condition) {
      EXPECT_TRUE(stated.contains(condition)) << contract.file << ": " << condition;
    };
    for (const model::Dim& dim : contract.dims)
      expect(dim.name.value + "_min <= " + dim.name.value), expect(dim.name.value + " <= " + dim.name.value + "_max");
    for (const model::Tensor& tensor : contract.tensors) {
      expect(fmt::format("has_address({})", tensor.name.value));
      EXPECT_TRUE(std::ranges::any_of(stated, [&](const std::string& condition) {
        return condition.starts_with(tensor.name.value + ".shape() == Shape{");
      })) << tensor.name.value;
      for (const model::Tensor& output : contract.tensors)
        if (output.role != Role::in && tensor.role == Role::in)
          expect(fmt::format("!overlap({}, {})", output.name.value, tensor.name.value));
    }
  }
}

}  // namespace
}  // namespace assay::contract::standard_test
