// The complete output of each format for a small report.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/fields.hpp"
#include "falsify/engine/reports/formats.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

constexpr double kInf = std::numeric_limits<double>::infinity();

json obligation(const char* id, const char* verdict, int cases, int refused, std::int64_t elements, const json& worst) {
  return {{"id", id},           {"claim", "it holds"}, {"by", "differential"}, {"if_fails", "the last row"},
          {"verdict", verdict}, {"cases", cases},      {"refused", refused},   {"elements", elements},
          {"worst", worst},     {"seconds", 0.25}};
}

json because(json o, const char* reason) {
  o["reason"] = reason;
  return o;
}

json kernel_with(const char* id, const char* status, json obligations, double seconds = 1.25) {
  return {{"op", "scale"},    {"kernel", id},       {"backend", "cpu"},
          {"device", "here"}, {"source", "a.cpp"},  {"line", 7},
          {"status", status}, {"seconds", seconds}, {"obligations", std::move(obligations)}};
}

json report_with(json kernels) {
  return {{"version", "9.9"},
          {"settings", {{"seed", "1"}}},
          {"seconds", 75.06},
          {"totals",
           {{"kernels", 11},
            {"passed", 1},
            {"falsified", 2},
            {"mistrusted", 3},
            {"thin", 6},
            {"refused", 4},
            {"unavailable", 5},
            {"cases", 60},
            {"elements", 12'345}}},
          {"never_evaluated", json::array()},
          {"exit_code", 1},
          {"kernels", std::move(kernels)}};
}

/// Returns a case with its values and a replay file, and a wrong element.
json counterexample() {
  return {{"says", "n=2"},
          {"case", {{"values", {{"alpha", {"1"}}, {"x", {"0.5", "-inf", "nan:1", "1e-45"}}}}}},
          {"finding", {{"kind", "value"}, {"message", "got 2, want 1"}, {"tensor", "y"}, {"index", {1, 0, 12}}}},
          {"number", 17},
          {"shrink", {{"tried", 23}}},
          {"reproduction", "in a fresh process"},
          {"file", "out/replay/x.json"}};
}

/// Returns a crash: no element, no values, no replay file.
json crash() {
  return {{"says", "n=3"}, {"case", {{"seed", "1"}}},  {"finding", {{"kind", "crash"}, {"message", "signal 11"}}},
          {"number", 1},   {"shrink", {{"tried", 0}}}, {"reproduction", "sometimes"}};
}

json failing(const char* id, json with) {
  json o = obligation(id, "falsified", 3, 0, 30, "inf");
  o["counterexample"] = std::move(with);
  return o;
}

/// The suspect depends on what happened to a call rather than on the obligation's subject.
TEST(Fields, SuspectsFollowWhatHappened) {
  const auto suspect = [](json with) { return suspect_of(failing("X-001", std::move(with))); };
  const auto changed = [](const char* pointer, const json& value) {
    json x = counterexample();
    x[json::json_pointer(pointer)] = value;
    return x;
  };
  EXPECT_EQ(suspect_of(obligation("X-001", "passed", 1, 0, 1, 0)), "the last row");
  EXPECT_EQ(suspect(counterexample()), "the last row");
  EXPECT_NE(suspect(crash()).find("outside the tensors"), std::string::npos);
  EXPECT_NE(suspect(changed("/finding/kind", "hang")).find("does not end"), std::string::npos);
  EXPECT_NE(suspect(changed("/finding/kind", "out of bounds")).find("past the tensor"), std::string::npos);
  EXPECT_NE(suspect(changed("/finding/kind", "late write")).find("past the tensor"), std::string::npos);
  EXPECT_NE(
      suspect(changed("/race", {{"order", "0"}, {"other", "0"}, {"other_gives", "it passes"}})).find("without a lock"),
      std::string::npos);
  EXPECT_NE(
      suspect(changed("/reproduction", "3 of 20 further runs: timing or earlier calls decide")).find("without order"),
      std::string::npos);
  EXPECT_NE(suspect(changed("/reproduction", "in a fresh process after a call with n=3"))
                .find("an earlier call leaves behind"),
            std::string::npos);
}

/// A call that fails has nothing to do with the obligation that happened to make it.
TEST(Fields, SuspectsOfFailedCallsFollowTheirMessage) {
  const auto suspect = [](const char* kind, const std::string& message, const char* library) {
    json x = crash();
    x["finding"] = {{"kind", kind}, {"message", message}};
    if (library != nullptr) x["foreign"] = {{"library", library}};
    return suspect_of(failing("X-001", x));
  };
  const struct {
    const char *kind, *message, *library, *words;
  } cases[] = {
      {"error", "the call failed: kernel failed with race on shared memory: block (0, 0, 0): thread (1, 0, 0): reads t",
       nullptr, "missing barrier"},
      {"error", "the call failed: kernel failed with barrier divergence: block (0, 0, 0): 32 threads", nullptr,
       "barrier in a branch"},
      {"error", "the call failed: kernel failed with warp divergence: block (0, 0, 0)", nullptr, "only some lanes"},
      {"error", "the call failed: kernel failed with warp mask: block (0, 0, 0)", nullptr, "exactly the lanes"},
      {"error", "the call failed: kernel failed with misaligned address: block (0, 0, 0)", nullptr, "vector load"},
      {"error", "the call failed: kernel failed with inline PTX: block (0, 0, 0)", nullptr, "falsify on a device"},
      {"error",
       "the call failed: kernel launch failed with cudaErrorInvalidConfiguration: a block of (2048, 1, 1) threads",
       nullptr, "launch configuration"},
      {"error", "the call failed: kernel launch failed with cudaErrorInvalidValue: 300000 bytes of shared memory",
       nullptr, "launch configuration"},
      {"error", "the call failed: k failed with cudaErrorIllegalAddress", nullptr, "outside the tensors"},
      {"error", "the call failed: k failed with cudaErrorMemoryAllocation: out of memory", nullptr,
       "memory that grows"},
      {"error", "the call failed: vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY", nullptr,
       "memory that grows"},
      {"error",
       "the call failed: it returned with another rounding mode or treatment of subnormals than it was called with",
       nullptr, "not restored"},
      {"error", "the call failed: ValueError: operands could not be broadcast", "/k/softmax.py", "does not expect"},
      {"error", "the call failed: it gave no reason", "/k/libk.so", "rejects this call"},
      {"crash", "the kernel crashed: signal 11 (Segmentation fault)", nullptr, "outside the tensors"},
      {"crash",
       "the kernel crashed: signal 9 (Killed), and calls before it had kept 2.0 of the 2 GiB of memory that they may add",
       nullptr, "never free"},
      {"crash", "the kernel crashed: the process exited with status 3 inside the call", nullptr, "exit()"}};
  for (const auto& c : cases)
    EXPECT_NE(suspect(c.kind, c.message, c.library).find(c.words), std::string::npos)
        << c.message << ": " << suspect(c.kind, c.message, c.library);
}

TEST(Fields, ASumOfNothingThatIsNotZeroBeginsElsewhere) {
  json x = counterexample();
  x["finding"].update({{"got", 7}, {"want", 0.0}, {"bound", 0.0}});
  x["case"]["dims"] = {{"rows", 0}, {"n", 1}};
  EXPECT_NE(suspect_of(failing("X-001", x)).find("begin at zero"), std::string::npos);
  const auto elsewhere = [&] { return suspect_of(failing("X-001", x)) != "the last row"; };
  for (const char* of_sums : {"want", "bound"}) {  // the sum has terms, or its bound is not zero
    x["finding"][of_sums] = 1.0;
    EXPECT_FALSE(elsewhere()) << of_sums;
    x["finding"][of_sums] = 0.0;
  }
  x["finding"]["call"]["case"]["dims"] = {{"rows", 1}, {"n", 1}};
  EXPECT_FALSE(elsewhere()) << "the call that failed has rows";
  x["finding"].erase("call");
  EXPECT_TRUE(elsewhere());
  x["case"]["dims"]["rows"] = 1;
  EXPECT_FALSE(elsewhere());
}

/// `frame` also checks values, and large shapes shrink to small ones: their claims then hold and are no headline.
TEST(Fields, AClaimThatHeldIsNoHeadline) {
  const auto told = [](const char* by, json x) {
    json o = failing("X-001", std::move(x));
    o["by"] = by;
    return table(report_with({kernel_with("k", "falsified", {o})}));
  };
  const auto holds = [&](const char* by, const json& x) {
    return told(by, x).find("\"it holds\"") == std::string::npos &&
           told(by, x).find("the last row") == std::string::npos;
  };
  json x = counterexample();
  EXPECT_FALSE(holds("differential", x));
  EXPECT_TRUE(holds("frame", x));
  x["finding"]["call"] = {{"case", x["case"]}, {"number", 2}, {"of", 2}, {"relation", ""}, {"alone", false}};
  x["made_of"] = "n=2";
  EXPECT_NE(told("frame", x).find("what the output held"), std::string::npos);
  x["finding"]["call"]["alone"] = true;
  EXPECT_NE(told("frame", x).find("\"every element is right\""), std::string::npos);
  x["finding"].erase("call");
  x["finding"]["kind"] = "not written";
  EXPECT_FALSE(holds("frame", x));
  EXPECT_NE(told("frame", crash()).find("\"it holds\""), std::string::npos);
  x["case"]["dims"] = {{"m", 512}, {"n", 1}};
  EXPECT_TRUE(holds("large", x));
  x["case"]["dims"]["m"] = 513;
  EXPECT_FALSE(holds("large", x));
  x["finding"]["call"] = {
      {"case", {{"dims", {{"m", 2}, {"n", 1}}}}}, {"number", 1}, {"of", 1}, {"relation", ""}, {"alone", true}};
  x["made_of"] = "m=513 n=1";
  EXPECT_TRUE(holds("large", x));
}

/// If a call of a relation or of special inputs differs from the oracle, the finding does not concern the relation.
TEST(Fields, AnErrorThatTheOracleSeesIsNotTheRelations) {
  const auto claim = [](const char* by, const json& x) {
    json o = failing("X-001", x);
    o["by"] = by;
    EXPECT_EQ(claim_of(o) == "it holds", suspect_of(o).starts_with("the last row")) << by;
    return claim_of(o);
  };
  json x = counterexample();
  x["finding"].update({{"kind", "class"}, {"got", "nan"}, {"want", 0.0}, {"bound", 0.0}});
  x["finding"]["call"] = {{"case", x["case"]}, {"number", 2}, {"of", 3}, {"relation", ""}, {"alone", true}};
  for (const char* by : {"determinism", "slicing", "postconditions"})
    EXPECT_EQ(claim(by, x), "every element is right") << by;
  for (const char* by : {"exact", "differential"}) EXPECT_EQ(claim(by, x), "it holds") << by;
  x["finding"]["call"]["alone"] = false;
  EXPECT_EQ(claim("determinism", x), "it holds") << "the calls differ, and each may be right";
  x["finding"]["call"].update({{"of", 1}, {"alone", true}});
  EXPECT_EQ(claim("masking", x), "it holds");
  x["finding"].update({{"kind", "value"}, {"got", 2.5}, {"bound", 1.0}});
  EXPECT_EQ(claim("masking", x), "every element is right") << "a matter of precision";
  x["finding"].erase("call");
  EXPECT_EQ(claim("nonfinite", x), "every element is right");
  EXPECT_EQ(claim("slicing", x), "it holds");
  x["finding"].update({{"kind", "class"}, {"got", 0.0}, {"want", "nan"}, {"bound", 0.0}});
  EXPECT_EQ(claim("nonfinite", x), "it holds");
  x["case"]["values"] = {{"x", {"0x1p+0", "nan:0x7fc00000"}}};
  EXPECT_EQ(claim("nonfinite", x), "it holds");
  x["finding"].update({{"got", "nan"}, {"want", 0.0}});
  json o = failing("X-001", x);
  o["by"] = "nonfinite";
  EXPECT_NE(suspect_of(o).find("made on the way"), std::string::npos);
  x["case"]["values"] = {{"x", {"0x1p+0", "0x1p+1"}}};
  EXPECT_EQ(claim("nonfinite", x), "every element is right") << "no input is special";
}

TEST(Fields, StridesThatAreNotDenseAreTold) {
  json kernel = kernel_with("k", "falsified", {}), x = counterexample();
  EXPECT_EQ(strides_of(kernel, x), "");
  x["finding"]["strides"] = {{"a", {40, 1}}, {"c", {2147483719, 1}}};
  x["case"]["layout"] = "padded";
  x["shrink"] = {{"tried", 0}, {"complete", true}};
  EXPECT_EQ(strides_of(kernel, x), "a [40, 1], c [2147483719, 1] (in elements)");
  x["shrink"]["tried"] = 9;
  EXPECT_EQ(
      strides_of(kernel, x),
      "a [40, 1], c [2147483719, 1] (in elements); passes where rows are dense: strides are ignored in some path");
  x["shrink"]["complete"] = false;
  EXPECT_EQ(strides_of(kernel, x), "a [40, 1], c [2147483719, 1] (in elements)");
  x["case"]["layout"] = "far_rows";
  EXPECT_EQ(strides_of(kernel, x), "a [40, 1], c [2147483719, 1] (in elements)");
  kernel["foreign"] = {{"shim", "args: []"}};
  EXPECT_NE(strides_of(kernel, x).find("add `requires: [offsets below 2^31]` to the shim"), std::string::npos);
  EXPECT_NE(table(report_with({kernel_with("k", "falsified", {failing("X-001", x)})})).find("\n  strides  a [40, 1]"),
            std::string::npos);
}

TEST(Fields, ARefusalByAShimBeginsWithTheRemedy) {
  json kernel = kernel_with("k", "refused", {});
  kernel["reason"] = "32% are left";
  EXPECT_EQ(shortfall_text(kernel), "32% are left");
  kernel["foreign"] = {{"library", "l.so"}};
  EXPECT_EQ(shortfall_text(kernel), "32% are left");
  kernel["foreign"]["shim"] = "args: []";
  EXPECT_TRUE(shortfall_text(kernel).starts_with("say in the shim what it takes (`requires: [...]`)"))
      << shortfall_text(kernel);
  EXPECT_TRUE(shortfall_text(kernel).ends_with("32% are left"));
}

TEST(Fields, TheCallIsNamedWithWhatTheOthersAre) {
  json x = counterexample();
  EXPECT_EQ(call_of(x), "");
  x["made_of"] = "m=0 n=2";
  x["finding"]["call"] = {
      {"case", x["case"]}, {"number", 2}, {"of", 3}, {"relation", "call 1 has m=0"}, {"alone", false}};
  EXPECT_EQ(call_of(x), "2 of 3 of the check; call 1 has m=0");
  x["finding"]["call"]["relation"] = "";
  EXPECT_EQ(call_of(x), "2 of 3 of the check");
  x["finding"]["call"]["of"] = 1;
  EXPECT_EQ(call_of(x), "") << "the case line shows it";
}

TEST(Fields, RacesOfTwoRunsNameNoOrder) {
  json x = counterexample();
  x["race"] = {{"order", "0"}, {"other", "0"}, {"other_gives", "it passes"}};
  EXPECT_EQ(
      race_of(x),
      "the same call gives other results in another run (it passes): threads race, or memory is read before it is written");
  x["race"]["other"] = "3";
  EXPECT_EQ(race_of(x), "threads race: under order 0 it fails so, under order 3 it passes");
}

TEST(Fields, CountsAreShortFromTenThousandOn) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(9'999), "9999");
  EXPECT_EQ(short_count(10'000), "10.0k");
  EXPECT_EQ(short_count(12'345), "12.3k");
  EXPECT_EQ(short_count(9'999'949), "9999.9k");
  EXPECT_EQ(short_count(9'999'999), "10000.0k");
  EXPECT_EQ(short_count(10'000'000), "10.0M");
  EXPECT_EQ(short_count(123'456'789), "123.5M");
}

TEST(Fields, FiguresHaveThreeDigitsOrStandAsTheyAre) {
  EXPECT_EQ(figure(0.123456), "0.123");
  EXPECT_EQ(figure(1234567.0), "1.23e+06");
  EXPECT_EQ(figure(2), "2");
  EXPECT_EQ(figure("inf"), "inf");
}

TEST(Fields, WhatJsonHasNoNumberForIsAWord) {
  EXPECT_EQ(number(0), json(0.0));
  EXPECT_EQ(number(-1.5), json(-1.5));
  EXPECT_EQ(number(kInf), json("inf"));
  EXPECT_EQ(number(-kInf), json("-inf"));
  EXPECT_EQ(number(std::nan("")), json("nan"));
  EXPECT_EQ(number(std::numeric_limits<double>::max()), json(std::numeric_limits<double>::max()));
  for (const double x : {0.0, -1.5, kInf, -kInf, 0.1}) EXPECT_EQ(number_from(number(x)), x);
  EXPECT_TRUE(std::isnan(number_from(number(std::nan("")))));
  EXPECT_EQ(number_from(json(3)), 3);
}

TEST(Fields, AnElementIsNamedWithItsWholeIndex) {
  EXPECT_EQ(element_of(counterexample()["finding"]), "y[1, 0, 12]");
  EXPECT_EQ(element_of({{"tensor", "y"}, {"index", {4}}}), "y[4]");
  EXPECT_EQ(element_of({{"tensor", "y"}, {"index", json::array()}}), "y[]");
  EXPECT_EQ(element_of(crash()["finding"]), "");
}

TEST(Fields, InputsAreListedTensorByTensor) {
  EXPECT_EQ(inputs_of(counterexample()), "alpha = [1], x = [0.5, -inf, nan:1, 1e-45]");
  EXPECT_EQ(inputs_of({{"finding", json::object()}, {"case", {{"values", {{"x", json::array()}}}}}}), "x = []");
  EXPECT_EQ(inputs_of(crash()), "");
  json x = counterexample();
  x["finding"]["integers"] = {{"x", {{"count", 13}, {"values", {7, 8, -9}}}}};
  EXPECT_EQ(inputs_of(x), "alpha = [1], x = [7, 8, -9, ...]") << "of the call, not of the case";
  x["case"].erase("values");
  EXPECT_EQ(inputs_of(x), "x = [7, 8, -9, ...]");
  x["finding"]["integers"]["x"]["count"] = 3;
  EXPECT_EQ(inputs_of(x), "x = [7, 8, -9]");
}

TEST(Fields, InputsOfALargeCaseAreThoseAtTheElement) {
  json x = crash();
  x["finding"]["at_element"] = {{"a", {{"index", {2, nullptr}}, {"count", 300}, {"values", {0.5, "nan", "-inf"}}}},
                                {"bias", {{"index", {7}}, {"count", 1}, {"values", {-2}}}},
                                {"alpha", {{"index", json::array()}, {"count", 1}, {"values", {3}}}}};
  EXPECT_EQ(inputs_of(x), "a[2, :] = [0.5, nan, -inf, ...], alpha = [3], bias[7] = [-2]");
}

TEST(Fields, AReplayIsACommandWhereThereIsAFile) {
  EXPECT_EQ(replay_of(counterexample()), "assay replay out/replay/x.json");
  set_program("build/release/bin/assay");
  EXPECT_EQ(replay_of(counterexample()), "build/release/bin/assay replay out/replay/x.json");
  set_program("assay");
  EXPECT_EQ(replay_of(crash()), "");
}

TEST(Fields, WhatHappenedIsTheFindingOrTheReason) {
  EXPECT_EQ(result_text(failing("A-1", counterexample())), "got 2, want 1 (n=2)");
  EXPECT_EQ(result_text(because(obligation("A-1", "unavailable", 0, 0, 0, 0), "there is no device")),
            "there is no device");
  EXPECT_EQ(result_text(obligation("A-1", "passed", 1, 0, 1, 0)), "");
}

TEST(Fields, JudgedAreAllOfOneVerdictInOrder) {
  const json report = report_with(
      {kernel_with("k1", "falsified",
                   {failing("A-1", crash()), obligation("A-2", "passed", 1, 0, 1, 0), failing("A-3", crash())}),
       kernel_with("k2", "passed", {obligation("A-1", "passed", 1, 0, 1, 0)}),
       kernel_with("k3", "falsified", {failing("A-2", crash())})});
  std::string found;
  for (const Judged& j : judged(report, "falsified"))
    found += text_of(j.kernel, "kernel") + " " + text_of(j.obligation, "id") + "; ";
  EXPECT_EQ(found, "k1 A-1; k1 A-3; k3 A-2; ");
  EXPECT_TRUE(judged(report, "mistrusted").empty());
}

/// Lists one explanation per kernel and the other obligations after it; all findings of a kernel without an
/// explanation.
TEST(Fields, OneExplainsAKernelAndTheOthersAlsoFail) {
  json known =
      kernel_with("k1", "falsified", {failing("A-1", crash()), failing("A-2", crash()), failing("A-3", crash())});
  EXPECT_EQ(other_failed_obligations(known), "");
  known["explanation"] = {{"obligation", "A-2"}, {"also_fails", {"A-1", "A-3"}}};
  EXPECT_EQ(other_failed_obligations(known), "A-1, A-3");
  const json report =
      report_with({known, kernel_with("k2", "falsified", {failing("A-1", crash()), failing("A-2", crash())})});
  std::string found;
  for (const Judged& j : explained(report))
    found += text_of(j.kernel, "kernel") + " " + text_of(j.obligation, "id") + "; ";
  EXPECT_EQ(found, "k1 A-2; k2 A-1; k2 A-2; ");
}

TEST(Fields, TotalsAreOneLine) {
  EXPECT_EQ(
      totals_line(report_with(json::array())),
      "11 kernels: 1 passed, 2 falsified, 3 mistrusted, 6 thin, 4 refused, 5 unavailable; 60 cases, 12.3k output elements in 75.1 s");
}

constexpr const char* kTotals =
    "\n11 kernels: 1 passed, 2 falsified, 3 mistrusted, 6 thin, 4 refused, 5 unavailable; 60 cases, 12.3k output elements in 75.1 s\n";

TEST(Table, SumsUpTheObligationsOfAKernel) {
  EXPECT_EQ(table(report_with({kernel_with(
                "scale/cpu/naive", "passed",
                {obligation("A-1", "passed", 10, 0, 1'000, 0.25), obligation("A-2", "passed", 5, 0, 9'500, 0.5),
                 obligation("A-3", "passed", 1, 0, 3, 0.125)})})),
            std::string("kernel            cases   elements  err/bound  seconds  verdict\n"
                        "scale/cpu/naive      16      10.5k        0.5      1.2  passed\n") +
                kTotals);
}

TEST(Table, IsAsWideAsItsLongestKernel) {
  const json none = json::array();
  EXPECT_EQ(table(report_with({kernel_with("a", "passed", none), kernel_with("scale/vulkan/vectorized", "passed", none),
                               kernel_with("bc", "passed", none, 100)})),
            std::string("kernel                    cases   elements  err/bound  seconds  verdict\n"
                        "a                             0          0          0      1.2  passed\n"
                        "scale/vulkan/vectorized       0          0          0      1.2  passed\n"
                        "bc                            0          0          0    100.0  passed\n") +
                kTotals);
  EXPECT_EQ(table(report_with({kernel_with("a", "passed", none)})),
            std::string("kernel   cases   elements  err/bound  seconds  verdict\n"
                        "a            0          0          0      1.2  passed\n") +
                kTotals);
}

TEST(Table, CountsWhatWasRefusedOrDidNotApply) {
  const json passed = obligation("A-1", "passed", 10, 0, 10, 0.5);
  EXPECT_EQ(
      table(report_with({
          kernel_with("one", "passed", {passed, because(obligation("A-2", "not applicable", 0, 0, 0, 0), "no copy")}),
          kernel_with("two", "passed",
                      {obligation("A-1", "passed", 10, 1, 10, 0.5), obligation("A-2", "passed", 4, 2, 10, 0.5)}),
          kernel_with("both", "passed",
                      {passed, obligation("A-2", "not applicable", 0, 0, 0, 0),
                       obligation("A-3", "passed", 5, 1, 10, 0.5), obligation("A-4", "not applicable", 0, 0, 0, 0)}),
      })),
      std::string(
          "kernel   cases   elements  err/bound  seconds  verdict\n"
          "one         10         10        0.5      1.2  passed (1 of 2 obligations not applicable)\n"
          "two         14         20        0.5      1.2  passed (3 of 14 cases refused)\n"
          "both        15         20        0.5      1.2  passed (2 of 4 obligations not applicable) (1 of 15 cases refused)\n") +
          kTotals);
}

/// Shows the most frequent reason in one line, however long the kernel's text is.
TEST(Table, SaysWhyCasesWereRefused) {
  const std::string words = "status 3\nand more " + std::string(200, 'x');
  EXPECT_EQ(table(report_with({
                kernel_with("two", "passed",
                            {because(obligation("A-1", "passed", 10, 1, 10, 0.5), "n is odd"),
                             because(obligation("A-2", "passed", 4, 2, 10, 0.5), words.c_str()),
                             because(obligation("A-3", "passed", 4, 0, 10, 0.5), "a remark")}),
                kernel_with("wrong", "falsified", {because(obligation("A-1", "passed", 2, 1, 10, 0.5), "n is odd")}),
                kernel_with("silent", "passed", {obligation("A-1", "passed", 2, 1, 10, 0.5)}),
            })),
            std::string("kernel   cases   elements  err/bound  seconds  verdict\n"
                        "two         18         30        0.5      1.2  passed (3 of 18 cases refused)\n"
                        "  refused  status 3 and more " +
                        std::string(82, 'x') +
                        "...\n"
                        "wrong        2         10          -      1.2  falsified (1 of 2 cases refused)\n"
                        "  refused  n is odd\n"
                        "silent       2         10        0.5      1.2  passed (1 of 2 cases refused)\n") +
                kTotals);
}

/// A reason is cut between characters, never within one.
TEST(Fields, AReasonIsCutBetweenCharacters) {
  const std::string words = std::string(99, 'x') + "\xc3\xa9 and more";
  EXPECT_EQ(refusal_text(kernel_with("k", "passed", {because(obligation("A-1", "passed", 2, 1, 1, 0), words.c_str())})),
            std::string(99, 'x') + "...");
}

TEST(Table, WhatWasNotRunIsNotInapplicable) {
  EXPECT_EQ(
      table(report_with({kernel_with("k", "falsified",
                                     {obligation("A-1", "passed", 10, 0, 10, 0.5),
                                      because(obligation("A-2", "not applicable", 0, 0, 0, 0), "no copy"),
                                      because(obligation("A-3", "not run", 0, 0, 0, 0), "it ended"),
                                      because(obligation("A-4", "not run", 0, 0, 0, 0), "it ended")})})),
      std::string(
          "kernel   cases   elements  err/bound  seconds  verdict\n"
          "k           10         10          -      1.2  falsified (1 of 4 obligations not applicable, 2 not run)\n") +
          kTotals);
}

/// Clauses without a run are not reported as never evaluated.
TEST(Report, ClausesOfWhatWasNotRunAreNotCalledNeverEvaluated) {
  const auto never = [](const char* verdict) {
    json o = obligation("A-1", verdict, 0, 0, 0, 0);
    o["by"] = "postconditions";
    json k = kernel_with("k", "falsified", {obligation("A-2", "falsified", 1, 0, 1, 0), o});
    k["clauses"] = {{{"id", "REACHED"}, {"evaluated", 2}}, {{"id", "MISSED"}, {"evaluated", 0}}};
    return make_report({k}, json::object(), 1)["never_evaluated"];
  };
  EXPECT_EQ(never("passed"), json({"MISSED"}));
  EXPECT_EQ(never("not run"), json::array());
  EXPECT_EQ(never("falsified"), json::array()) << "it ended at its first clause";
}

/// Each verdict has a symbol and a name on the page.
TEST(Page, KnowsEveryVerdict) {
  const std::string page = html_page(report_with(json::array()));
  for (const std::string word :
       {"passed", "falsified", "mistrusted", "thin", "refused", "unavailable", "\"not applicable\"", "\"not run\""}) {
    const std::size_t sign = page.find(word + ": \"");
    EXPECT_NE(sign, std::string::npos) << word;
    EXPECT_NE(page.find(word + ": \"", sign + 1), std::string::npos) << word;
  }
}

TEST(Table, SaysWhyAKernelWasNotTried) {
  EXPECT_EQ(table(report_with({
                kernel_with("absent", "unavailable",
                            {obligation("A-1", "unavailable", 0, 0, 0, 0),
                             because(obligation("A-2", "unavailable", 2, 1, 0, 0), "no device"),
                             because(obligation("A-3", "unavailable", 0, 0, 0, 0), "another reason"),
                             obligation("A-4", "not applicable", 0, 0, 0, 0)}),
                kernel_with("unwilling", "refused", {because(obligation("A-1", "refused", 3, 3, 0, 0), "n is odd")}),
                kernel_with("tried", "passed", {because(obligation("A-1", "passed", 3, 0, 5, 0), "a remark")}),
            })),
            std::string("kernel      cases   elements  err/bound  seconds  verdict\n"
                        "absent          2          0          0      1.2  unavailable: no device\n"
                        "unwilling       3          0          0      1.2  refused: n is odd (3 of 3 cases refused)\n"
                        "tried           3          5          0      1.2  passed\n") +
                kTotals);
}

TEST(Table, ErrorsOfWhatPassedAloneCount) {
  EXPECT_EQ(table(report_with({kernel_with(
                "k", "mistrusted",
                {because(obligation("A-1", "mistrusted", 1, 0, 1, 0.75), "mostly zeros"),
                 obligation("A-2", "passed", 1, 0, 1, 0.5), obligation("A-3", "passed", 1, 0, 1, "nan")})})),
            std::string("kernel   cases   elements  err/bound  seconds  verdict\n"
                        "k            3          3        0.5      1.2  mistrusted\n"
                        "\nMISTRUSTED k  A-1: mostly zeros\n") +
                kTotals);
}

/// A falsified kernel gets no MISTRUSTED block.
TEST(Table, AFalsifiedKernelIsNotMistrustedToo) {
  EXPECT_EQ(table(report_with({kernel_with("k", "falsified",
                                           {because(obligation("A-1", "mistrusted", 1, 0, 1, 0), "mostly zeros"),
                                            failing("A-2", crash())})}))
                .find("MISTRUSTED"),
            std::string::npos);
}

/// A passing kernel shows 1 only for exactly 1; a falsified one shows its largest error.
TEST(Table, TheLargestErrorIsNotRoundedUpAndIsThatOfTheFault) {
  const auto shown = [](const char* status, json obligations) {
    const std::string text = table(report_with({kernel_with("k", status, std::move(obligations))}));
    const std::size_t line = text.find('\n') + 1;
    return text.substr(line, text.find('\n', line) - line);
  };
  EXPECT_NE(shown("passed", {obligation("A-1", "passed", 1, 0, 1, 0.9996)}).find("  0.999  "), std::string::npos);
  EXPECT_NE(shown("passed", {obligation("A-1", "passed", 1, 0, 1, 1.0)}).find("      1  "), std::string::npos);
  EXPECT_NE(
      shown("falsified", {obligation("A-1", "passed", 1, 0, 1, 0.5), obligation("A-2", "falsified", 1, 0, 1, 1.5)})
          .find("  1.5  "),
      std::string::npos);
}

TEST(Table, ShowsEachFindingBehindAllKernels) {
  json report =
      report_with({kernel_with("first", "falsified", {failing("A-1", counterexample()), failing("A-2", crash())}),
                   kernel_with("second", "falsified", {failing("A-1", crash())})});
  report["never_evaluated"] = {"SCALE-POST-001", "SCALE-POST-002"};
  EXPECT_EQ(
      table(report),
      std::string(
          "kernel   cases   elements  err/bound  seconds  verdict\n"
          "first        6         60        inf      1.2  falsified\n"
          "second       3         30        inf      1.2  falsified\n"
          "\nFALSIFIED first  A-1  \"it holds\"\n"
          "  case     n=2\n"
          "  element  y[1, 0, 12]\n"
          "  value    got 2, want 1\n"
          "  inputs   alpha = [1], x = [0.5, -inf, nan:1, 1e-45]\n"
          "  suspect  the last row\n"
          "  found    case 17 of the campaign, shrunk in 23 runs; fails in a fresh process\n"
          "  replay   assay replay out/replay/x.json\n"
          "\nFALSIFIED first  A-2  \"it holds\"\n"
          "  case     n=3\n"
          "  crash    signal 11\n"
          "  suspect  an index, a stride or a size that leads outside the tensors, or a limit of the kernel's own that these dims pass\n"
          "  found    case 1 of the campaign, shrunk in 0 runs; fails sometimes\n"
          "\nFALSIFIED second  A-1  \"it holds\"\n"
          "  case     n=3\n"
          "  crash    signal 11\n"
          "  suspect  an index, a stride or a size that leads outside the tensors, or a limit of the kernel's own that these dims pass\n"
          "  found    case 1 of the campaign, shrunk in 0 runs; fails sometimes\n"
          "\nNEVER EVALUATED SCALE-POST-001: a clause that no run reaches proves nothing\n"
          "\nNEVER EVALUATED SCALE-POST-002: a clause that no run reaches proves nothing\n") +
          kTotals);
}

TEST(JUnit, EveryVerdictHasItsElement) {
  json odd = failing("A-3", crash());
  odd.erase("if_fails");
  odd["claim"] = "a < b & c > \"d\"\x1f\x20\t\n\x7f";
  EXPECT_EQ(
      junit_xml(report_with({
          kernel_with(
              "first", "falsified",
              {obligation("A-1", "passed", 1, 0, 1, 0), failing("A-2", counterexample()), odd, failing("A-4", crash()),
               because(obligation("A-5", "mistrusted", 1, 0, 1, 0), "mostly <zeros>")}),
          kernel_with("a&b", "unavailable",
                      {because(obligation("A-1", "unavailable", 1, 0, 1, 0), "no \"device\""),
                       obligation("A-2", "not applicable", 0, 0, 0, 0),
                       because(obligation("A-3", "refused", 0, 0, 0, 0), "n is odd"),
                       because(obligation("A-4", "not run", 0, 0, 0, 0), "it ended")},
                      0.0625),
      })),
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"assay\" tests=\"9\" failures=\"4\" errors=\"0\" time=\"75.060\">\n"
      "  <testsuite name=\"first\" tests=\"5\" failures=\"4\" errors=\"0\" skipped=\"0\" time=\"1.250\">\n"
      "    <testcase classname=\"first\" name=\"A-1: it holds\" time=\"0.250\"></testcase>\n"
      "    <testcase classname=\"first\" name=\"A-2: it holds\" time=\"0.250\"><failure type=\"falsified\" message=\"got 2, want 1 (n=2)\">"
      "suspect: the last row\nreplay: assay replay out/replay/x.json\n</failure></testcase>\n"
      "    <testcase classname=\"first\" name=\"A-3: a &lt; b &amp; c &gt; &quot;d&quot;? \t\n\x7f\" time=\"0.250\">"
      "<failure type=\"falsified\" message=\"signal 11 (n=3)\"></failure></testcase>\n"
      "    <testcase classname=\"first\" name=\"A-4: it holds\" time=\"0.250\"><failure type=\"falsified\" message=\"signal 11 (n=3)\">"
      "suspect: an index, a stride or a size that leads outside the tensors, or a limit of the kernel's own that these dims pass\n</failure></testcase>\n"
      "    <testcase classname=\"first\" name=\"A-5: it holds\" time=\"0.250\"><failure type=\"mistrusted\" message=\"mostly &lt;zeros&gt;\">"
      "suspect: the last row\n</failure></testcase>\n"
      "  </testsuite>\n"
      "  <testsuite name=\"a&amp;b\" tests=\"4\" failures=\"0\" errors=\"0\" skipped=\"4\" time=\"0.062\">\n"
      "    <testcase classname=\"a&amp;b\" name=\"A-1: it holds\" time=\"0.250\"><skipped>unavailable: no &quot;device&quot;</skipped></testcase>\n"
      "    <testcase classname=\"a&amp;b\" name=\"A-2: it holds\" time=\"0.250\"><skipped>not applicable: </skipped></testcase>\n"
      "    <testcase classname=\"a&amp;b\" name=\"A-3: it holds\" time=\"0.250\"><skipped>refused: n is odd</skipped></testcase>\n"
      "    <testcase classname=\"a&amp;b\" name=\"A-4: it holds\" time=\"0.250\"><skipped>not run: it ended</skipped></testcase>\n"
      "  </testsuite>\n"
      "</testsuites>\n");
}

TEST(Sarif, OfARunIsOneLog) {
  json report = report_with({
      kernel_with("first", "falsified", {obligation("A-2", "passed", 1, 0, 1, 0), failing("A-1", counterexample())}),
      kernel_with("second", "mistrusted",
                  {because(obligation("A-1", "mistrusted", 1, 0, 1, 0), "mostly zeros"), failing("A-2", crash())}),
      kernel_with("third", "unavailable",
                  {obligation("A-1", "unavailable", 0, 0, 0, 0),
                   because(obligation("A-2", "unavailable", 0, 0, 0, 0), "no device"),
                   because(obligation("A-3", "unavailable", 0, 0, 0, 0), "another reason")}),
      kernel_with("fourth", "refused", {because(obligation("A-1", "refused", 0, 0, 0, 0), "n is odd")}),
      kernel_with("fifth", "passed",
                  {because(obligation("A-1", "passed", 0, 0, 0, 0), "a remark"),
                   because(obligation("A-2", "not run", 0, 0, 0, 0), "it ended"),
                   because(obligation("A-3", "not run", 0, 0, 0, 0), "it ended")}),
  });
  report["kernels"][1]["source"] = "/elsewhere/a b-c_d.e~f(\xc3\xa9).cpp";
  report["never_evaluated"] = {"SCALE-POST-001"};
  const std::string text = sarif(report);
  EXPECT_TRUE(text.starts_with("{\n \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n"));
  EXPECT_TRUE(text.ends_with("\n}\n"));

  const auto rule = [](const char* id) {
    return json{{"id", id},
                {"shortDescription", {{"text", "it holds"}}},
                {"fullDescription", {{"text", "scale: it holds"}}},
                {"help", {{"text", "If it fails, suspect: the last row"}}},
                {"defaultConfiguration", {{"level", "error"}}},
                {"properties", {{"tags", {"scale", "differential"}}, {"precision", "very-high"}}}};
  };
  const auto found = [](const char* kernel, const char* id, int index, const char* level, const char* message,
                        const json& artifact) {
    const std::string print = std::string(kernel) + " " + id;
    return json{{"ruleId", id},
                {"ruleIndex", index},
                {"level", level},
                {"message", {{"text", message}}},
                {"locations",
                 {{{"physicalLocation", {{"artifactLocation", artifact}, {"region", {{"startLine", 7}}}}},
                   {"logicalLocations", {{{"fullyQualifiedName", kernel}, {"kind", "function"}}}}}}},
                {"partialFingerprints", {{"kernelObligation/v1", print}, {"primaryLocationLineHash", print}}},
                {"properties", {{"kernel", kernel}, {"backend", "cpu"}}}};
  };
  const json here{{"uri", "a.cpp"}, {"uriBaseId", "SRCROOT"}},
      elsewhere{{"uri", "file:///elsewhere/a%20b-c_d.e~f%28%C3%A9%29.cpp"}};
  json with_values = found(
      "first", "A-1", 0, "error",
      "first is falsified: got 2, want 1 (n=2)\nInputs: alpha = [1], x = [0.5, -inf, nan:1, 1e-45]\nReplay: assay replay out/replay/x.json",
      here);
  json crashed = found("second", "A-2", 1, "error", "second is falsified: signal 11 (n=3)", elsewhere);
  with_values["properties"]["case"] = counterexample()["case"], crashed["properties"]["case"] = crash()["case"];
  const auto note = [](const char* level, const char* message) {
    return json{{"level", level}, {"message", {{"text", message}}}};
  };
  const json run{
      {"tool",
       {{"driver", {{"name", "assay"}, {"version", "9.9"}, {"rules", {rule("A-1"), rule("A-2"), rule("A-3")}}}}}},
      {"invocations",
       {{{"executionSuccessful", true},
         {"exitCode", 1},
         {"exitCodeDescription", "falsified"},
         {"toolExecutionNotifications",
          {note("note", "third was not tried (unavailable): no device"),
           note("note", "fourth was not tried (refused): n is odd"),
           note("note", "of fifth 2 of 3 obligations were not run: it ended"),
           note("error", "SCALE-POST-001 was never evaluated: a clause that no run reaches proves nothing")}}}}},
      {"originalUriBaseIds", {{"SRCROOT", {{"description", {{"text", "The top of the repository."}}}}}}},
      {"columnKind", "unicodeCodePoints"},
      {"results",
       {with_values, crashed, found("second", "A-1", 0, "warning", "second is mistrusted: mostly zeros", elsewhere)}},
      {"properties", {{"totals", report["totals"]}, {"settings", report["settings"]}}}};
  EXPECT_EQ(json::parse(text),
            (json{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}, {"runs", {run}}}))
      << json::diff(json::parse(text)["runs"][0], run).dump(1);
}

TEST(Sarif, NamesWhatTheExitCodeSays) {
  json report = report_with(json::array());
  const char* const says[] = {"nothing falsified", "falsified", "something that was asked for is unavailable",
                              "something that was asked for is unavailable"};
  for (int code = 0; code < 4; ++code) {
    report["exit_code"] = code;
    const json log = json::parse(sarif(report));
    EXPECT_EQ(log["runs"][0]["invocations"][0]["exitCode"], code);
    EXPECT_EQ(log["runs"][0]["invocations"][0]["exitCodeDescription"], says[code]);
  }
}

}  // namespace
}  // namespace assay::falsify
