// Merging reports of shards, and the errors for reports that are not the shards of one run.
#include "falsify/engine/reports/merge.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "falsify/engine/report.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

json result_of(const char* kernel, int evaluated) {
  return {{"op", "scale"},
          {"kernel", kernel},
          {"status", "passed"},
          {"obligations", {{{"id", "A-1"}, {"verdict", "passed"}, {"cases", 2}, {"elements", 5}, {"worst", 0.5}}}},
          {"clauses", {{{"id", "POST-1"}, {"evaluated", evaluated}}, {{"id", "POST-2"}, {"evaluated", 1}}}}};
}

/// Returns the report of a shard, as read from FILE of its index.
ShardReport shard(int index, int count, const std::vector<json>& kernels, double seconds = 1) {
  const std::string text = std::to_string(index) + "/" + std::to_string(count);
  json report = make_report(kernels, {{"seed", "1"}, {"cases", 20}, {"shard", text}}, seconds);
  report["whole"] = {{"program", "abc"}, {"ops", "all"}, {"kernels", {"k1", "k2", "k3"}}};
  return {"FILE" + std::to_string(index), report};
}

std::vector<ShardReport> three() {
  return {shard(1, 3, {result_of("k1", 0)}, 0.25), shard(2, 3, {result_of("k2", 0)}, 0.75),
          shard(3, 3, {result_of("k3", 0)}, 0.5)};
}

std::string refused(const std::vector<ShardReport>& shards) {
  try {
    merge_reports(shards);
    return "accepted";
  } catch (const InputError& e) {
    return e.what();
  }
}

std::string sentence(const std::string& file, const std::string& problem, const std::string& remedy) {
  return InputError(file, problem, remedy).what();
}

TEST(Merge, IsTheReportOfTheWholeRun) {
  std::vector<ShardReport> shards = three();
  std::swap(shards[0], shards[2]);
  const json expected = make_report({result_of("k1", 0), result_of("k2", 0), result_of("k3", 0)},
                                    {{"seed", "1"}, {"cases", 20}, {"shard", ""}}, 0.75);
  EXPECT_EQ(merge_reports(shards), expected);
  EXPECT_EQ(expected["never_evaluated"], json::array({"POST-1"})) << "which no shard says of itself";
  EXPECT_EQ(
      merge_reports({shard(1, 1, {result_of("k1", 1), result_of("k2", 1), result_of("k3", 1)})})["never_evaluated"],
      json::array());
}

TEST(Merge, TakesReportsOfShardsAlone) {
  const auto said = [](const json& text, bool whole = true) {
    ShardReport s = shard(1, 1, {result_of("k1", 1), result_of("k2", 1), result_of("k3", 1)});
    if (text.is_null()) s.report["settings"].erase("shard");
    else s.report["settings"]["shard"] = text;
    if (!whole) s.report.erase("whole");
    return refused({s});
  };
  const std::string none =
      sentence("FILE1", "is not the report of a shard", "name reports of `assay falsify --shard I/N --report DIR`");
  EXPECT_EQ(said("1/1"), "accepted");
  EXPECT_EQ(said("1/1", false), none);
  EXPECT_EQ(said(nullptr), none);
  for (const char* text : {"", "1", "/", "1/", "/1", "0/1", "2/1", "1/0", "0/0", "-1/1", "1/-1", "a/b"})
    EXPECT_EQ(said(text), none) << text;
}

TEST(Merge, NamesWhatDiffersBetweenRuns) {
  const char* const same = "run every shard with the same program and options";
  const auto with = [](const char* pointer, const json& value) {
    std::vector<ShardReport> shards = three();
    shards[2].report[json::json_pointer(pointer)] = value;
    return refused(shards);
  };
  EXPECT_EQ(with("/settings/shard", "3/4"),
            sentence("FILE3", "--shard 3/4: the number of shards is not that of FILE1", same));
  EXPECT_EQ(with("/version", "0"), sentence("FILE3", "the version is not that of FILE1", same));
  EXPECT_EQ(with("/settings/seed", "2"), sentence("FILE3", "--seed is not that of FILE1", same));
  EXPECT_EQ(with("/settings/cases", 21), sentence("FILE3", "--cases is not that of FILE1", same));
  EXPECT_EQ(with("/settings", {{"seed", "1"}, {"shard", "3/3"}}),
            sentence("FILE3", "--cases is not that of FILE1", same));
  EXPECT_EQ(with("/whole/program", "abd"), sentence("FILE3", "the program (its SHA-256) is not that of FILE1", same));
  EXPECT_EQ(with("/whole/ops", "some"), sentence("FILE3", "--ops is not that of FILE1", same));
  EXPECT_EQ(with("/whole", {{"program", "abc"}, {"kernels", {"k1", "k2", "k3"}}}),
            sentence("FILE3", "--ops is not that of FILE1", same));
  EXPECT_EQ(with("/whole/kernels", {"k1", "k2"}), sentence("FILE3", "the list of kernels is not that of FILE1",
                                                           "run every shard where the same back ends and kernels are"));
}

TEST(Merge, EveryShardIsNamedOnce) {
  const std::vector<ShardReport> all = three();
  EXPECT_EQ(refused({all[0], all[2]}),
            sentence("assay merge", "of 3 shards one is missing: 2", "run it (--shard 2/3) and name its report too"));
  EXPECT_EQ(refused({all[1], all[2]}),
            sentence("assay merge", "of 3 shards one is missing: 1", "run it (--shard 1/3) and name its report too"));
  EXPECT_EQ(refused({all[0], all[1]}),
            sentence("assay merge", "of 3 shards one is missing: 3", "run it (--shard 3/3) and name its report too"));
  EXPECT_EQ(refused({all[1]}),
            sentence("assay merge", "of 3 shards 2 are missing: 1, 3", "run it (--shard 1/3) and name its report too"));
  ShardReport again = all[1];
  again.file = "AGAIN";
  EXPECT_EQ(refused({all[0], all[1], again, all[2]}),
            sentence("AGAIN", "is shard 2 of 3, and so is FILE2", "name each shard once"));
}

TEST(Merge, EveryKernelIsInOneShard) {
  EXPECT_EQ(refused({shard(1, 2, {result_of("k1", 1)}), shard(2, 2, {result_of("k2", 1)})}),
            sentence("assay merge", "k3 is in no shard", "run the shards again"));
  EXPECT_EQ(refused({shard(1, 2, {result_of("k1", 1), result_of("k2", 1)}),
                     shard(2, 2, {result_of("k3", 1), result_of("k2", 1)})}),
            sentence("FILE2", "holds k2, as FILE1 does", "run both shards again"));
  EXPECT_EQ(refused({shard(1, 2, {result_of("k1", 1), result_of("k2", 1)}),
                     shard(2, 2, {result_of("k3", 1), result_of("k4", 1)})}),
            sentence("FILE2", "k4 is none of the run's kernels", "run that shard again"));
}

}  // namespace
}  // namespace assay::falsify
