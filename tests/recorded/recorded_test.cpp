// Compares the engine's results for fixed seeds with recorded ones: drawn cases, inputs, their places, expected values,
// bounds, messages of certificates on wrong results, and the reports of campaigns against a correct and a wrong kernel.
// The search of tests/numbers finds bounds that are too small; this test finds bounds that have become too large.
//
//   ASSAY_RECORD=1 test_recorded     records the current results: review the difference, which is the change's effect
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "by_reference.hpp"
#include "core/errors.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/formats.hpp"
#include "recorded.hpp"

namespace assay::falsify::recorded {
namespace {

constexpr std::size_t kLongest = 16;  // longer lists of numbers are summarized

/// Summarizes an error map, whose rows are strings.
json picture(const json& cells) {
  std::vector<double> all;
  for (const json& row : cells) {
    std::istringstream words(row.get<std::string>());
    for (std::string word; words >> word;) all.push_back(std::strtod(word.c_str(), nullptr));
  }
  return summary(all);
}

constexpr std::string_view kLeftOut[] = {"seconds", "source", "device", "claim", "if_fails",
                                         "says",    "expr",   "line",   "shrink"};

/// Removes times and the contract's text, and summarizes long lists.
json condensed(const json& j) {
  if (j.is_object()) {
    json result = json::object();
    for (const auto& [key, value] : j.items()) {
      if (key == "cells") result[key] = picture(value);
      else if (std::ranges::find(kLeftOut, key) == std::end(kLeftOut)) result[key] = condensed(value);
    }
    return result;
  }
  if (j.is_number_float()) return number(j.get<double>());
  if (!j.is_array()) return j;
  if (j.size() > kLongest && std::ranges::all_of(j, [](const json& x) { return x.is_number(); }))
    return summary(j.get<std::vector<double>>());
  json result = json::array();
  for (const json& x : j) result.push_back(condensed(x));
  return result;
}

class Recorded : public testing::TestWithParam<const OpDescriptor*> {};

json draws(const OpDescriptor& op) {
  Arena arena(std::size_t{1} << 24);
  json all = json::array();
  for (const Drawn& d : drawn(op)) {
    Kernel kernel = reference_kernel(op, "recorded", nullptr);
    kernel.arithmetic = d.arithmetic, kernel.storage = d.storage;
    Worker worker(std::chrono::seconds(60), std::size_t{1} << 20);
    json inputs = json::array(), places = json::array(), outputs = json::array();
    for (const auto& values : d.problem.values) inputs.push_back(summary({values.begin(), values.end()}));
    const Stage stage(arena, d.problem, d.the_case, Poison::nan);
    for (const Placed& p : stage.tensors()) {
      json strides = json::array();
      for (int axis = 0; axis < p.strides.rank(); ++axis) strides.push_back(p.strides[axis]);
      places.push_back({name(p.dtype), p.region, p.region_bytes, p.data, p.guard_before, p.guard_after, strides});
    }
    for (const auto& y : Trial(op, kernel, d.the_case, worker).oracle(d.problem)) {
      std::vector<double> value, error, statistical, overflows;
      for (const Bounded& x : y) {
        value.push_back(x.value), error.push_back(x.error), statistical.push_back(x.statistical),
            overflows.push_back(x.may_overflow);
      }
      outputs.push_back({summary(value), summary(error), summary(statistical), summary(overflows)});
    }
    all.push_back({{"of", d.obligation->info->id},
                   {"case", describe(op, d.the_case)},
                   {"arithmetic", to_string(d.arithmetic)},
                   {"storage", name(d.storage)},
                   {"inputs", inputs},
                   {"places", places},
                   {"outputs", outputs}});
  }
  return all;
}

TEST_P(Recorded, Draws) {
  expect_recorded(*GetParam(), "draws", [](const OpDescriptor& op) { return draws(op); });
}

/// Moves each output further and further until the postconditions refuse it.
json refusals(const OpDescriptor& op) {
  contract::set_level(contract::Level::full);
  json all = json::array();
  for (const Drawn& d : drawn(op)) {
    for (std::size_t o = 0; o < outputs_of(op).size(); ++o) {
      json refused = nullptr;
      for (int k = -31; k < 12 && refused.is_null(); ++k) {
        const Off off{o, k < -30 ? 0 : std::ldexp(1.0, k)};
        Kernel kernel = reference_kernel(op, "recorded", &off);
        kernel.arithmetic = d.arithmetic, kernel.storage = d.storage;
        if (const auto why = refusal(kernel, d.problem)) refused = {k, *why};
      }
      all.push_back({d.obligation->info->id, o, refused});
    }
  }
  return all;
}

TEST_P(Recorded, Refusals) {
  expect_recorded(*GetParam(), "refusals", [](const OpDescriptor& op) { return refusals(op); });
}

json campaign(const OpDescriptor& op, const Kernel& kernel, int cases) {
  CampaignOptions options;
  options.cases = cases;
  options.seed = 7;
  options.largest = 40;
  options.limit = std::chrono::minutes(5);
  options.shrink = false;  // shrinking ends by time
  json result = to_json(op, run_campaign(op, kernel, options)), all = json::array();
  for (const json& obligation : result["obligations"]) all.push_back(condensed(obligation));
  result.erase("obligations");
  all.push_back(condensed(result));
  return all;
}

TEST_P(Recorded, RightKernel) {
  expect_recorded(*GetParam(), "right",
                  [](const OpDescriptor& op) { return campaign(op, reference_kernel(op, "right", nullptr), 2); });
}

TEST_P(Recorded, WrongKernel) {
  expect_recorded(*GetParam(), "wrong", [](const OpDescriptor& op) {
    const Off off{0, 0x1p-7};
    return campaign(op, reference_kernel(op, "wrong", &off), 1);
  });
}

/// Hashes many cases of each obligation, and the cases that they shrink to.
json cases(const OpDescriptor& op) {
  json all = json::array();
  for (const Obligation& o : obligations(op.name)) {
    std::uint64_t drawn = 0, shrunk = 0;
    for (std::uint64_t n = 0; n < 60; ++n) {
      const Case c = draw(op, *o.info, 5, n).value();
      drawn = derive(drawn, to_json(op, c).dump() + describe(op, c));
      for (const Case& s : simpler(op, draw_spec(o.info->by), c)) shrunk = derive(shrunk, to_json(op, s).dump());
    }
    all.push_back({o.info->id, fmt::format("{:016x}", drawn), fmt::format("{:016x}", shrunk)});
  }
  return all;
}

TEST_P(Recorded, Cases) { expect_recorded(*GetParam(), "cases", &cases); }

INSTANTIATE_TEST_SUITE_P(Of, Recorded, testing::ValuesIn(operations().begin(), operations().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(RecordedDigests, TellEntriesApart) {
  json entries = json::array();
  for (int i = 0; i < 30; ++i)
    entries.push_back({{"case", std::string(static_cast<std::size_t>(80 + i), 'x')}, {"worst", 1.0 / (i + 1)}});
  const json recorded = shortened(entries);
  EXPECT_EQ(std::ranges::count_if(recorded, &is_digest), 10);
  const auto difference_after = [&](const char* key, const json& value) {
    json now = entries;
    now[29][key] = value;
    return difference(as_recorded(now, recorded), recorded, kSame);
  };
  EXPECT_EQ(difference_after("worst", 1.0 / 30), "");
  EXPECT_EQ(difference_after("worst", (1 + 1e-12) / 30), "") << "mathematics libraries differ by as much";
  EXPECT_NE(difference_after("worst", (1 + 1e-6) / 30), "");
  EXPECT_NE(difference_after("worst", -1.0 / 30), "");
  EXPECT_NE(difference_after("case", "x"), "");
}

json lines(const std::string& text) {
  json all = json::array();
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

/// Returns a report over a correct kernel, a wrong one, one that refuses and one without a device.
json mixed_report() {
  const OpDescriptor& op = operation("rmsnorm");
  const Off off{0, 0x1p-7};
  Kernel right = reference_kernel(op, "rmsnorm/cpu/right", nullptr),
         wrong = reference_kernel(op, "rmsnorm/cpu/wrong", &off), refusing = right, absent = right;
  right.source = "tests/recorded/right.cpp", wrong.source = "/elsewhere/a b.cpp";
  refusing.id = "rmsnorm/cpu/refusing",
  refusing.refuse = [](const Call&) { return std::optional<std::string>("it takes nothing"); };
  absent.id = "rmsnorm/cuda/absent",
  absent.run = [](const Call&, Device&) { throw Unavailable("cuda", "there is none"); };
  CampaignOptions options;
  options.shrink = false;
  options.seed = 3;
  std::vector<json> kernels;
  for (const Kernel* k : {&right, &wrong, &refusing, &absent}) {
    options.cases = k == &wrong ? 3 : 2;
    json entry = to_json(op, run_campaign(op, *k, options));
    entry["seconds"] = 12.5, entry["device"] = "a device";
    for (json& o : entry["obligations"]) o["seconds"] = 0.25;
    kernels.push_back(std::move(entry));
  }
  // as after a run of hours
  kernels[0]["obligations"][0]["elements"] = 12'345'678'901;
  return make_report(kernels, {{"seed", "3"}, {"cases", 2}}, 3725);
}

TEST(RecordedReports, Texts) {
  const json texts = apart([] {
    json report = mixed_report();
    report["version"] = "0";
    for (json& k : report["kernels"])
      for (json& o : k["obligations"])
        if (o.contains("counterexample"))
          o["counterexample"]["shrink"] = {{"tried", 0}, {"seconds", 0.0}, {"complete", true}};
    json all = json::array({lines(table(report)), lines(junit_xml(report)), json::parse(sarif(report)),
                            lines(annotations(report)), lines(step_summary(report))});
    return all;
  });
  ASSERT_TRUE(texts.is_array()) << texts;
  const char* const parts[] = {"table", "junit", "sarif", "annotations", "summary"};
  for (std::size_t i = 0; i < std::size(parts); ++i) {
    json part = texts[i].is_array() ? texts[i] : json::array({texts[i]});
    if (std::string_view(parts[i]) == "sarif") part[0]["runs"][0]["tool"]["driver"].erase("version");
    expect_recorded(file_of("reports"), parts[i], part);
  }
}

}  // namespace
}  // namespace assay::falsify::recorded
