// The table: totals add up, and exclude cases that are no policy's fault.
#include "falsify/policies/table.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/registry.hpp"

namespace assay::falsify::policies {
namespace {

using nlohmann::json;

/// Returns verdicts of every policy on a fictitious kernel: `killers` reject it.
json verdicts(std::string_view kernel, std::string_view fault, std::initializer_list<std::string_view> killers) {
  json k{
      {"kernel", kernel}, {"op", "silu"}, {"mutant", !fault.empty()}, {"fault", fault}, {"policies", json::object()}};
  if (!fault.empty()) k["class"] = column_of("silu", fault == "inputs rounded to TF32" ? "precision" : "formula");
  for (const Policy* p : policies()) {
    json v{{"covered", p->name != "ggml grad"}, {"cases", 4}, {"refused", 0}, {"seconds", 0.002}};
    if (std::ranges::find(killers, p->name) != killers.end()) v["rejected"] = "why";
    k["policies"][std::string(p->name)] = v;
  }
  return k;
}

const json& row(const json& report, std::string_view policy) {
  for (const json& r : report["policies"])
    if (r["policy"] == policy) return r;
  throw std::logic_error("no such row");
}

TEST(Table, TotalsAddUp) {
  const json report = policy_report(
      {verdicts("a", "inputs rounded to TF32", {"assay"}), verdicts("b", "the last row is left out", {"assay", "ggml"}),
       verdicts("c", "NaN becomes 0", {"ggml"}), verdicts("d", "", {"PyTorch"}), verdicts("e", "", {})},
      json::object());
  for (const json& r : report["policies"]) {
    int missed = 0;
    for (const auto& [name, count] : r["missed"].items()) missed += count.get<int>();
    EXPECT_EQ(r["killed"].get<int>() + missed, r["mutants"].get<int>()) << r["policy"];
    EXPECT_LE(r["killed"], r["judged"]);
    EXPECT_LE(r["false_alarms"], r["right"]);
  }
  EXPECT_EQ(row(report, "assay")["killed"], 2);
  EXPECT_EQ(row(report, "ggml")["killed"], 2);
  EXPECT_EQ(row(report, "ggml")["missed"]["precision"], 1);
  EXPECT_EQ(row(report, "PyTorch")["false_alarms"], 1);
  EXPECT_EQ(row(report, "PyTorch")["alarming"][0]["kernel"], "d");
  EXPECT_EQ(row(report, "ggml grad")["judged"], 0);
  EXPECT_EQ(row(report, "ggml grad")["mutants"], 3);
  EXPECT_DOUBLE_EQ(row(report, "assay")["ms_per_case"].get<double>(), 0.5);
  ASSERT_EQ(report["beyond_ours"].size(), 1U);  // c, which ggml kills and we do not
  EXPECT_EQ(report["beyond_ours"][0]["mutant"], "c");
  EXPECT_NE(policy_table(report).find("ggml kills c"), std::string::npos);
  EXPECT_NE(policy_table(report).find("PyTorch rejects d, which is right: "), std::string::npos);
}

TEST(Table, WhatHasNoDeviceIsNotCounted) {
  json gone = verdicts("a", "inputs rounded to TF32", {});
  for (auto& [name, v] : gone["policies"].items()) v["unavailable"] = "no device";
  const json report = policy_report({gone, verdicts("b", "", {})}, json::object());
  EXPECT_EQ(row(report, "assay")["mutants"], 0);
  EXPECT_EQ(report["unavailable"].size(), 1U);
}

/// A mutant that a policy's project cannot run counts among all as missed, and not among those judged.
TEST(Table, RefusedEverywhereIsMissed) {
  json k = verdicts("a", "inputs rounded to TF32", {"assay"});
  k["policies"]["ggml"]["refused"] = 4;
  const json report = policy_report({k}, json::object());
  EXPECT_EQ(row(report, "ggml")["judged"], 0);
  EXPECT_EQ(row(report, "ggml")["missed"]["precision"], 1);
}

TEST(Table, ColumnsOfFaults) {
  for (const auto& [of, column] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{{"precision", "precision"},
                                                                            {"tile_edge", "indexing"},
                                                                            {"stale_memory", "state"},
                                                                            {"nonfinite", "special"},
                                                                            {"race", "races"},
                                                                            {"formula", "formula"},
                                                                            {"barrier", "races"},
                                                                            {"component", "indexing"},
                                                                            {"arithmetic", "formula"}})
    EXPECT_EQ(column_of("rope", of), column) << of;
  EXPECT_EQ(column_of("rmsnorm_backward", "formula"), "gradient");
}

/// The same seed gives the same verdicts.
TEST(Table, IsDeterministic) {
  const auto twice = [] {
    json k = judge_all(kernel("transpose/cpu/naive"), {}, {}, {.cases = 2});
    for (auto& [name, v] : k["policies"].items()) v.erase("seconds");
    return k;
  };
  EXPECT_EQ(twice(), twice());
}

}  // namespace
}  // namespace assay::falsify::policies
