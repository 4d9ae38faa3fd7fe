// Parts of the formats that real runs rarely reach; formats_test.py validates whole documents against schemas.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "cli/progress.hpp"
#include "falsify/engine/comparator.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/formats.hpp"
#include "falsify/engine/reports/source_location.hpp"

namespace assay::falsify {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string text_of_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

json falsified_report() {
  CampaignOptions options;
  options.cases = 30;
  options.stop_at_first = true;
  const OpDescriptor& op = operation("matmul");
  return make_report({to_json(op, run_campaign(op, kernel("mutant/cpu/matmul/dropped_last_k"), options))},
                     {{"seed", "1"}, {"cases", 30}}, 1);
}

fs::path fresh(const char* name) {
  const fs::path folder = fs::temp_directory_path() / name;
  fs::remove_all(folder);
  return folder;
}

TEST(Read, AReportReadBackIsWrittenTheSameInEveryFormat) {
  json report = falsified_report();
  const fs::path first = fresh("assay-read-first"), second = fresh("assay-read-second");
  write_report(report, first);
  json again = read_report(first / "report.json");
  EXPECT_EQ(again, report);
  for (const char* file : {"report.json", "junit.xml", "assay.sarif", "report.html"}) {
    const json as_read = read_report(first / "report.json");
    const std::string text = std::string(file) == "report.json"   ? as_read.dump(1) + "\n"
                             : std::string(file) == "junit.xml"   ? junit_xml(as_read)
                             : std::string(file) == "assay.sarif" ? sarif(as_read)
                                                                  : html_page(as_read);
    EXPECT_EQ(text, text_of_file(first / file)) << file;
  }
}

TEST(Read, WhatIsNoReportIsRefusedWithItsPlace) {
  const fs::path path = fs::temp_directory_path() / "assay-no-report.json";
  const json good = falsified_report();
  const auto refused = [&](const std::string& text, const std::string& words) {
    std::ofstream(path) << text;
    try {
      read_report(path);
      ADD_FAILURE() << "accepted: " << words;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    }
  };
  const auto with = [&](const char* pointer, json value) {
    json changed = good;
    changed[json::json_pointer(pointer)] = std::move(value);
    return changed.dump();
  };
  const auto without = [&](const char* parent, const char* key) {
    json changed = good;
    changed[json::json_pointer(parent)].erase(key);
    return changed.dump();
  };
  std::ofstream(path) << good.dump();
  EXPECT_EQ(read_report(path), good);
  refused("", "is not JSON");
  refused("[]", "");
  refused("{}", "");
  refused(with("/schema", "assay-report/9"), "this version reads assay-report/1");
  refused(with("/planted", 1), "planted");
  refused(with("/kernels/0/planted", 1), "kernels.0: ");
  refused(with("/kernels/0/obligations/1/verdict", "fine"), "kernels.0.obligations.1");
  refused(with("/kernels/0/line", 0), "kernels.0.line");
  refused(with("/totals/cases", "many"), "totals.cases");
  refused(without("", "totals"), "totals");
  refused(without("/kernels/0", "status"), "status");
  EXPECT_THROW(read_report("/nonexistent/report.json"), InputError);
}

TEST(SourceLine, FindsRegistrationsFunctionsAndShaders) {
  EXPECT_EQ(line_of("// a/cpu/naive\nint x;\n.id = \"a/cpu/naive\",\n", "a/cpu/naive"), 3);
  EXPECT_EQ(line_of("using X;\nvoid tiled(int n) {\n", "a/cuda/tiled"), 2);
  EXPECT_EQ(line_of("// tiled\nint untiled;\n  int tiled;", "a/cuda/tiled"), 3);
  EXPECT_EQ(line_of("#version 450\n\nvoid main() {\n}", "a/vulkan/tiled"), 3);
  EXPECT_EQ(line_of("nothing of it", "a/vulkan/tiled"), 1);
  EXPECT_EQ(line_of("", "a/vulkan/tiled"), 1);
  EXPECT_EQ(line_of("#include <x>\nvoid openblas_gemm() {}", "a/cpu/openblas"), 2);
  EXPECT_EQ(find_source_location("kernels/cpu/is_not_here.cpp", "a/cpu/naive").line, 1);
  EXPECT_EQ(find_source_location("", "a/cpu/naive").line, 1);
  EXPECT_GT(find_source_location("falsify/adversarial/matmul.cpp", "mutant/adversarial/matmul/constant_output").line,
            1);
  EXPECT_GT(find_source_location("falsify/mutation/faults/matmul.yaml", "mutant/cpu/matmul/wrong_tail_row").line, 1);
  // Two back ends have faults of this name.
  EXPECT_LT(find_source_location("falsify/mutation/faults/scale.yaml", "mutant/cuda-host/scale/tail_unwritten").line,
            find_source_location("falsify/mutation/faults/scale.yaml", "mutant/vulkan/scale/tail_unwritten").line);
  const int line = find_source_location("kernels/cpu/naive/matmul.cpp", "matmul/cpu/naive").line;
  std::ifstream file(fs::path(ASSAY_SOURCE) / "kernels/cpu/naive/matmul.cpp");
  std::string text;
  for (int i = 0; i < line; ++i) std::getline(file, text);
  EXPECT_NE(text.find("\"matmul/cpu/naive\""), std::string::npos) << line << ": " << text;
}

/// Returns a report with texts that might break any format.
json hostile_report() {
  json report = falsified_report();
  json& k = report["kernels"][0];
  const std::string text = "</script><!-- 100% a,b:c \"q\" 'r' & <b> | `x` \\ \xc3\xa9\n::error::x\r\x01 ]]> {{data}}";
  k["kernel"] = text, k["source"] = "a b,c:d%.cpp";
  for (json& o : k["obligations"])
    if (o.contains("counterexample")) o["claim"] = o["if_fails"] = o["counterexample"]["finding"]["message"] = text;
  return report;
}

TEST(Escaping, NothingInAReportBreaksOutOfItsFormat) {
  const json report = hostile_report();
  const std::string page = html_page(report);
  const std::size_t begin = page.find("id=\"data\">") + 10;
  const json data = json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(data["ops"][0]["kernels"][0]["kernel"], report["kernels"][0]["kernel"]);
  EXPECT_EQ(page.find("<!--"), std::string::npos);

  const std::string lines = annotations(report);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 1) << lines;
  EXPECT_TRUE(lines.starts_with("::error file=a b%2Cc%3Ad%25.cpp,line=")) << lines;
  EXPECT_NE(lines.find("100%25 a,b:c"), std::string::npos) << lines;
  EXPECT_NE(lines.find("%0A::error::x%0D"), std::string::npos) << lines;

  const json log = json::parse(sarif(report));
  EXPECT_EQ(log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            "a%20b%2Cc%3Ad%25.cpp");

  const std::string markdown = step_summary(report);
  EXPECT_EQ(markdown.find("</script>"), std::string::npos);
  EXPECT_EQ(markdown.find("\n::error"), std::string::npos);
  EXPECT_NE(markdown.find("\\|"), std::string::npos);

  const std::string xml = junit_xml(report);
  EXPECT_EQ(xml.find('\x01'), std::string::npos);
  EXPECT_NE(xml.find("&lt;/script&gt;&lt;!-- 100% a,b:c &quot;q&quot;"), std::string::npos);
}

TEST(Annotations, AreNoMoreThanGitHubShows) {
  json report = falsified_report();
  for (int i = 0; i < 30; ++i) report["kernels"].push_back(report["kernels"][0]);
  const std::string lines = annotations(report);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 10);
}

TEST(ErrorMap, HoldsTheLargestErrorOfEachCell) {
  const Shape shape{100, 3};
  std::vector<float> got(300, 1), want(300, 1);
  got[3 * 50 + 2] = 5, got[3 * 51 + 2] = 2;
  const Outcome outcome = compare_bits("c", shape, got, want, "differ");
  ASSERT_TRUE(outcome.finding && outcome.finding->errors);
  const ErrorMap& map = *outcome.finding->errors;
  EXPECT_EQ(map.row_step, 2);
  EXPECT_EQ(map.cell_rows(), 50);
  EXPECT_EQ(map.cell_columns(), 3);
  for (std::size_t i = 0; i < map.cells.size(); ++i) EXPECT_EQ(map.cells[i], i == 25 * 3 + 2 ? 4 : 0) << i;
  EXPECT_FALSE(compare_bits("c", shape, want, want, "differ").finding);
}

TEST(ErrorMap, IsAboveItsLimitExactlyWhereTheComparatorFails) {
  const std::vector<float> values{0, -0.0F, 1, 1.5F, -1, INFINITY, -INFINITY, NAN, 1e-45F, 3e38F};
  const double infinite = INFINITY, not_a_number = NAN;
  for (const Tier tier : {Tier::exact, Tier::bits, Tier::worst_case, Tier::statistical})
    for (const float got : values)
      for (const double want : {0.0, 1.0, 1.25, 1e-45, 3e38, infinite, not_a_number})
        for (const double bound : {0.0, 0.25, 1e-3})
          for (const bool overflow : {false, true}) {
            const std::vector<Bounded> wants{Bounded(99, 0, 0, false), Bounded(want, bound, bound, overflow)};
            const std::vector<float> gots{0, got};  // the first element always differs, so that there is a map
            const Outcome outcome = compare(tier, "c", Shape{1, 2}, gots, wants);
            const Outcome alone =
                compare(tier, "c", Shape{1, 1}, std::span(gots).subspan(1), std::span(wants).subspan(1));
            ASSERT_TRUE(outcome.finding && outcome.finding->errors);
            const ErrorMap& map = *outcome.finding->errors;
            EXPECT_EQ(map.cells[1] > (map.relative ? 1 : 0), alone.finding.has_value())
                << static_cast<int>(tier) << " got " << got << " want " << want << " bound " << bound << " " << overflow
                << " cell " << map.cells[1];
          }
}

TEST(Pictures, ReplayFilesHoldNone) {
  json report = falsified_report();
  const fs::path folder = fresh("assay-pictures");
  write_replays(report, folder);
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_EQ(text_of_file(entry.path()).find("errors\""), std::string::npos);
  EXPECT_NE(report.dump().find("\"errors\""), std::string::npos);
}

TEST(Pictures, ThePageStaysSmallWhateverFailed) {
  json report = falsified_report();
  json& k = report["kernels"][0];
  for (json& o : k["obligations"]) {
    if (!o.contains("counterexample")) continue;
    std::string row;
    for (int j = 0; j < 64; ++j) row += "1.23e-12 ";
    json errors = o["counterexample"]["finding"]["errors"];
    errors["cells"] = json(std::vector<std::string>(64, row));
    o["counterexample"]["finding"]["errors"] = o["counterexample"]["drawn_errors"] = errors;
  }
  const json wrong = k;
  for (int i = 0; i < 300; ++i) report["kernels"].push_back(wrong);
  EXPECT_GT(report.dump().size(), 20'000'000U);
  const std::string page = html_page(report);
  EXPECT_LT(page.size(), 3'000'000U);
  EXPECT_NE(page.find("\"left_out\":true"), std::string::npos);
}

TEST(Progress, EstimatesWhatIsLeft) {
  using cli::seconds_left;
  const PoolStatus begun{.finished = 0, .kernels = 10}, half{.finished = 4, .kernels = 10, .work_done = 5};
  EXPECT_FALSE(seconds_left(begun, 3, {}));
  EXPECT_DOUBLE_EQ(*seconds_left(half, 30, {}), 30);
  EXPECT_DOUBLE_EQ(*seconds_left(half, 30, {.whole = std::chrono::seconds(90)}), 60);
  EXPECT_DOUBLE_EQ(*seconds_left(half, 100, {.whole = std::chrono::seconds(90)}), 0);
  // No kernel takes longer than this limit: six are open, two at a time.
  EXPECT_DOUBLE_EQ(*seconds_left(half, 1000, {.kernel = std::chrono::seconds(3), .jobs = 2}), 9);
  EXPECT_DOUBLE_EQ(*seconds_left(half, 1, {.kernel = std::chrono::seconds(3), .jobs = 2}), 1);
  EXPECT_EQ(cli::duration_text(0.2), "1 s");
  EXPECT_EQ(cli::duration_text(119), "119 s");
  EXPECT_EQ(cli::duration_text(121), "3 min");
  EXPECT_EQ(cli::duration_text(7500), "2 h 5 min");
}

}  // namespace
}  // namespace assay::falsify
