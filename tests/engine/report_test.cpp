#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/formats.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/engine/absent.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

json falsified_report() {
  CampaignOptions options;
  options.cases = 30;
  options.stop_at_first = true;
  const OpDescriptor& op = operation("matmul");
  return make_report({to_json(op, run_campaign(op, kernel("mutant/cpu/matmul/dropped_last_k"), options))}, json::object(), 1);
}

TEST(Report, AFalsifiedKernelFailsTheRunAndIsPrintedWithItsReplay) {
  json report = falsified_report();
  EXPECT_TRUE(report_failed(report));
  const auto folder = std::filesystem::temp_directory_path() / "assay-report-test";
  std::filesystem::remove_all(folder);
  write_report(report, folder);
  const std::string text = table(report);
  for (const char* part : {"FALSIFIED mutant/cpu/matmul/dropped_last_k", "element  c[", "replay   assay replay", "suspect"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  int replays = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "replay")) {
    const Replay replay = read_replay(entry.path());
    EXPECT_EQ(run_case(*replay.op, *replay.obligation, *replay.kernel, replay.the_case, std::chrono::seconds(5)).kind,
              Outcome::Kind::falsified);
    EXPECT_EQ(run_case(*replay.op, *replay.obligation, kernel("matmul/cpu/naive"), replay.the_case, std::chrono::seconds(5)).kind,
              Outcome::Kind::passed);
    ++replays;
  }
  EXPECT_EQ(replays, 1);
  EXPECT_NE(junit_xml(report).find("<failure type=\"falsified\""), std::string::npos);
}

TEST(Report, AReplayIsOfItsObligation) {
  const auto path = std::filesystem::temp_directory_path() / "assay-obligations.json";
  const OpDescriptor& op = operation("matmul");
  Case c;
  c.dims = {1, 1, 1};
  for (const Obligation& o : obligations("matmul")) {
    std::ofstream(path) << json{{"schema", "assay-replay/1"}, {"op", "matmul"}, {"kernel", "matmul/cpu/naive"}, {"obligation", o.info->id},
                                {"case", to_json(op, c)}};
    EXPECT_EQ(read_replay(path).obligation, &o);
  }
}

TEST(Report, AClauseThatIsNeverEvaluatedFailsTheRun) {
  CampaignOptions options;
  options.cases = 3;
  const OpDescriptor& op = operation("matmul");
  KernelResult result = run_campaign(op, kernel("matmul/cpu/naive"), options);
  EXPECT_GT(result.seconds, 0);
  const auto report = [&] { return make_report({to_json(op, result)}, json::object(), 1); };
  EXPECT_TRUE(report()["never_evaluated"].empty()) << report()["never_evaluated"].dump();
  result.clause_counts.back() = 0;
  EXPECT_TRUE(report_failed(report()));
  EXPECT_EQ(report()["never_evaluated"][0], op.clauses.back().id);
}

TEST(Report, ClausesAreCountedOverAllKernelsOfAnOperation) {
  CampaignOptions options;
  options.cases = 3;
  const OpDescriptor& op = operation("matmul");
  const auto result = [&](const char* id) { return to_json(op, run_campaign(op, kernel(id), options)); };
  const auto clauses = [](const std::vector<json>& results) { return make_report(results, json::object(), 1)["clauses"]; };
  const json naive = result("matmul/cpu/naive"), openblas = result("matmul/cpu/openblas");
  const json one = clauses({naive}), other = clauses({openblas}), both = clauses({naive, openblas});
  ASSERT_EQ(both.size(), op.clauses.size());
  for (std::size_t i = 0; i < both.size(); ++i)
    EXPECT_EQ(both[i]["evaluated"].get<int>(), one[i]["evaluated"].get<int>() + other[i]["evaluated"].get<int>()) << both[i]["id"];
}

TEST(Report, SkipsCarryTheirReasonInJunit) {
  Kernel k = kernel("matmul/cpu/naive");
  k.backend = absent_backend();
  CampaignOptions options;
  options.cases = 1;
  const OpDescriptor& op = operation("matmul");
  const KernelResult result = run_campaign(op, k, options);
  ASSERT_TRUE(result.unavailable());
  const std::string xml = junit_xml(make_report({to_json(op, result)}, json::object(), 1));
  EXPECT_NE(xml.find("<skipped>unavailable: "), std::string::npos) << xml;
}

TEST(Report, MalformedReplayFilesAreRefused) {
  const auto path = std::filesystem::temp_directory_path() / "assay-malformed.json";
  const json good = {{"schema", "assay-replay/1"}, {"op", "matmul"}, {"kernel", "matmul/cpu/naive"}, {"obligation", "FALSIFY-MM-002"}, {"case", json::object()}};
  const auto with = [&](const char* key, json value) { json j = good; j[key] = std::move(value); return j.dump(); };
  const std::string texts[] = {"", "{", "[]", "null", with("schema", "other/9"), with("schema", 3), with("op", "matmull"),
                               with("kernel", "matmul/cpu/none"), with("kernel", "gemv/cpu/naive"), with("obligation", "FALSIFY-XX-1"),
                               with("case", json::array()), good.dump()};
  for (const std::string& text : texts) {
    std::ofstream(path) << text;
    EXPECT_THROW(read_replay(path), InputError) << text;
  }
  EXPECT_THROW(read_replay("/nonexistent/file.json"), InputError);
}

}  // namespace
}  // namespace assay::falsify
