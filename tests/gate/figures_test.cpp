// The ledger's factor, and limits on false alarms against their closed form.
#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.hpp"
#include "falsify/gate/evidence.hpp"
#include "falsify/gate/ledger.hpp"
#include "falsify/gate/false_alarms.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

json obligation(double worst, double typical, const char* verdict = "passed", int cases = kMinDraws) {
  return json::array(
      {{{"id", "X-001"}, {"verdict", verdict}, {"worst", worst}, {"typical", typical}, {"cases", cases}}});
}

TEST(Ledger, ReportsWhatGrewTenfold) {
  EXPECT_TRUE(grown("k", obligation(0.05, 0.01), obligation(0.4, 0.09)).empty());
  const auto worst = grown("k", obligation(0.05, 0.01), obligation(0.5, 0.09));
  ASSERT_EQ(worst.size(), 1U);
  EXPECT_EQ(to_string(worst[0]), "k  X-001: worst error/bound 0.5, was 0.05");
  const auto typical = grown("k", obligation(0.5, 0.01), obligation(0.5, 0.1));
  ASSERT_EQ(typical.size(), 1U);
  EXPECT_EQ(typical[0].figure, "typical");
}

TEST(Ledger, ReportsWhatIsNoLongerExact) {
  EXPECT_EQ(grown("k", obligation(0, 0), obligation(0.001, 0)).size(), 1U);
  EXPECT_TRUE(grown("k", obligation(0, 0), obligation(0, 0)).empty());
  EXPECT_TRUE(grown("k", obligation(0.5, 0.5), obligation(0, 0)).empty());
}

TEST(Ledger, AMedianOfFewCasesOrOfZeroIsNoFigure) {
  // Half of the cases are exact: the median may be zero.
  EXPECT_TRUE(grown("k", obligation(0.9, 0), obligation(0.9, 0.8)).empty());
  EXPECT_TRUE(grown("k", obligation(0.5, 0.01), obligation(0.5, 0.1, "passed", kMinDraws - 1)).empty());
  EXPECT_TRUE(grown("k", obligation(0.5, 0.01, "passed", kMinDraws - 1), obligation(0.5, 0.1)).empty());
}

TEST(Ledger, ComparesWhatPassedOnBothSides) {
  EXPECT_TRUE(grown("k", obligation(0, 0), obligation(0.5, 0.5, "not applicable")).empty());
  EXPECT_TRUE(grown("k", obligation(0, 0, "not applicable"), obligation(0.5, 0.5)).empty());
  EXPECT_TRUE(grown("k", json::array(), obligation(0.5, 0.5)).empty());
}

json refusing(int cases, int refused, const char* verdict = "passed") {
  json list = obligation(0.1, 0.1, verdict, cases);
  list[0]["refused"] = refused;
  return list;
}

TEST(Ledger, AGrowingShareOfRefusalsStopsTheGate) {
  const auto none = grown("k", refusing(200, 0), refusing(100, 1));
  ASSERT_EQ(none.size(), 1U);
  EXPECT_TRUE(none[0].stops());
  EXPECT_EQ(none[0].now, 0.01);
  EXPECT_EQ(to_string(none[0]), "k  X-001: 1% of the cases refused, were 0%: --agree k agrees to it");
  EXPECT_EQ(grown("k", refusing(200, 100), refusing(100, 70)).size(), 1U);
  EXPECT_EQ(grown("k", refusing(200, 2), refusing(100, 100, "refused")).size(), 1U) << "whatever became of the verdict";
  for (const WorseFigure& w : grown("k", obligation(0.05, 0.01), obligation(0.5, 0.09))) EXPECT_FALSE(w.stops());
}

TEST(Ledger, SharesOfRefusalsMayVaryByChance) {
  EXPECT_TRUE(grown("k", refusing(200, 0), refusing(100, 0)).empty());
  EXPECT_TRUE(grown("k", refusing(200, 100), refusing(100, 60)).empty());
  EXPECT_TRUE(grown("k", refusing(200, 100), refusing(100, 10)).empty()) << "fewer";
  EXPECT_TRUE(grown("k", refusing(200, 200), refusing(100, 100)).empty());
}

Record record_of(int campaigns, int cases, int alarms) {
  Record record;
  for (int i = 0; i < campaigns; ++i)
    record.campaigns.push_back({{"kernel", "k"}, {"seed", std::to_string(i)}, {"cases", cases}, {"alarm", i < alarms}});
  return record;
}

TEST(FalseAlarms, AreTheClosedFormWhereNothingAlarmed) {
  const FalseAlarms found = false_alarms(record_of(50, 100, 0), 1000);
  EXPECT_EQ(found.cases, 5000);
  EXPECT_NEAR(found.per_case, 1 - std::pow(0.05, 1.0 / 5000), 1e-12);
  EXPECT_NEAR(found.per_gate, 1 - std::pow(0.05, 1000.0 / 5000), 1e-9);
}

TEST(FalseAlarms, RiseWithAlarms) {
  // One-sided 95% limits of a binomial with 20 trials: 3 successes, from Clopper and Pearson's tables.
  EXPECT_NEAR(false_alarms(record_of(20, 1, 3), 1).per_case, 0.3437, 5e-4);
  EXPECT_EQ(false_alarms(record_of(0, 0, 0), 1).per_gate, 1);
}

TEST(FalseAlarms, RestOnWhatWasRecordedSinceAnAlarmWasFixed) {
  Record record = record_of(50, 100, 0);
  record.campaigns[29]["alarm"] = true;
  EXPECT_GT(false_alarms(record, 1).per_case, false_alarms(record_of(50, 100, 0), 1).per_case);
  record.campaigns[29]["fixed"] = "what it was";
  FalseAlarms found = false_alarms(record, 1000);
  EXPECT_EQ(found.alarms, 1);
  EXPECT_EQ(found.fixed, 1);
  EXPECT_EQ(found.cases, 5000);
  EXPECT_EQ(found.counted_campaigns, 20);
  EXPECT_EQ(found.counted_cases, 2000);
  EXPECT_NEAR(found.per_case, 1 - std::pow(0.05, 1.0 / 2000), 1e-12);
  record.campaigns[3]["alarm"] = true;  // an alarm of an earlier campaign that was never fixed
  found = false_alarms(record, 1000);
  EXPECT_EQ(found.counted_alarms, 1);
  EXPECT_GT(found.per_case, 1 - std::pow(0.05, 1.0 / 2000));
  record.campaigns.resize(30);
  EXPECT_EQ(false_alarms(record, 1000).per_gate, 1) << "nothing is known of what was made of it";
}

TEST(FalseAlarms, CountACampaignOnce) {
  const json report{
      {"settings", {{"seed", "7"}}},
      {"kernels",
       json::array({{{"kernel", "a"}, {"status", "passed"}, {"obligations", json::array({{{"cases", 5}}})}},
                    {{"kernel", "b"}, {"status", "falsified"}, {"obligations", json::array({{{"cases", 2}}})}},
                    {{"kernel", "c"}, {"status", "unavailable"}, {"obligations", json::array({{{"cases", 0}}})}}})}};
  Record record;
  EXPECT_EQ(record.add(report, "r"), 2U);
  EXPECT_EQ(record.add(report, "r"), 0U);
  EXPECT_EQ(record_text(record),
            "{\"alarm\":false,\"cases\":5,\"kernel\":\"a\",\"seed\":\"7\"}\n{\"alarm\":true,\"cases\":2,\"kernel\":"
            "\"b\",\"seed\":\"7\"}\n");
  EXPECT_THROW(record.add(json::array(), "r"), InputError);
}

TEST(FalseAlarms, KeepTheOrderOfTheRecord) {
  Record record;
  for (const char* kernel : {"z", "a"})
    record.campaigns.push_back({{"kernel", kernel}, {"seed", "1"}, {"cases", 1}, {"alarm", false}});
  EXPECT_LT(record_text(record).find("\"z\""), record_text(record).find("\"a\""));
}

}  // namespace
}  // namespace assay::falsify
