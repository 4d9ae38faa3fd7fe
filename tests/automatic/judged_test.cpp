// Judged holes: what is taken, and what an entry must not be.
#include "falsify/automatic/judged.hpp"

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

TEST(Judged, AHoleOfTheListIsJudgedAndNothingElseIs) {
  auto results = result("hole");
  judge(results, {{"1", "silu/cpu/*", "rounding"}}, three_mutants(), "file");
  EXPECT_EQ(results[0]["status"], "judged");
  EXPECT_EQ(results[0]["why"], "rounding");
  results = result("hole");
  judge(results, {{"2", "silu/cpu/*", "rounding"}}, three_mutants(), "file");
  EXPECT_EQ(results[0]["status"], "hole");
  results = result("equivalent");
  judge(results, {{"1", "silu/cpu/*", "rounding"}}, three_mutants(), "file");
  EXPECT_EQ(results[0]["status"], "equivalent");
}

TEST(Judged, AnEntryThatIsNotNeededIsAnError) {
  auto results = result("killed");
  EXPECT_THROW(judge(results, {{"1", "silu/cpu/naive", "rounding"}}, three_mutants(), "file"), InputError);
  EXPECT_THROW(judge(results, {{"77", "silu/cpu/naive", "rounding"}}, three_mutants(), "file"), InputError);
  EXPECT_NO_THROW(judge(results, {{"77", "silu/vulkan/naive", "rounding"}}, three_mutants(), "file"));
}

TEST(Judged, AFileThatIsNoListIsAnError) {
  const auto file = std::filesystem::temp_directory_path() / "assay-judged-test.json";
  const auto read = [&](const char* text) {
    std::ofstream(file) << text;
    return read_judgements(file);
  };
  EXPECT_EQ(read(R"([{"hash": "1", "kernel": "k", "reason": "r"}] // a comment)").size(), 1);
  EXPECT_THROW(read("{}"), InputError);
  EXPECT_THROW(read(R"([{"hash": "1", "kernel": "k"}])"), InputError);
  EXPECT_THROW(read(R"([{"hash": "1", "kernel": "k", "reason": ""}])"), InputError);
  EXPECT_THROW(read(R"([{"hash": "1", "kernel": "k", "reason": "r"}, {"hash": "1", "kernel": "k", "reason": "s"}])"), InputError);
}

}  // namespace
}  // namespace assay::falsify
