#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/formats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include "falsify/engine/error_map.hpp"
#include "falsify/engine/inputs.hpp"
#include "falsify/engine/percentile.hpp"
#include "falsify/engine/reports/fields.hpp"
#include "falsify/foreign/replay.hpp"
#include "tests/engine/absent.hpp"

namespace assay::falsify::report_test {
namespace {

using nlohmann::json;

json falsified_report() {
  CampaignOptions options;
  options.cases = 30;
  options.stop_at_first = true;
  const OpDescriptor& op = operation("matmul");
  return make_report({to_json(op, run_campaign(op, kernel("mutant/cpu/matmul/dropped_last_k"), options))},
                     json::object(), 1);
}

TEST(Report, AFalsifiedKernelFailsTheRunAndIsPrintedWithItsReplay) {
  json report = falsified_report();
  EXPECT_TRUE(report_failed(report));
  const auto folder = std::filesystem::temp_directory_path() / "assay-report-test";
  std::filesystem::remove_all(folder);
  write_report(report, folder);
  const std::string text = table(report);
  for (const char* part :
       {"FALSIFIED mutant/cpu/matmul/dropped_last_k", "element  c[", "replay   assay replay", "suspect"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  int replays = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "replay")) {
    const Replay replay = read_replay(entry.path());
    EXPECT_EQ(run_case(*replay.op, *replay.obligation, *replay.kernel, replay.the_case, std::chrono::seconds(5)).kind,
              Outcome::Kind::falsified);
    EXPECT_EQ(
        run_case(*replay.op, *replay.obligation, kernel("matmul/cpu/naive"), replay.the_case, std::chrono::seconds(5))
            .kind,
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
    std::ofstream(path) << json{{"schema", "assay-replay/1"},
                                {"op", "matmul"},
                                {"kernel", "matmul/cpu/naive"},
                                {"obligation", o.info->id},
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
  const auto clauses = [](const std::vector<json>& results) {
    return make_report(results, json::object(), 1)["clauses"];
  };
  const json naive = result("matmul/cpu/naive"), openblas = result("matmul/cpu/openblas");
  const json one = clauses({naive}), other = clauses({openblas}), both = clauses({naive, openblas});
  ASSERT_EQ(both.size(), op.clauses.size());
  for (std::size_t i = 0; i < both.size(); ++i)
    EXPECT_EQ(both[i]["evaluated"].get<int>(), one[i]["evaluated"].get<int>() + other[i]["evaluated"].get<int>())
        << both[i]["id"];
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
  const json good = {{"schema", "assay-replay/1"},
                     {"op", "matmul"},
                     {"kernel", "matmul/cpu/naive"},
                     {"obligation", "FALSIFY-MM-002"},
                     {"case", json::object()}};
  const auto with = [&](const char* key, json value) {
    json j = good;
    j[key] = std::move(value);
    return j.dump();
  };
  const std::string texts[] = {"",
                               "{",
                               "[]",
                               "null",
                               with("schema", "other/9"),
                               with("schema", 3),
                               with("op", "matmull"),
                               with("kernel", "matmul/cpu/none"),
                               with("kernel", "gemv/cpu/naive"),
                               with("obligation", "FALSIFY-XX-1"),
                               with("case", json::array()),
                               good.dump()};
  for (const std::string& text : texts) {
    std::ofstream(path) << text;
    EXPECT_THROW(read_replay(path), InputError) << text;
  }
  EXPECT_THROW(read_replay("/nonexistent/file.json"), InputError);
}

/// One obligation in the format of a report.
json obligation(const char* verdict, int cases, int refused, json worst = 0.5) {
  return {{"id", "X-001"},      {"claim", "claimed"},
          {"by", "exact"},      {"if_fails", "suspected"},
          {"verdict", verdict}, {"cases", cases},
          {"refused", refused}, {"elements", 1000 * cases},
          {"nonzero", 1},       {"worst", std::move(worst)},
          {"typical", 0.1},     {"seconds", 0.25},
          {"reason", "why"}};
}

json of_kernel(const char* id, const char* status, std::vector<json> obligations) {
  return {{"op", "x"},
          {"kernel", id},
          {"backend", "cpu"},
          {"device", "d"},
          {"source", "s.cpp"},
          {"line", 3},
          {"arithmetic", "a"},
          {"status", status},
          {"seconds", 1.25},
          {"obligations", std::move(obligations)},
          {"clauses", json::array()}};
}

/// Returns a kernel's line of the table with runs of blanks collapsed.
std::string row(const json& kernel) {
  const std::string text = table(make_report({kernel}, json::object(), 1));
  const std::size_t begin = text.find(kernel["kernel"].get<std::string>());
  return std::regex_replace(text.substr(begin, text.find('\n', begin) - begin), std::regex(" +"), " ");
}

TEST(Table, AKernelsLineAddsUpItsObligations) {
  EXPECT_EQ(row(of_kernel("x/cpu/plain", "passed", {obligation("passed", 3, 0), obligation("passed", 4, 0, 0.75)})),
            "x/cpu/plain 7 7000 0.75 1.2 passed");
  EXPECT_EQ(row(of_kernel("x/cpu/picky", "passed",
                          {obligation("passed", 5, 2), obligation("passed", 4, 0), obligation("passed", 10, 3)})),
            "x/cpu/picky 19 19.0k 0.5 1.2 passed (5 of 19 cases refused)");
  EXPECT_EQ(row(of_kernel("x/cpu/once", "passed", {obligation("passed", 5, 1)})),
            "x/cpu/once 5 5000 0.5 1.2 passed (1 of 5 cases refused)");
  EXPECT_EQ(row(of_kernel(
                "x/cpu/part", "passed",
                {obligation("not applicable", 0, 0), obligation("passed", 2, 1), obligation("not applicable", 0, 0)})),
            "x/cpu/part 2 2000 0.5 1.2 passed (2 of 3 obligations not applicable) (1 of 2 cases refused)");
  // A falsified kernel shows its worst ratio; a kernel that was never tried shows one reason.
  EXPECT_EQ(row(of_kernel("x/cpu/wrong", "falsified",
                          {obligation("falsified", 1, 0, "inf"), obligation("mistrusted", 1, 0, 0.9),
                           obligation("passed", 1, 0, 0.25)})),
            "x/cpu/wrong 3 3000 inf 1.2 falsified");
  EXPECT_EQ(row(of_kernel("x/cpu/never", "refused", {obligation("refused", 2, 2), obligation("not applicable", 0, 0)})),
            "x/cpu/never 2 2000 0 1.2 refused: why (2 of 2 cases refused)");
  EXPECT_EQ(row(of_kernel("x/cuda/away", "unavailable", {obligation("unavailable", 0, 0)})),
            "x/cuda/away 0 0 0 1.2 unavailable: why");
}

TEST(Table, ColumnsAreAsWideAsTheLongestName) {
  const json report = make_report({of_kernel("x/cpu/a", "passed", {obligation("passed", 1, 0)}),
                                   of_kernel("x/cpu/a_longer_one", "mistrusted", {obligation("mistrusted", 1, 0)})},
                                  json::object(), 1);
  const std::string text = table(report);
  EXPECT_TRUE(text.starts_with("kernel               cases   elements  err/bound  seconds  verdict\n")) << text;
  EXPECT_NE(text.find("\nx/cpu/a                  1       1000        0.5      1.2  passed\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nMISTRUSTED x/cpu/a_longer_one  X-001: why\n"), std::string::npos) << text;
  EXPECT_NE(
      text.find(
          "\n2 kernels: 1 passed, 0 falsified, 1 mistrusted, 0 thin, 0 refused, 0 unavailable; 2 cases, 2000 output elements in 1.0 s\n"),
      std::string::npos)
      << text;
}

TEST(Junit, CountsAreThoseOfEachSuiteAndOfAll) {
  const std::string xml = junit_xml(make_report(
      {of_kernel("x/cpu/a", "falsified",
                 {obligation("falsified", 1, 0), obligation("mistrusted", 1, 0), obligation("passed", 1, 0)}),
       of_kernel("x/cpu/b", "mistrusted",
                 {obligation("mistrusted", 1, 0), obligation("refused", 1, 1), obligation("not applicable", 0, 0),
                  obligation("unavailable", 0, 0), obligation("passed", 1, 0)})},
      json::object(), 2.5));
  for (const char* line :
       {"<testsuites name=\"assay\" tests=\"8\" failures=\"3\" errors=\"0\" time=\"2.500\">\n",
        "  <testsuite name=\"x/cpu/a\" tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"0\" time=\"1.250\">\n",
        "  <testsuite name=\"x/cpu/b\" tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"3\" time=\"1.250\">\n",
        "    <testcase classname=\"x/cpu/a\" name=\"X-001: claimed\" time=\"0.250\"></testcase>\n",
        "<failure type=\"mistrusted\" message=\"why\">suspect: suspected\n</failure>",
        "<skipped>refused: why</skipped>", "<skipped>not applicable: why</skipped>",
        "<skipped>unavailable: why</skipped>"})
    EXPECT_NE(xml.find(line), std::string::npos) << line << " is not in\n" << xml;
}

TEST(Sarif, ErrorsComeFirstAndNameTheirRules) {
  json other = obligation("mistrusted", 1, 0);
  other["id"] = "X-000";
  const json log =
      json::parse(sarif(make_report({of_kernel("x/cpu/a", "falsified", {obligation("falsified", 1, 0), other}),
                                     of_kernel("x/cpu/b", "refused", {obligation("refused", 1, 1)})},
                                    json::object(), 1)));
  const json& run = log["runs"][0];
  ASSERT_EQ(run["results"].size(), 2U);
  EXPECT_EQ(run["results"][0]["level"], "error");
  EXPECT_EQ(run["results"][1]["level"], "warning");
  ASSERT_EQ(run["tool"]["driver"]["rules"].size(), 2U);
  for (const json& result : run["results"])
    EXPECT_EQ(run["tool"]["driver"]["rules"][result["ruleIndex"].get<std::size_t>()]["id"], result["ruleId"]);
  EXPECT_EQ(run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"],
            (json{{"uri", "s.cpp"}, {"uriBaseId", "SRCROOT"}}));
  EXPECT_EQ(run["invocations"][0]["exitCodeDescription"], "falsified");
  EXPECT_EQ(run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"],
            "x/cpu/b was not tried (refused): why");
}

/// A falsified obligation with every field that the report shows.
json told() {
  json o = obligation("falsified", 3, 0, "inf");
  o.erase("reason");
  o["counterexample"] = {{"case", {{"values", {{"a", {"0x1p+1", "nan:0x7fc00001"}}, {"b", {"-0x1.8p+0"}}}}}},
                         {"says", "m=1, explicit values"},
                         {"finding", {{"kind", "value"}, {"message", "got 1"}, {"tensor", "c"}, {"index", {0, 2}}}},
                         {"number", 7},
                         {"reproduction", "in a fresh process"},
                         {"shrink", {{"tried", 21}}},
                         {"file", "replay/x.json"}};
  return o;
}

TEST(Table, AFindingIsToldLineByLine) {
  json k = of_kernel("x/cpu/a", "falsified", {told(), obligation("not applicable", 0, 0)});
  k["clauses"] = {{{"id", "REACHED"}, {"evaluated", 2}}, {{"id", "MISSED"}, {"evaluated", 0}}};
  const json report = make_report({k}, json::object(), 1);
  const std::string text = table(report);
  EXPECT_NE(
      text.find(
          " falsified (1 of 2 obligations not applicable)\n\n"
          "FALSIFIED x/cpu/a  X-001  \"claimed\"\n"
          "  case     m=1, explicit values\n"
          "  element  c[0, 2]\n"
          "  value    got 1\n"
          "  inputs   a = [2, nan:0x7fc00001], b = [-1.5]\n"
          "  suspect  suspected\n"
          "  found    case 7 of the campaign, shrunk in 21 runs; fails in a fresh process\n"
          "  replay   assay replay replay/x.json\n\n"
          "NEVER EVALUATED MISSED: a clause that no run reaches proves nothing\n\n1 kernels: 0 passed, 1 falsified,"),
      std::string::npos)
      << text;
  json bare = told();
  bare["counterexample"].erase("file");
  bare["counterexample"]["case"] = json::object();
  bare["counterexample"]["finding"] = {{"kind", "crash"}, {"message", "gone"}};
  const std::string less = table(make_report({of_kernel("x/cpu/a", "falsified", {bare})}, json::object(), 1));
  for (const char* part : {"\n  element", "\n  inputs", "\n  replay", "NEVER"})
    EXPECT_EQ(less.find(part), std::string::npos) << less;
  EXPECT_NE(less.find("  crash    gone\n  suspect  an index, a stride or a size that leads outside the tensors"),
            std::string::npos)
      << less;
  EXPECT_TRUE(table(make_report({}, json::object(), 1)).starts_with("kernel   cases ")) << "as wide as its heading";
  EXPECT_NE(table(make_report({of_kernel("x", "passed", {})}, json::object(), 1)).find("\nx            0 "),
            std::string::npos);
}

TEST(Junit, EveryCharacterOfXmlIsEscapedAlone) {
  const std::string xml =
      junit_xml(make_report({of_kernel("a&b<c>d\"e'f\tg\nh\x1fi\x01j k~", "falsified", {told()})}, json::object(), 1));
  EXPECT_NE(xml.find("<testsuite name=\"a&amp;b&lt;c&gt;d&quot;e'f\tg\nh?i?j k~\" tests"), std::string::npos) << xml;
  EXPECT_NE(
      xml.find(
          "message=\"got 1 (m=1, explicit values)\">suspect: suspected\nreplay: assay replay replay/x.json\n</failure>"),
      std::string::npos)
      << xml;
  json bare = told();
  bare["counterexample"].erase("file");
  EXPECT_EQ(junit_xml(make_report({of_kernel("a", "falsified", {bare})}, json::object(), 1)).find("replay"),
            std::string::npos);
}

TEST(Sarif, AResultIsToldWithItsInputsAndItsReplay) {
  json k = of_kernel("x/cpu/a", "falsified", {told()});
  k["source"] = "/tmp/a b-c_d~e.f%g:h.so";
  k["clauses"] = {{{"id", "REACHED"}, {"evaluated", 2}}, {{"id", "MISSED"}, {"evaluated", 0}}};
  json report = make_report({k}, json::object(), 1);
  const auto run = [&] { return json::parse(sarif(report))["runs"][0]; };
  const json result = run()["results"][0];
  EXPECT_EQ(
      result["message"]["text"],
      "x/cpu/a is falsified: got 1 (m=1, explicit values)\nInputs: a = [2, nan:0x7fc00001], b = [-1.5]\nReplay: assay replay replay/x.json");
  EXPECT_EQ(result["properties"]["case"], told()["counterexample"]["case"]);
  EXPECT_EQ(result["partialFingerprints"]["kernelObligation/v1"], "x/cpu/a X-001");
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["artifactLocation"],
            (json{{"uri", "file:///tmp/a%20b-c_d~e.f%25g%3Ah.so"}}));
  EXPECT_EQ(run()["tool"]["driver"]["rules"][0]["fullDescription"]["text"], "x: claimed");
  const json told_beside = run()["invocations"][0]["toolExecutionNotifications"];
  ASSERT_EQ(told_beside.size(), 1U);
  EXPECT_EQ(told_beside[0]["message"]["text"],
            "MISSED was never evaluated: a clause that no run reaches proves nothing");
  const std::pair<int, const char*> ends[] = {
      {0, "nothing falsified"}, {1, "falsified"}, {2, "something that was asked for is unavailable"}};
  for (const auto& [code, words] : ends) {
    report["exit_code"] = code;
    EXPECT_EQ(run()["invocations"][0]["exitCodeDescription"], words);
  }
  json bare = told();
  bare["counterexample"].erase("file");
  bare["counterexample"]["case"] = json::object();
  report = make_report({of_kernel("x/cpu/a", "falsified", {bare})}, json::object(), 1);
  EXPECT_EQ(run()["results"][0]["message"]["text"], "x/cpu/a is falsified: got 1 (m=1, explicit values)");
}

TEST(Report, AForeignKernelIsNamedWhereverItIsFound) {
  const auto named = [](const plugin::Source& source) {
    json failed = obligation("falsified", 1, 0);
    failed["counterexample"] = {{"case", json::object()}};
    json report = make_report({of_kernel("a", "falsified", {obligation("passed", 1, 0), failed}),
                               of_kernel("b", "passed", {obligation("passed", 1, 0)})},
                              json::object(), 1);
    name_foreign(report, source);
    const json foreign = report["kernels"][0]["foreign"];
    EXPECT_EQ(report["kernels"][1]["foreign"], foreign);
    EXPECT_EQ(report["kernels"][0]["obligations"][1]["counterexample"]["foreign"], foreign);
    EXPECT_FALSE(report["kernels"][0]["obligations"][0].contains("counterexample"));
    return foreign;
  };
  // A replay file may be read from a folder other than the command's.
  const std::string library = (std::filesystem::current_path() / "lib.so").string();
  EXPECT_EQ(named({"./lib.so", "f", "", "", "f32"}),
            (json{{"library", library}, {"symbol", "f"}, {"declared", "f32"}}));
  EXPECT_EQ(
      named({library, "f", "shim.yaml", "text", "f32"}),
      (json{{"library", library}, {"symbol", "f"}, {"declared", "f32"}, {"shim", "text"}, {"shim_file", "shim.yaml"}}));
  EXPECT_EQ(named({"/a.spv", "main", "map.yaml", "text", "f32", true}), (json{{"library", "/a.spv"},
                                                                              {"symbol", "main"},
                                                                              {"declared", "f32"},
                                                                              {"shim", "text"},
                                                                              {"shim_file", "map.yaml"},
                                                                              {"shader", true}}));
}

TEST(Report, AMalformedReplayFileIsToldWhatIsWrong) {
  const auto path = std::filesystem::temp_directory_path() / "assay-malformed-told.json";
  Case c;
  c.dims = {1, 1, 1};
  const json good = {{"schema", "assay-replay/1"},
                     {"op", "matmul"},
                     {"kernel", "matmul/cpu/naive"},
                     {"obligation", "FALSIFY-MM-002"},
                     {"case", to_json(operation("matmul"), c)}};
  const auto told = [&](const json& document) -> std::string {
    std::ofstream(path) << document;
    try {
      read_replay(path);
    } catch (const InputError& e) {
      EXPECT_EQ(e.where, path.string());
      return e.problem;
    }
    return "";
  };
  const auto with = [&](const char* key, const char* value) {
    json j = good;
    j[key] = value;
    return told(j);
  };
  EXPECT_EQ(told(good), "");
  EXPECT_EQ(with("schema", "other/9"), "has the schema 'other/9'");
  EXPECT_EQ(with("kernel", "gemv/cpu/naive"), "names the kernel gemv/cpu/naive, which is not one of matmul");
  json without = good;
  without.erase("case");
  EXPECT_EQ(told(without), "the key 'case' is missing");
}

/// Writes a replay file of this kernel.
std::filesystem::path replay_of(const json& foreign) {
  const auto path = std::filesystem::temp_directory_path() / "assay-replay-foreign.json";
  Case c;
  c.dims = {1, 1, 1};
  std::ofstream(path) << json{{"schema", "assay-replay/1"},
                              {"op", "matmul"},
                              {"obligation", "FALSIFY-MM-002"},
                              {"foreign", foreign},
                              {"case", to_json(operation("matmul"), c)}};
  return path;
}

TEST(Report, AReplayTakesTheShimThatItsFileHolds) {
  const std::string shim = "symbol: multiply\nargs: [a, b, c, m, k, n]\n";
  const Replay replay = read_replay(
      replay_of({{"library", "lib.so"}, {"symbol", ""}, {"declared", ""}, {"shim", shim}, {"shim_file", "shim.yaml"}}));
  EXPECT_EQ(replay.foreign->source().shim, shim);
  EXPECT_EQ(replay.foreign->source().shim_name, "shim.yaml");
  EXPECT_EQ(replay.foreign->source().symbol, "multiply") << "as the shim names it";
}

/// A given library replaces the library named in the file, which may have moved.
TEST(Report, AReplayTakesTheLibraryThatItIsGiven) {
  const auto path = replay_of({{"library", "/of/the/file.so"}, {"symbol", "f"}, {"declared", ""}});
  EXPECT_EQ(read_replay(path).kernel->source, "/of/the/file.so");
  EXPECT_EQ(read_replay(path, "/moved/here.so").kernel->source, "/moved/here.so");
}

TEST(Report, ClausesOfOneObligationOrOfAShardAreNotMissed) {
  json k = of_kernel("x/cpu/a", "passed", {obligation("passed", 1, 0)});
  k["clauses"] = {{{"id", "REACHED"}, {"evaluated", 2}}, {{"id", "MISSED"}, {"evaluated", 0}}};
  const auto never = [&](const json& settings) { return make_report({k}, settings, 1)["never_evaluated"]; };
  EXPECT_EQ(never(json::object()), json{"MISSED"});
  EXPECT_EQ(never({{"obligation", ""}, {"shard", ""}}), json{"MISSED"});
  EXPECT_EQ(never({{"obligation", "X-001"}}), json::array());
  EXPECT_EQ(never({{"shard", "1/2"}}), json::array());
  k["status"] = "refused";
  EXPECT_EQ(never(json::object()), json::array()) << "a kernel that refused everything reaches none";
  k["status"] = "passed", k["clauses"][0]["evaluated"] = 0;
  EXPECT_EQ(never(json::object()), json::array()) << "nor does an operation that never ran";
}

TEST(Report, AFindingIsWrittenWithItsPlaceAndItsPicture) {
  const OpDescriptor& op = operation("matmul");
  Counterexample x;
  x.first.dims = {5, 6, 7}, x.smallest.dims = {2, 3, 4};
  x.finding = {Finding::Kind::value,
               "differs",
               "c",
               {2, 1},
               1.5,
               -INFINITY,
               0.25,
               ErrorMap{"c", 3, 5, 1, 2, true, {0, 0.5, 1, 1.0000001, 1234567, INFINITY, 2, 3, 4}}};
  x.first_errors = ErrorMap{"c", 1, 1, 1, 1, false, {7}};
  x.reproduction = "always", x.number = 12, x.shrink_tried = 34, x.shrink_seconds = 0.5, x.shrink_complete = false;
  KernelResult result;
  result.kernel = &kernel("matmul/cpu/naive");
  result.obligations.push_back({.info = &op.obligations[0],
                                .verdict = Verdict::falsified,
                                .reason = "",
                                .cases = 3,
                                .refused = 1,
                                .elements = 5,
                                .nonzero = 4,
                                .evidence = 1,
                                .compared = 2,
                                .worst = INFINITY,
                                .typical = 0.5,
                                .seconds = 0.25,
                                .counterexample = x});
  const auto written = [&] { return to_json(op, result)["obligations"][0]; };
  const json o = written(), found = o["counterexample"];
  EXPECT_EQ(o["worst"], "inf");
  EXPECT_EQ((std::vector<int>{o["cases"], o["refused"], o["elements"], o["nonzero"]}), (std::vector<int>{3, 1, 5, 4}));
  EXPECT_FALSE(o.contains("reason"));
  EXPECT_EQ(found["finding"], (json{{"kind", "value"},
                                    {"message", "differs"},
                                    {"tensor", "c"},
                                    {"index", {2, 1}},
                                    {"got", 1.5},
                                    {"want", "-inf"},
                                    {"bound", 0.25},
                                    {"errors",
                                     {{"tensor", "c"},
                                      {"rows", 3},
                                      {"columns", 5},
                                      {"row_step", 1},
                                      {"column_step", 2},
                                      {"relative", true},
                                      {"cells", {"0 0.5 1", "1.001 1.23e+06 inf", "2 3 4"}}}}}));
  EXPECT_EQ(found["drawn_errors"]["cells"], json{"7"});
  EXPECT_EQ(found["case"], to_json(op, x.smallest));
  EXPECT_EQ(found["drawn"], to_json(op, x.first));
  EXPECT_EQ(found["says"], describe(op, x.smallest));
  EXPECT_EQ(found["drawn_says"], describe(op, x.first));
  EXPECT_EQ(found["number"], 12);
  EXPECT_EQ(found["shrink"], (json{{"tried", 34}, {"seconds", 0.5}, {"complete", false}}));
  Counterexample& again = *result.obligations[0].counterexample;
  again.finding.tensor.clear(), again.finding.errors.reset();
  again.smallest = again.first;
  result.obligations[0].reason = "because";
  EXPECT_EQ(written()["reason"], "because");
  EXPECT_EQ(written()["counterexample"]["finding"], (json{{"kind", "value"}, {"message", "differs"}}));
  EXPECT_FALSE(written()["counterexample"].contains("drawn_errors")) << "one picture of one case";
}

/// The inputs at the element are those of the case, whatever its size: a row of a, a column of b.
TEST(Report, AFindingOfALargeCaseHasTheInputsAtItsElement) {
  const OpDescriptor& op = operation("matmul");
  Counterexample x;
  x.smallest.dims = {40, 30, 20}, x.smallest.seed = 7, x.smallest.strategy = Strategy::gaussian;
  x.first = x.smallest;
  x.finding.tensor = "c", x.finding.index = {39, 19};
  KernelResult result;
  result.kernel = &kernel("matmul/cpu/naive");
  ObligationResult& falsified = result.obligations.emplace_back();
  falsified.info = &op.obligations[0], falsified.verdict = Verdict::falsified, falsified.counterexample = x;
  const auto finding = [&] { return to_json(op, result)["obligations"][0]["counterexample"]["finding"]; };
  const Problem problem = make_problem(op, x.smallest, result.kernel->arithmetic, result.kernel->storage);
  json row = json::array(), column = json::array();
  for (std::size_t p = 0; p < 8; ++p) {
    row.push_back(number(static_cast<double>(problem.values[0][39 * 30 + p])));
    column.push_back(number(static_cast<double>(problem.values[1][p * 20 + 19])));
  }
  EXPECT_EQ(finding()["at_element"], (json{{"a", {{"index", {39, nullptr}}, {"count", 30}, {"values", row}}},
                                           {"b", {{"index", {nullptr, 19}}, {"count", 30}, {"values", column}}}}));
  Counterexample& other = *result.obligations[0].counterexample;
  other.finding.index = {40, 0};
  EXPECT_FALSE(finding().contains("at_element")) << "the output has no such element";
  other.finding.index = {0, 0}, other.smallest.dims = {5000, 5000, 5000};
  EXPECT_FALSE(finding().contains("at_element")) << "making all values again takes long";
  other.smallest.dims = {1, 1, 1}, other.smallest.values = {{1}, {2}, {}};
  EXPECT_FALSE(finding().contains("at_element")) << "the case lists them all";
  other.smallest.values.clear(), other.finding.call.emplace().call = other.smallest;
  EXPECT_FALSE(finding().contains("at_element")) << "another call, whose values are unknown";
}

TEST(Report, ClaimsNameOnlyWhatTheKernelGives) {
  const OpDescriptor& op = operation("rmsnorm");
  const auto frame = std::ranges::find(op.obligations, "frame", &ObligationInfo::by);
  Kernel saves_nothing = kernel("rmsnorm/cpu/naive");
  const Limits limits{.absent = {3}};
  KernelResult result;
  result.kernel = &saves_nothing;
  result.obligations.emplace_back().info = &*frame;
  const auto claim = [&] { return to_json(op, result)["obligations"][0]["claim"]; };
  EXPECT_EQ(claim(), "every element of y and rrms is written, nothing else is");
  saves_nothing.limits = &limits;
  EXPECT_EQ(claim(), "every element of y is written, nothing else is");
}

TEST(Percentile, IsTheValueOfTheNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(10 * i);
  for (int rank = 0; rank <= 100; ++rank) EXPECT_EQ(percentile(values, rank / 100.0), 10 * rank);
  EXPECT_EQ(percentile({}, 0.5), 0);
  EXPECT_EQ(percentile({7}, 0.5), 7);
  EXPECT_EQ(percentile({2, 1}, 0.25), 1);
  EXPECT_EQ(percentile({2, 1}, 0.5), 2);
  EXPECT_EQ(percentile({5, 3, 1}, 0.2), 1);
  EXPECT_EQ(percentile({5, 3, 1}, 0.7), 3);
  EXPECT_EQ(percentile({5, 3, 1}, 1), 5);
  EXPECT_EQ(percentile({5, 3, 1}, 0.24), 1) << "just below half way";
  EXPECT_EQ(percentile({5, 3, 1}, 0.26), 3) << "just above";
}

TEST(ErrorMap, CellsAreTheLargestOfTheirElements) {
  const auto at = [](std::size_t i) { return static_cast<double>(i * 7919 % 1009); };
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{5}, Shape{300}, Shape{64, 64}, Shape{65, 128}, Shape{129, 3},
                             Shape{3, 5, 70}, Shape{2, 3, 4, 5}, Shape{0, 5}, Shape{5, 0}}) {
    const ErrorMap map = error_map("t", shape, true, at);
    const Index columns = shape.rank() == 0 ? 1 : shape[shape.rank() - 1],
                rows = columns == 0 ? 0 : shape.size() / columns;
    EXPECT_EQ(map.tensor, "t");
    EXPECT_TRUE(map.relative);
    EXPECT_EQ(map.rows, rows);
    EXPECT_EQ(map.columns, columns);
    const auto steps = [](Index n, Index step) {  // true for the smallest step that gives at most 64 cells
      return step >= 1 && (n + step - 1) / step <= 64 && (step == 1 || (n + step - 2) / (step - 1) > 64);
    };
    EXPECT_TRUE(steps(rows, map.row_step)) << to_string(shape) << " " << map.row_step;
    EXPECT_TRUE(steps(columns, map.column_step)) << to_string(shape) << " " << map.column_step;
    ASSERT_EQ(map.cells.size(), static_cast<std::size_t>(map.cell_rows() * map.cell_columns()));
    std::vector<double> want(map.cells.size());
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) {
        double& cell = want[static_cast<std::size_t>((i / map.row_step) * map.cell_columns() + j / map.column_step)];
        cell = std::max(cell, at(static_cast<std::size_t>(i * columns + j)));
      }
    EXPECT_EQ(map.cells, want) << to_string(shape);
  }
}

}  // namespace
}  // namespace assay::falsify::report_test
