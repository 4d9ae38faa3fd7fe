// Accepted survivors: valid entries, and errors of the list.
#include "falsify/mutation/study/accepted.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/errors.hpp"
#include "tests/automatic/sources.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

Survey three_mutants() {
  Survey survey{"a device", true, {}};
  survey.sets.push_back(std::make_unique<ManyMutants>(3, run_right));
  return survey;
}
std::vector<json> result(const char* status) {
  return {{{"kernel", right_kernel().id}, {"hash", "1"}, {"status", status}, {"by", "FALSIFY-X-001"}}};
}

TEST(Accepted, ASurvivorOfTheListIsAcceptedAndNothingElseIs) {
  auto results = result("survivor");
  accept(results, {{"1", "silu/cpu/*", "rounding"}});
  EXPECT_EQ(results[0]["status"], "accepted");
  EXPECT_EQ(results[0]["why"], "rounding");
  for (const auto& [pattern, status] :
       {std::pair("silu/@(cpu|cuda-host)/*", "accepted"), std::pair("silu/@(cuda|cuda-host)/*", "survivor")}) {
    results = result("survivor");
    accept(results, {{"1", pattern, "rounding"}});
    EXPECT_EQ(results[0]["status"], status) << pattern;
  }
  results = result("survivor");
  accept(results, {{"2", "silu/cpu/*", "rounding"}});
  EXPECT_EQ(results[0]["status"], "survivor");
  results = result("equivalent");
  accept(results, {{"1", "silu/cpu/*", "rounding"}});
  EXPECT_EQ(results[0]["status"], "equivalent");
}

TEST(Accepted, AnEntryThatIsNotNeededIsAnError) {
  EXPECT_THROW(expect_needed(result("killed"), {{"1", "silu/cpu/naive", "rounding"}}, "file"), InputError);
  EXPECT_NO_THROW(expect_needed(result("killed"), {{"2", "silu/cpu/naive", "rounding"}}, "file"));
  EXPECT_NO_THROW(expect_needed(result("equivalent"), {{"1", "silu/cpu/naive", "rounding"}}, "file"));
  auto two = result("killed");
  two.push_back(result("accepted")[0]);
  EXPECT_NO_THROW(expect_needed(two, {{"1", "silu/cpu/naive", "rounding"}}, "file"));
}

TEST(Accepted, AnEntryWithoutItsMutantIsAnError) {
  EXPECT_THROW(expect_mutants({{"77", "silu/cpu/naive", "rounding"}}, three_mutants(), "file"), InputError);
  EXPECT_NO_THROW(expect_mutants({{"1", "silu/cpu/naive", "rounding"}}, three_mutants(), "file"));
  EXPECT_NO_THROW(expect_mutants({{"77", "silu/vulkan/naive", "rounding"}}, three_mutants(), "file"));
}

/// Making a mutant assembles PTX: thousands of mutants would take hours.
TEST(Accepted, ItIsLookedForByItsHash) {
  Survey survey{"a device", true, {}};
  survey.sets.push_back(std::make_unique<CostlyMutants>(42));
  EXPECT_NO_THROW(expect_mutants({{"42", "silu/cpu/naive", "rounding"}}, survey, "file"));
}

TEST(Accepted, AFileThatIsNoListIsAnError) {
  const auto file = std::filesystem::temp_directory_path() / "assay-accepted-test.json";
  const auto read = [&](const char* text) {
    std::ofstream(file) << text;
    return read_accepted(file);
  };
  EXPECT_EQ(read(R"([{"hash": "1", "kernel": "k", "reason": "r"}] // a comment)").size(), 1);
  EXPECT_THROW(read("{}"), InputError);
  EXPECT_THROW(read(R"([{"hash": "1", "kernel": "k"}])"), InputError);
  EXPECT_THROW(read(R"([{"hash": "1", "kernel": "k", "reason": ""}])"), InputError);
  EXPECT_THROW(read(R"([{"hash": "1", "kernel": "k", "reason": "r"}, {"hash": "1", "kernel": "k", "reason": "s"}])"),
               InputError);
}

}  // namespace
}  // namespace assay::falsify
