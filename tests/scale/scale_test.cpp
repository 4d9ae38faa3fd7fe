// Shards, merging and resuming, with wrong kernels among the correct ones; the Python tests cover the command.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>

#include "cli/values.hpp"
#include "falsify/engine/checkpoint.hpp"
#include "falsify/engine/pool.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/merge.hpp"
#include "tests/engine/kill_child.hpp"
#include "tests/sample.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

/// Correct during one worker's span of cases, and wrong in a process that runs two spans.
void wrong_after_6000_calls(const Call& call, Device& device) {
  static int calls = 0;
  kernel("transpose/cpu/naive").run(call, device);
  const Tensor& y = call.tensors.back();
  if (++calls > 6000 && y.shape.size() > 0) *static_cast<float*>(y.data) += 1;
}

const KernelRegistration registration({.id = "mutant/cpu/transpose/wrong_after_6000_calls",
                                       .summary = "transposes",
                                       .fault = "wrong after 6000 calls of one process",
                                       .run = &wrong_after_6000_calls});

/// Returns correct kernels, and kernels with faults in values, in single bits, and in state kept between calls.
std::vector<const Kernel*> chosen() {
  std::vector<const Kernel*> list;
  for (const char* id :
       {"matmul/cpu/naive", "mutant/adversarial/matmul/wrong_after_100_calls", "mutant/cpu/matmul/dropped_last_k",
        "mutant/cpu/transpose/nan_replaced", "mutant/cpu/transpose/zero_sign_lost", "transpose/cpu/naive"})
    list.push_back(&kernel(id));
  return list;
}

/// Removes fields that depend on time and on the machine's load.
json timeless(json document) {
  if (document.is_object()) document.erase("seconds");
  if (document.is_structured())
    for (json& value : document) value = timeless(value);
  return document;
}

json whole() {
  json ids = json::array();
  for (const Kernel* k : chosen()) ids.push_back(k->id);
  return {{"program", std::string(64, 'a')}, {"kernels", ids}};
}

json report_of(const std::vector<const Kernel*>& kernels, const CampaignOptions& options, const std::string& shard,
               Journal* journal = nullptr) {
  const json settings{{"seed", "1"}, {"cases", options.cases}, {"obligation", options.only}, {"shard", shard}};
  json report = make_report(run_pool(kernels, options, 2, {}, journal), settings, 1);
  if (!shard.empty()) report["whole"] = whole();
  return report;
}

CampaignOptions few() {
  CampaignOptions options;
  options.cases = 20;
  options.shrink_budget = std::chrono::minutes(10);  // shrinking ends before this under any load
  return options;
}

TEST(Pool, AJudgeThatDiesTakesNoOtherResultsWithIt) {
  const std::vector<const Kernel*> both{&kernel("softmax/cpu/naive"), &kernel("transpose/cpu/naive")};
  const std::future<void> killed = kill_first_child(SIGUSR1);  // sanitizers handle fault signals
  const std::vector<json> results = run_pool(both, few(), 1, {});
  killed.wait();
  for (const json& result : results)
    for (const json& o : result["obligations"]) {
      EXPECT_EQ(o["verdict"], result["kernel"] == both[0]->id ? "mistrusted" : "passed") << o;
      EXPECT_EQ(o.dump().find("wait status 0xa") != std::string::npos, result["kernel"] == both[0]->id) << o;
    }
}

/// A signal ends tasks at once: they have no state to save.
TEST(Pool, TasksDoNotCatchSignals) {
  const CatchSignals caught;
  const Task task{.name = "asks", .run = [] {
                    json left = json::array();
                    for (const int signal : {SIGINT, SIGTERM}) {
                      struct sigaction now {};
                      sigaction(signal, nullptr, &now);
                      left.push_back(now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN);
                    }
                    return left;
                  }};
  const std::vector<json> documents = run_tasks(std::span(&task, 1), 1, [](const json*) {});
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(documents[0], json::array({true, true}));
}

TEST(Pool, ProgressEndsWithEveryKernelFinished) {
  const std::vector<const Kernel*> both{&kernel("transpose/cpu/naive"), &kernel("mutant/cpu/transpose/zero_sign_lost")};
  int finished = 0;
  double work = 0;
  run_pool(both, few(), 2, [&](const PoolStatus& status) {
    EXPECT_GE(status.finished, finished);
    EXPECT_GE(status.work_done, status.finished);
    EXPECT_LE(status.work_done, status.kernels);
    finished = status.finished, work = status.work_done;
  });
  EXPECT_EQ(finished, 2);
  EXPECT_EQ(work, 2);
}

/// Interrupted once, with one kernel finished and one under way.
TEST(Journal, OfAnInterruptedRunIsTakenUp) {
  CampaignOptions options = few();
  options.cases = 300;  // per obligation, of eight: one span, and part of another
  const std::vector<const Kernel*> kernels{&kernel("mutant/cpu/transpose/zero_sign_lost"),
                                           &kernel("transpose/cpu/naive")};
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("assay-short-journal-" + std::to_string(getpid()));
  std::filesystem::remove(file);
  json campaign = whole();
  campaign["kernels"] = json::array({kernels[0]->id, kernels[1]->id});
  const auto begin = std::chrono::steady_clock::now();
  const auto report = [&](Journal* journal) {
    return timeless(make_report(run_pool(kernels, options, 1, {}, journal), json::object(), 1));
  };
  const json expected = report(nullptr);
  std::vector<std::string> lines;
  {
    Journal journal(file, campaign);
    EXPECT_EQ(report(&journal), expected);
  }
  {
    std::ifstream text(file);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
  }
  ASSERT_GE(lines.size(), 4U) << "a head, a checkpoint and two results";
  {
    std::ofstream out(file);
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) out << lines[i] << "\n";
  }
  {
    Journal journal(file, campaign);
    EXPECT_GT(journal.spent().count(), 0);
    EXPECT_LT(journal.spent(), std::chrono::steady_clock::now() - begin);
    EXPECT_EQ(report(&journal), expected);
  }
  std::filesystem::remove(file);
}

TEST(Shards, TakeAsLongAsTheSlowest) {
  CampaignOptions one = few();
  one.cases = 1;
  std::vector<ShardReport> parts;
  for (const char* const shard : {"1/2", "2/2"}) {
    parts.push_back({shard, report_of(cli::shard_of(chosen(), cli::parse_shard(shard)), one, shard)});
    parts.back().report["seconds"] = 0.25 * static_cast<double>(parts.size());
  }
  EXPECT_EQ(merge_reports(parts)["seconds"], 0.5);
}

TEST(Shards, TogetherFindWhatTheWholeFinds) {
  const json expected = timeless(report_of(chosen(), few(), ""));
  EXPECT_GE(expected["totals"]["falsified"], 3);
  for (const int count : {1, 3, 7}) {
    std::vector<ShardReport> parts;
    for (int i = 1; i <= count; ++i) {
      const std::string shard = std::to_string(i) + "/" + std::to_string(count);
      parts.push_back({shard, report_of(cli::shard_of(chosen(), cli::parse_shard(shard)), few(), shard)});
    }
    EXPECT_EQ(timeless(merge_reports(parts)), expected) << count;
  }
}

/// Reopens the journal after each line, the worst case of any number of interruptions.
TEST(Journal, ResumedAfterAnyLineGivesTheSameReport) {
  CampaignOptions options = few();
  options.cases = 700;  // per obligation, of eight: two spans, and part of a third
  const std::vector<const Kernel*> kernels{&kernel("mutant/cpu/transpose/zero_sign_lost"),
                                           &kernel("transpose/cpu/naive"),
                                           &kernel("mutant/cpu/transpose/wrong_after_6000_calls")};
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("assay-journal-" + std::to_string(getpid())),
                              cut = file.string() + ".cut";
  std::filesystem::remove(file);
  json campaign = whole(), expected;
  campaign["kernels"] = json::array();
  for (const Kernel* k : kernels) campaign["kernels"].push_back(k->id);
  {
    Journal journal(file, campaign);
    expected = timeless(report_of(kernels, options, "", &journal));
  }
  EXPECT_EQ(timeless(report_of(kernels, options, "")), expected) << "with and without a journal";
  std::vector<std::string> lines;
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_GE(lines.size(), 2 + 2 * kernels.size())
      << "a result each, and two checkpoints of the kernels that are tried to the end";
  const bool each = tries_all();  // otherwise only after half of the lines
  for (std::size_t kept = each ? 1 : lines.size() / 2; kept <= lines.size(); kept += each ? 1 : lines.size()) {
    {
      std::ofstream out(cut);
      for (std::size_t i = 0; i < kept; ++i) out << lines[i] << "\n";
    }
    Journal journal(cut, campaign);
    EXPECT_EQ(timeless(report_of(kernels, options, "", &journal)), expected) << "after " << kept << " lines";
  }
  std::filesystem::remove(file);
  std::filesystem::remove(cut);
}

TEST(Checkpoint, ComesBackFromJsonAsItWas) {
  const OpDescriptor& op = operation("matmul");
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Checkpoint c{.rounds = 100, .after = 50, .total = 1234, .hangs = 1, .so_far = {}, .ratios = {}};
  c.so_far.device = "a device";
  c.so_far.seconds = 1.0 / 3;
  c.so_far.clause_counts = {1, std::numeric_limits<std::uint64_t>::max()};
  for (const Obligation& obligation : obligations(op.name)) {
    const double x = 0.1 * static_cast<double>(c.ratios.size());
    c.so_far.obligations.push_back({.info = obligation.info,
                                    .verdict = Verdict::passed,
                                    .reason = "why",
                                    .cases = 3,
                                    .refused = 1,
                                    .elements = std::int64_t{1} << 40,
                                    .nonzero = 7,
                                    .evidence = x,
                                    .compared = 2,
                                    .worst = x,
                                    .seconds = 1e-9,
                                    .counterexample = {}});
    c.ratios.push_back({x, 1 / 3.0, 5e-324});
  }
  Case wrong{.dims = {2, 1, 2},
             .params = {},
             .strategy = Strategy::huge,
             .layout = Layout::mixed,
             .placement = Placement::page_end,
             .seed = std::numeric_limits<std::uint64_t>::max(),
             .prelude = {3, 3, 3},
             .values = {{1.5F, -0.0F}, {std::nanf("7"), 0x1p-149F}, {}}};
  Finding finding{Finding::Kind::other_class,
                  "got inf",
                  "c",
                  {1, 0},
                  kInf,
                  std::nan(""),
                  0.1,
                  ErrorMap{"c", 2, 2, 1, 1, true, {0.1, kInf, -0.0, 1e300}}};
  ObligationResult& o = c.so_far.obligations[2];
  o.verdict = Verdict::falsified;
  o.worst = kInf;
  o.counterexample = Counterexample{.first = wrong,
                                    .smallest = wrong,
                                    .finding = finding,
                                    .first_errors = finding.errors,
                                    .reproduction = "in a fresh process",
                                    .number = 7,
                                    .shrink_tried = 8,
                                    .shrink_seconds = 0.1,
                                    .shrink_complete = false};
  const json text = json::parse(to_json(op, c).dump());
  const Checkpoint back = checkpoint_from_json(op, {}, text, "here");
  EXPECT_EQ(to_json(op, back), to_json(op, c));
  EXPECT_EQ(back.ratios, c.ratios);
  EXPECT_EQ(back.so_far.clause_counts, c.so_far.clause_counts);
  const Counterexample& x = *back.so_far.obligations[2].counterexample;
  EXPECT_EQ(x.first.seed, wrong.seed);
  EXPECT_EQ(x.first.prelude, wrong.prelude);
  EXPECT_EQ(x.finding.got, kInf);
  EXPECT_TRUE(std::isnan(x.finding.want));
  EXPECT_EQ(x.finding.errors->cells, finding.errors->cells);
  KernelResult before = c.so_far, after = back.so_far;
  before.kernel = after.kernel = &kernel("matmul/cpu/naive");
  EXPECT_EQ(to_json(op, after), to_json(op, before)) << "and gives the same report";
}

TEST(Checkpoint, OfOneObligationHoldsThatAlone) {
  const OpDescriptor& op = operation("matmul");
  CampaignOptions options;
  for (const Obligation& obligation : obligations(op.name)) {
    options.only = obligation.info->id;
    Checkpoint c{.rounds = 100, .after = 50, .total = 100, .hangs = 0, .so_far = {}, .ratios = {{0.5}}};
    c.so_far.obligations.push_back({.info = obligation.info,
                                    .verdict = Verdict::passed,
                                    .reason = "",
                                    .cases = 3,
                                    .refused = 0,
                                    .elements = 1,
                                    .nonzero = 1,
                                    .evidence = 1,
                                    .compared = 1,
                                    .worst = 0.5,
                                    .seconds = 1,
                                    .counterexample = {}});
    const Checkpoint back = checkpoint_from_json(op, options, json::parse(to_json(op, c).dump()), "here");
    ASSERT_EQ(back.so_far.obligations.size(), 1U);
    EXPECT_EQ(back.so_far.obligations[0].info, obligation.info);
  }
}

/// Ratios are written once: each checkpoint holds only the ratios since the previous one.
TEST(Checkpoint, HoldsWhatIsNew) {
  CampaignOptions options = few();
  options.cases = 2 * kCasesPerWorker + 100;
  options.only = obligations("transpose")[0].info->id;
  std::size_t ratios = 0;
  int checkpoints = 0;
  const auto save = [&](const Checkpoint& c) {
    for (const std::vector<double>& some : c.ratios) ratios += some.size();
    ++checkpoints;
  };
  run_campaign(operation("transpose"), kernel("transpose/cpu/naive"), options, {}, {.from = {}, .save = save});
  EXPECT_EQ(checkpoints, 2);
  EXPECT_GT(ratios, 0U);
  EXPECT_LE(ratios, static_cast<std::size_t>(2 * kCasesPerWorker));
}

TEST(Checkpoint, IsThatOfItsCampaign) {
  const OpDescriptor& op = operation("matmul");
  const json j = json::parse(
      R"({"rounds":100,"after":0,"total":1,"hangs":0,"device":"","seconds":0,"clauses":[],"obligations":[]})");
  EXPECT_THROW(checkpoint_from_json(op, {}, j, "here"), InputError);
  json verdict = j;
  CampaignOptions one;
  one.only = std::string(obligations(op.name)[0].info->id);
  verdict["obligations"].push_back({{"id", one.only}, {"verdict", "splendid"}});
  EXPECT_THROW(checkpoint_from_json(op, one, verdict, "here"), InputError);
}

}  // namespace
}  // namespace assay::falsify
