// Whatever a kernel does to its process is a verdict, and the next call works.
#include "falsify/engine/worker.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "falsify/engine/campaign.hpp"
#include "falsify/engine/interrupt.hpp"
#include "falsify/engine/trial.hpp"
#include "tests/engine/absent.hpp"

namespace assay::falsify {
namespace {

using Status = Reply::Status;

Kernel with(void (*run)(const Call&, Device&)) {
  Kernel k = kernel("matmul/cpu/naive");
  k.id = "matmul/cpu/test";
  k.run = run;
  return k;
}

void right(const Call& call, Device& device) { kernel("matmul/cpu/naive").run(call, device); }
void aborts(const Call&, Device&) { std::abort(); }
void leaves(const Call&, Device&) { _exit(0); }
void sleeps(const Call&, Device&) { for (;;) pause(); }
void throws(const Call&, Device&) { throw std::runtime_error("kernel says no"); }
void recurses(const Call& call, Device& device) {
  volatile char frame[1 << 16];
  frame[0] = static_cast<char>(call.dims.size());
  if (frame[0] != 0) recurses(call, device);  // always: a matmul has dims
  frame[1] = frame[0];
}
void closes_everything(const Call&, Device&) { for (int fd = 0; fd < 256; ++fd) close(fd); }

/// 400 ms of work.
void works(const Call& call, Device& device) {
  timespec used;
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  while (used.tv_sec == 0 && used.tv_nsec < 400'000'000);
  right(call, device);
}

/// Processes that keep every core busy, several each.
class Busy {
 public:
  Busy() {
    for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i) {
      const pid_t child = fork();
      if (child == 0)
        for (;;) {
        }
      children_.push_back(child);
    }
  }
  ~Busy() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> children_;
};

class WorkerTest : public testing::Test {
 protected:
  Reply run(const Kernel& k, Placement placement = Placement::sentinels) {
    Case c;
    c.dims = {2, 3, 4};
    c.placement = placement;
    const Problem problem = make_problem(op_, c, {});
    const Stage stage(worker_.arena(), worker_.first_byte(), problem, c, Poison::finite);
    return worker_.run(op_, k, problem.dims, problem.params, stage.tensors());
  }
  const OpDescriptor& op_ = operation("matmul");
  Worker worker_{std::chrono::milliseconds(1500), std::size_t{1} << 26};
};

TEST_F(WorkerTest, EveryEndIsAnAnswerAndTheNextCallWorks) {
  const std::pair<Kernel, Status> ends[] = {
      {with(aborts), Status::crashed}, {with(leaves), Status::crashed}, {with(sleeps), Status::hung},
      {with(throws), Status::failed},  {with(recurses), Status::crashed}, {with(closes_everything), Status::crashed}};
  const Kernel good = with(right);
  for (const auto& [kernel, status] : ends) {
    EXPECT_EQ(run(kernel).status, status);
    EXPECT_EQ(run(good).status, Status::done);
  }
}

TEST_F(WorkerTest, AnEndIsToldAsItWas) {
  const pid_t engine = getpid();
  for (const Kernel& k : {with(leaves), with(closes_everything)}) {
    const Reply reply = run(k);
    if (getpid() != engine) _exit(3);  // the kernel's process, which has come back
    EXPECT_EQ(reply.detail, "the process exited with status 0 inside the call");
  }
}

/// A wait that a signal interrupted goes on to its limit, and no longer.
TEST_F(WorkerTest, AnInterruptionProlongsNoWait) {
  struct sigaction noted {}, before {};
  noted.sa_handler = [](int) {};
  sigaction(SIGALRM, &noted, &before);
  const itimerval once{{0, 0}, {0, 100'000}};
  const auto begin = std::chrono::steady_clock::now();
  setitimer(ITIMER_REAL, &once, nullptr);
  EXPECT_EQ(run(with(sleeps)).status, Status::hung);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
  sigaction(SIGALRM, &before, nullptr);
}

/// The process that a kernel leaves behind in a session of its own, which notes its number here.
std::filesystem::path note_of_process(pid_t engine) { return std::filesystem::temp_directory_path() / fmt::format("assay-left-{}", engine); }

TEST_F(WorkerTest, NoProcessOutlivesTheKernelThatStartedIt) {
  const pid_t engine = getpid();
  const Kernel leaves_one = with([](const Call&, Device&) {
    const std::filesystem::path note = note_of_process(getppid());
    if (fork() == 0) {
      setsid();
      std::ofstream(note.string() + ".new") << getpid();
      std::filesystem::rename(note.string() + ".new", note);
      for (;;) pause();
    }
    while (!std::filesystem::exists(note)) usleep(1000);
    std::abort();
  });
  const std::filesystem::path note = note_of_process(engine);
  std::filesystem::remove(note);
  EXPECT_EQ(run(leaves_one).status, Status::crashed);
  pid_t left = 0;
  std::ifstream(note) >> left;
  std::filesystem::remove(note);
  ASSERT_GT(left, 0);
  const bool gone = kill(left, 0) == -1 && errno == ESRCH;
  EXPECT_TRUE(gone);
  if (!gone) kill(left, SIGKILL);
}

/// No signal reaches another process.
TEST_F(WorkerTest, AKernelReachesNoOtherProcess) {
  const Kernel signals = with([](const Call& call, Device& device) {
    if (kill(getppid(), 0) != -1 || errno != EPERM) throw std::runtime_error("the engine can be signalled");
    if (kill(getpid(), 0) != 0) throw std::runtime_error("its own process cannot be signalled");
    if (syscall(SYS_tkill, getppid(), 0) != -1 || errno != EPERM) throw std::runtime_error("tkill is allowed");
    right(call, device);
  });
  const Reply reply = run(signals);
  EXPECT_EQ(reply.status, Status::done) << reply.detail;
}

TEST_F(WorkerTest, AWriteOnePastTheEndMeetsTheFence) {
  const Kernel overruns = with([](const Call& call, Device&) {
    const View<float> c = call.tensors[2].as<float>();
    const_cast<volatile float*>(c.data())[c.extent()] = 1;
  });
  const Kernel underruns = with([](const Call& call, Device&) {
    const_cast<volatile float*>(call.tensors[0].as<float>().data())[-1] = 1;
  });
  EXPECT_EQ(run(overruns, Placement::page_end).status, Status::crashed);
  EXPECT_EQ(run(underruns, Placement::page_start).status, Status::crashed);
  // What lies farther away stays fenced from one call of a worker to the next.
  EXPECT_EQ(run(with(right), Placement::page_end).status, Status::done);
  EXPECT_EQ(run(overruns, Placement::page_end).status, Status::crashed);
}

TEST_F(WorkerTest, ARefusalCarriesTheKernelsReason) {
  Kernel k = with(right);
  k.refuse = [](const Call&) -> std::optional<std::string> { return "odd sizes only"; };
  const Reply reply = run(k);
  EXPECT_EQ(reply.status, Status::refused);
  EXPECT_EQ(reply.detail, "odd sizes only");
}

TEST_F(WorkerTest, ClausesAreCountedAcrossProcesses) {
  const Kernel good = with(right), bad = with(aborts);
  run(good);
  const std::vector<std::uint64_t> before = worker_.clause_counts(op_);
  run(bad);
  run(good);
  run(good);
  const std::vector<std::uint64_t> after = worker_.clause_counts(op_);
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_GE(after[i], before[i] + 2) << op_.clauses[i].id;
}

TEST_F(WorkerTest, ABusyMachineMakesNoCallHang) {
  const Kernel good = with(right), hard_working = with(works), asleep = with(sleeps);
  ASSERT_EQ(run(good).status, Status::done);
  const Busy busy;
  EXPECT_EQ(run(hard_working).status, Status::done);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run(asleep).status, Status::hung);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST_F(WorkerTest, ThreadsInTurnHaveMoreTime) {
  Worker hasty(std::chrono::milliseconds(200), std::size_t{1} << 26);
  Case c;
  c.dims = {2, 3, 4};
  const Problem problem = make_problem(op_, c, {});
  Kernel at_work = with(works), in_turn = at_work, asleep = with(sleeps);
  in_turn.backend = asleep.backend = Backend::cuda_host;
  const auto status = [&](const Kernel& k) {
    const Stage stage(hasty.arena(), hasty.first_byte(), problem, c, Poison::finite);
    return hasty.run(op_, k, problem.dims, problem.params, stage.tensors()).status;
  };
  EXPECT_EQ(status(at_work), Status::hung);
  EXPECT_EQ(status(in_turn), Status::done);
  EXPECT_EQ(status(asleep), Status::hung);
}

TEST_F(WorkerTest, AMissingDeviceIsUnavailableNotAPass) {
  Kernel k = with(right);
  k.backend = absent_backend();
  EXPECT_EQ(run(k).status, Status::unavailable);
  CampaignOptions options;
  options.cases = 1;
  EXPECT_TRUE(run_campaign(op_, k, options).unavailable());
}

TEST(Campaign, EndsInItsTime) {
  using Clock = std::chrono::steady_clock;
  CampaignOptions options;
  options.cases = 20'000;  // seconds, were the time not kept
  options.time = std::chrono::milliseconds(300);
  options.largest = 8;
  std::optional<Clock::time_point> end;  // a little after the campaign's own
  std::int64_t late = 0, last = 0;
  const auto count = [&](const Kernel&, std::int64_t done, std::int64_t planned) {
    if (!end) end = Clock::now() + options.time;
    constexpr int kRoundsForEvidence = 20;  // run on, however slow the machine
    late += Clock::now() > *end && done > kRoundsForEvidence * (planned / options.cases);
    last = planned - done;
  };
  run_campaign(operation("transpose"), kernel("transpose/cpu/naive"), options, count);
  EXPECT_LE(late, 1);
  EXPECT_GT(last, 0);
}

TEST(Campaign, RunsAllItsCasesWhereTimeIsLeft) {
  CampaignOptions options;
  options.cases = 5;
  options.time = std::chrono::hours(1);
  options.largest = 8;
  std::int64_t left = -1;
  run_campaign(operation("transpose"), kernel("transpose/cpu/naive"), options,
               [&](const Kernel&, std::int64_t done, std::int64_t planned) { left = planned - done; });
  EXPECT_EQ(left, 0);
}

TEST(Campaign, ProgressCountsUpToWhatIsPlanned) {
  CampaignOptions options;
  options.cases = 5;
  options.largest = 8;
  std::int64_t last = 0, of = 0;
  const auto count = [&](const Kernel&, std::int64_t done, std::int64_t planned) {
    EXPECT_EQ(done, last + 1);
    last = done;
    of = planned;
  };
  run_campaign(operation("transpose"), kernel("transpose/cpu/naive"), options, count);
  EXPECT_GT(last, 0);
  EXPECT_EQ(last, of);
}

TEST(Signals, EndARunOnlyWhileTheyAreCaught) {
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);  // a shell's background job begins with SIGINT ignored
  EXPECT_FALSE(ends_run(SIGTERM));
  {
    const CatchSignals caught;
    EXPECT_TRUE(ends_run(SIGTERM));
    EXPECT_TRUE(ends_run(SIGINT));
    EXPECT_FALSE(ends_run(SIGSEGV));
    EXPECT_FALSE(ends_run(0));
  }
  EXPECT_FALSE(ends_run(SIGTERM));
  const CatchSignals caught;
  restore_signals();
  EXPECT_FALSE(ends_run(SIGTERM));
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_DFL) << signal;
  }
}

TEST(Campaign, AKernelThatRefusesEverythingHasNotPassed) {
  Kernel k = with(right);
  k.refuse = [](const Call&) -> std::optional<std::string> { return "never"; };
  CampaignOptions options;
  options.cases = 3;
  const KernelResult result = run_campaign(operation("matmul"), k, options);
  EXPECT_FALSE(result.clean());
  for (const ObligationResult& o : result.obligations)
    EXPECT_TRUE(o.verdict == Verdict::refused || o.verdict == Verdict::not_applicable) << o.info->id;
}

/// A few cases of exact inputs alone, chosen by seed so that one-hot factors leave most products zero; 0: no seed does.
std::uint64_t seed_of_mostly_zeros(CampaignOptions options) {
  for (options.seed = 1; options.seed < 500; ++options.seed) {
    const ObligationResult o = run_campaign(operation("matmul"), kernel("matmul/cpu/naive"), options).obligations.front();
    if (o.evidence * 4 < o.compared || o.elements == 0) return options.seed;
  }
  return 0;
}

TEST(Campaign, ComparisonsOfNothingOrOfZerosAreMistrusted) {
  CampaignOptions options;
  options.cases = 1;
  options.only = "FALSIFY-MM-003";
  options.seed = seed_of_mostly_zeros(options);
  ASSERT_NE(options.seed, 0) << "no seed drew a case of mostly zeros";
  const KernelResult result = run_campaign(operation("matmul"), kernel("matmul/cpu/naive"), options);
  EXPECT_EQ(result.obligations.front().verdict, Verdict::mistrusted);
}

TEST(Campaign, TimeEndsItOnlyWhenThereIsEvidence) {
  CampaignOptions options;
  options.cases = 1;
  options.only = "FALSIFY-MM-003";
  options.seed = seed_of_mostly_zeros(options);
  ASSERT_NE(options.seed, 0) << "no seed drew a case of mostly zeros";
  options.cases = 100'000;
  options.time = std::chrono::milliseconds(1);
  Kernel slow = kernel("matmul/cpu/naive");
  slow.run = [run = slow.run](const Call& call, Device& device) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    run(call, device);
  };
  const KernelResult result = run_campaign(operation("matmul"), slow, options);
  const ObligationResult& o = result.obligations.front();
  EXPECT_EQ(o.verdict, Verdict::passed) << o.reason;
  EXPECT_GT(o.cases, 1);
  EXPECT_LE(o.cases, 20);
}

TEST(Campaign, EvidenceThatTheLastCaseTookAwayIsFoundAgain) {
  const OpDescriptor& op = operation("embedding_backward");
  CampaignOptions options;
  options.only = "FALSIFY-EMB-BWD-002";  // a table of which few rows are looked up has a gradient of few rows
  const auto shows = [&](int cases) {
    options.cases = cases;
    return run_campaign(op, kernel("embedding_backward/cpu/naive"), options).obligations.front().verdict == Verdict::passed;
  };
  for (options.seed = 1; options.seed < 500 && !(shows(2) && !shows(3) && shows(20)); ++options.seed) {}
  ASSERT_LT(options.seed, 500U) << "no seed drew such cases";
  Kernel slow = kernel("embedding_backward/cpu/naive");
  slow.run = [run = slow.run](const Call& call, Device& device) {
    std::this_thread::sleep_for(std::chrono::milliseconds(800));
    run(call, device);
  };
  options.cases = 1;
  const auto begin = std::chrono::steady_clock::now();
  run_campaign(op, slow, options);
  // The third case begins in time, and the fourth ends more than a second after it.
  options.time = std::chrono::duration_cast<std::chrono::milliseconds>(2.3 * (std::chrono::steady_clock::now() - begin));
  options.cases = 100'000;
  const ObligationResult o = run_campaign(op, slow, options).obligations.front();
  EXPECT_EQ(o.verdict, Verdict::passed) << o.reason;
  EXPECT_GE(o.cases, 4);
}

}  // namespace
}  // namespace assay::falsify
