// The command on mutants of its own: exit codes, and screening before a GPU run.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/automatic.hpp"
#include "cli/commands.hpp"
#include "falsify/mutation/study/report.hpp"
#include "tests/automatic/sources.hpp"

namespace assay::falsify {
namespace {

RunFunction planted;
bool on_processor = true, ends_by_itself = false;
std::size_t mutants = 3;

Survey planted_survey(std::span<const Kernel* const>) {
  Survey survey{"a device", on_processor, {}, ends_by_itself};
  survey.sets.push_back(std::make_unique<ManyMutants>(mutants, planted));
  return survey;
}
const MutantSourceRegistration registration(Backend::cpu, planted_survey);

cli::AutomaticOptions options() {
  cli::AutomaticOptions o;
  o.backend = "cpu";
  o.quiet = true;
  o.study.cases = 4;
  o.study.attack_cases = 6;
  o.study.differing = 6;
  o.study.limit = std::chrono::milliseconds(500);
  return o;
}

/// A survivor costs seconds: run a single mutant.
class OneMutant {
 public:
  OneMutant() { mutants = 1; }
  ~OneMutant() { mutants = 3; }
  OneMutant(const OneMutant&) = delete;
  OneMutant& operator=(const OneMutant&) = delete;
};

int exit_code(RunFunction run, const cli::AutomaticOptions& o = options()) {
  planted = std::move(run);
  struct Capture {
    Capture() { testing::internal::CaptureStdout(); }
    ~Capture() { testing::internal::GetCapturedStdout(); }
  } const capture;
  return cli::run_automatic(o);
}

TEST(Command, AHoleIsAnErrorAndNothingElseIs) {
  EXPECT_EQ(exit_code(run_negated), cli::kNothingFalsified);
  EXPECT_EQ(exit_code(run_right), cli::kNothingFalsified);
  const OneMutant scope;
  EXPECT_EQ(exit_code(run_last_bit), cli::kFalsified);
}

TEST(Command, ASignalKeepsWhatWasJudged) {
  cli::AutomaticOptions o = options();
  const auto folder = std::filesystem::temp_directory_path() / "assay-automatic-interrupted";
  std::filesystem::remove_all(folder);
  o.report = folder;
  o.jobs = 1;
  std::thread interrupts([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(900));
    kill(getpid(), SIGTERM);
  });
  testing::internal::CaptureStderr();
  const int code = exit_code(
      [](const Call& call, Device& device) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        run_last_bit(call, device);
      },
      o);
  const std::string said = testing::internal::GetCapturedStderr();
  interrupts.join();
  EXPECT_EQ(code, 128 + SIGTERM);
  EXPECT_NE(said.find("interrupted by SIGTERM after "), std::string::npos) << said;
  EXPECT_NE(said.find(" of 3 mutants"), std::string::npos) << said;
  std::ifstream json(folder / "automatic.json");
  const auto report = nlohmann::json::parse(json);
  EXPECT_EQ(report["interrupted"], "SIGTERM");
  EXPECT_EQ(report["mutants"].size(), report["totals"]["mutants"]);
  EXPECT_LT(report["totals"]["mutants"], 3);
}

TEST(Command, ReportsAreWritten) {
  cli::AutomaticOptions o = options();
  const auto folder = std::filesystem::temp_directory_path() / "assay-automatic-test";
  std::filesystem::remove_all(folder);
  o.report = folder;
  const OneMutant scope;
  EXPECT_EQ(exit_code(run_last_bit, o), cli::kFalsified);
  std::ifstream json(folder / "automatic.json"), xml(folder / "junit.xml");
  EXPECT_EQ(nlohmann::json::parse(json)["totals"]["survivor"], 1);
  const std::string text((std::istreambuf_iterator<char>(xml)), {});
  EXPECT_NE(text.find("failures=\"1\""), std::string::npos) << text;
  EXPECT_GT(std::filesystem::file_size(folder / "mutants.html"), 2000U);
}

TEST(Command, AGpuRunsScreenedMutantsAlone) {
  cli::AutomaticOptions o = options();
  const auto folder = std::filesystem::temp_directory_path() / "assay-automatic-screen";
  o.report = folder;
  exit_code(run_forever, o);  // on the CPU: no call ends
  o.report.clear();
  on_processor = false;
  EXPECT_THROW(exit_code(run_right, o), InputError);
  o.screened = folder / "automatic.json";
  planted = run_last_bit;  // would survive if it ran
  EXPECT_EQ(exit_code(run_last_bit, o), cli::kNothingFalsified);
  o.screened.clear();
  ends_by_itself = true;
  const OneMutant scope;
  EXPECT_EQ(exit_code(run_last_bit, o), cli::kFalsified);
  ends_by_itself = false;
  on_processor = true;
}

TEST(Command, ABackEndWithoutASourceAndAKernelThatIsNotThereAreWrongUse) {
  cli::AutomaticOptions o = options();
  o.backend = "cuda-host";
  EXPECT_THROW(exit_code(run_right, o), InputError);
  o = options();
  o.kernel = "silu/cpu/none";
  EXPECT_THROW(exit_code(run_right, o), InputError);
  o = options();
  o.mutant = "none";
  EXPECT_THROW(exit_code(run_right, o), InputError);
  o.mutant = "1";
  EXPECT_EQ(exit_code(run_last_bit, o), cli::kFalsified);
}

}  // namespace
}  // namespace assay::falsify
