// Every misbehaviour of a kernel towards its process is a verdict, and the next call works.
#include "falsify/engine/worker.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/errors.hpp"
#include "falsify/engine/campaign.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/gradients.hpp"
#include "falsify/engine/trial.hpp"
#include "system/sandbox.hpp"
#include "tests/engine/absent.hpp"

namespace assay::falsify::worker_test {
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
void sleeps(const Call&, Device&) {
  for (;;) pause();
}
void throws(const Call&, Device&) { throw std::runtime_error("kernel says no"); }
void recurses(const Call& call, Device& device) {
  volatile char frame[1 << 16];
  frame[0] = static_cast<char>(call.dims.size());
  if (frame[0] != 0) recurses(call, device);  // always true: a matmul has dims
  frame[1] = frame[0];
}
void closes_everything(const Call&, Device&) {
  for (int fd = 0; fd < 256; ++fd) close(fd);
}

/// Computes for 400 ms.
void works(const Call& call, Device& device) {
  timespec used;
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  while (used.tv_sec == 0 && used.tv_nsec < 400'000'000);
  right(call, device);
}

/// Processes that keep every core busy, several per core.
class Busy {
 public:
  Busy() {
    for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i) {
      const pid_t child = fork();
      if (child == 0)
        for (;;) {}
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
    const Stage stage(worker_.arena(), problem, c, Poison::finite);
    return worker_.run(op_, k, problem.dims, problem.params, stage.tensors());
  }
  const OpDescriptor& op_ = operation("matmul");
  Worker worker_{std::chrono::milliseconds(1500), std::size_t{1} << 26};
};

TEST_F(WorkerTest, EveryEndIsAnAnswerAndTheNextCallWorks) {
  const std::pair<Kernel, Status> ends[] = {
      {with(aborts), Status::crashed}, {with(leaves), Status::crashed},   {with(sleeps), Status::hung},
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
    if (getpid() != engine) _exit(3);  // the kernel's process must not return here
    EXPECT_EQ(reply.detail, "the process exited with status 0 inside the call");
  }
}

/// A wait interrupted by a signal continues to its limit and no longer.
TEST_F(WorkerTest, AnInterruptionProlongsNoWait) {
  struct sigaction noted = {}, before = {};
  noted.sa_handler = [](int) {};
  sigaction(SIGALRM, &noted, &before);
  const itimerval once{{0, 0}, {0, 100'000}};
  const auto begin = std::chrono::steady_clock::now();
  setitimer(ITIMER_REAL, &once, nullptr);
  EXPECT_EQ(run(with(sleeps)).status, Status::hung);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
  sigaction(SIGALRM, &before, nullptr);
}

/// A kernel can send no signal to another process.
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
  const Kernel underruns =
      with([](const Call& call, Device&) { const_cast<volatile float*>(call.tensors[0].as<float>().data())[-1] = 1; });
  EXPECT_EQ(run(overruns, Placement::page_end).status, Status::crashed);
  EXPECT_EQ(run(underruns, Placement::page_start).status, Status::crashed);
  // Guard pages further away persist between calls of a worker.
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

/// No descriptor of a kernel's process stays open here, however a call ends.
TEST_F(WorkerTest, AnEndedProcessLeavesNoDescriptor) {
  const Kernel bad = with(aborts), asleep = with(sleeps);
  const auto open_here = [] {
    int open = 0;
    for (int fd = 0; fd < 256; ++fd) open += fcntl(fd, F_GETFD) != -1;
    return open;
  };
  const int before = open_here();
  for (const Kernel* k : {&bad, &bad, &asleep}) run(*k);
  worker_.restart();
  EXPECT_EQ(open_here(), before);
}

/// Clause counts of an ended process are counted once, without the call that ended it.
TEST_F(WorkerTest, AnEndedProcessCountsNothingTwice) {
  const Kernel good = with(right), bad = with(aborts);
  run(good);
  const std::vector<std::uint64_t> before = worker_.clause_counts(op_);
  run(bad);
  EXPECT_EQ(worker_.clause_counts(op_), before);
}

/// A call cut short by the end of its campaign is no hang: it might have returned in time.
TEST_F(WorkerTest, ACallThatIsGivenUpIsNotCalledAHang) {
  worker_.set_deadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
  EXPECT_THROW(run(with(sleeps)), DeadlineReached);
  worker_.set_deadline(std::chrono::steady_clock::time_point::max());
  EXPECT_EQ(run(with(sleeps)).status, Status::hung);
}

TEST_F(WorkerTest, ABusyMachineMakesNoCallHang) {
  const Kernel good = with(right), hard_working = with(works), asleep = with(sleeps);
  ASSERT_EQ(run(good).status, Status::done);
  const Busy busy;
  EXPECT_EQ(run(hard_working).status, Status::done);
  // Other load may delay the start of the next process, which is part of this time, but hardly five times in a row.
  auto took = std::chrono::steady_clock::duration::max();
  for (int attempt = 0; attempt < 5 && took >= std::chrono::seconds(4); ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(run(asleep).status, Status::hung);
    took = std::min(took, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(took, std::chrono::seconds(4));
}

TEST_F(WorkerTest, ThreadsInTurnHaveMoreTime) {
  Worker hasty(std::chrono::milliseconds(200), std::size_t{1} << 26);
  Case c;
  c.dims = {2, 3, 4};
  const Problem problem = make_problem(op_, c, {});
  Kernel at_work = with(works), in_turn = at_work, asleep = with(sleeps);
  in_turn.backend = asleep.backend = Backend::cuda_host;
  const auto status = [&](const Kernel& k) {
    const Stage stage(hasty.arena(), problem, c, Poison::finite);
    return hasty.run(op_, k, problem.dims, problem.params, stage.tensors()).status;
  };
  EXPECT_EQ(status(at_work), Status::hung);
  EXPECT_EQ(status(in_turn), Status::done);
  EXPECT_EQ(status(asleep), Status::hung);
}

/// A kernel that exceeds its limit is not waited for. Retries if this process is itself scheduled too late to observe
/// the limit.
TEST_F(WorkerTest, ACallHasItsLimitAndNoMore) {
  static constexpr std::chrono::milliseconds kLimit{300};
  const Kernel late = with([](const Call& call, Device& device) {
    std::this_thread::sleep_for(kLimit * 29 / 20);
    right(call, device);
  });
  Case c;
  c.dims = {2, 3, 4};
  const Problem problem = make_problem(op_, c, {});
  Status status = Status::done;
  for (int attempt = 0; attempt < 5 && status == Status::done; ++attempt) {
    Worker worker(kLimit, std::size_t{1} << 26);
    const Stage stage(worker.arena(), problem, c, Poison::finite);
    status = worker.run(op_, late, problem.dims, problem.params, stage.tensors()).status;
  }
  EXPECT_EQ(status, Status::hung);
}

TEST_F(WorkerTest, AReplyHoldsNothingOfTheOneBefore) {
  Kernel refusing = with(right);
  refusing.refuse = [](const Call&) -> std::optional<std::string> { return "odd sizes only"; };
  const Kernel good = with(right);
  EXPECT_EQ(run(refusing).detail, "odd sizes only");
  const Reply reply = run(good);
  EXPECT_EQ(reply.status, Status::done);
  EXPECT_EQ(reply.detail, "");
}

TEST_F(WorkerTest, AShorterReasonHoldsNothingOfALongerOneBefore) {
  Kernel endless = with(right), longer = endless, shorter = endless;  // all exist before the worker's process
  endless.refuse = [](const Call&) -> std::optional<std::string> { return std::string(20'000, 'x'); };
  longer.refuse = [](const Call&) -> std::optional<std::string> { return "odd sizes only"; };
  shorter.refuse = [](const Call&) -> std::optional<std::string> { return "no"; };
  EXPECT_EQ(run(endless).detail, std::string(8191, 'x')) << "as much of it as an answer holds";
  EXPECT_EQ(run(longer).detail, "odd sizes only");
  EXPECT_EQ(run(shorter).detail, "no");
}

TEST_F(WorkerTest, AnAnswerBeforeTheQuestionIsSeenHoweverLong) {
  const Kernel forges = with([](const Call& call, Device& device) {
    right(call, device);
    for (int fd = STDERR_FILENO + 1; fd < 256; ++fd) ::send(fd, "abc", 3, MSG_NOSIGNAL | MSG_DONTWAIT);
  });
  const Kernel good = with(right);
  EXPECT_EQ(run(forges).status, Status::done);
  const Reply next = run(good);
  EXPECT_EQ(next.status, Status::failed);
  EXPECT_EQ(next.detail, "its process answered before it was asked");
  EXPECT_EQ(run(good).status, Status::done);
}

/// A kernel sees only the standard descriptors and its worker's, not those opened before or after its worker.
TEST_F(WorkerTest, AKernelHasNoDescriptorOfTheEngine) {
  const Kernel counts = with([](const Call& call, Device& device) {
    int open = 0;
    for (int fd = STDIN_FILENO; fd < 1024; ++fd) open += fcntl(fd, F_GETFD) != -1;
    if (open != 3 + 1) throw std::runtime_error(fmt::format("{} descriptors", open));
    right(call, device);
  });
  const int before[] = {open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY)};
  Worker worker(std::chrono::seconds(60), std::size_t{1} << 20);
  const int after = open("/dev/null", O_RDONLY);
  Case c;
  c.dims = {2, 3, 4};
  const Problem problem = make_problem(op_, c, {});
  const Stage stage(worker.arena(), problem, c, Poison::nan);
  const Reply reply = worker.run(op_, counts, problem.dims, problem.params, stage.tensors(), contract::Level::pre);
  EXPECT_EQ(reply.status, Status::done) << reply.detail;
  for (const int fd : {before[0], before[1], after}) close(fd);
}

/// Crashes are normal verdicts here, so core files must not fill the disk.
TEST_F(WorkerTest, AKernelLeavesNoCore) {
  rlimit before{};
  getrlimit(RLIMIT_CORE, &before);
  const rlimit some{1 << 20, before.rlim_max == 0 ? 1 << 20 : before.rlim_max};
  if (setrlimit(RLIMIT_CORE, &some) != 0) GTEST_SKIP() << "no core can be left here";
  const Reply reply = run(with([](const Call& call, Device& device) {
    rlimit here{};
    getrlimit(RLIMIT_CORE, &here);
    if (here.rlim_cur != 0 || here.rlim_max != 0) throw std::runtime_error("a crash would leave a core");
    right(call, device);
  }));
  setrlimit(RLIMIT_CORE, &before);
  EXPECT_EQ(reply.status, Status::done) << reply.detail;
}

/// The contract is checked outside the kernel's process: a forged answer with nothing computed is not accepted.
TEST_F(WorkerTest, AnAnswerWithoutTheContractIsNone) {
  const Kernel answers = with([](const Call& call, Device&) {
    const View<float> c = call.tensors[2].as<float>();
    for (Index i = 0; i < c.extent(); ++i) c.data()[i] = 1e30F;
    const char byte = 1;
    // The mailbox's message for "done".
    for (int fd = STDERR_FILENO + 1; fd < 256; ++fd) ::send(fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (;;) pause();
  });
  const std::vector<std::uint64_t> before = worker_.clause_counts(op_);
  const Reply reply = run(answers);
  EXPECT_EQ(reply.status, Status::violated) << reply.detail;
  EXPECT_NE(reply.detail.find("MM-POST-"), std::string::npos) << reply.detail;
  EXPECT_NE(worker_.clause_counts(op_), before);
}

/// A call that violates a requires clause is invalid: the engine evaluates the clauses itself and never calls the
/// kernel.
TEST_F(WorkerTest, WhatTheContractDoesNotAdmitIsInvalid) {
  Case c;
  c.dims = {2, 3, 4};
  const Problem problem = make_problem(op_, c, {});
  const Stage stage(worker_.arena(), problem, c, Poison::finite);
  const std::vector<Index> others{2, 3, 5};
  const Reply reply = worker_.run(op_, with(aborts), others, problem.params, stage.tensors());
  EXPECT_EQ(reply.status, Status::invalid);
  EXPECT_NE(reply.detail.find("MM-PRE-"), std::string::npos) << reply.detail;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* reserve(std::size_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

TEST_F(WorkerTest, AKernelHasSoMuchMemoryAndNoMore) {
  const Kernel asks = with([](const Call& call, Device& device) {
    rlimit data{}, core{};
    getrlimit(RLIMIT_DATA, &data);
    getrlimit(RLIMIT_CORE, &core);
    if (data.rlim_cur != data.rlim_max || core.rlim_cur != 0 || core.rlim_max != 0)
      throw std::runtime_error("limits can be raised");
    if (data.rlim_cur < kMemoryToAdd || data.rlim_cur > kMemoryToAdd + data_bytes())
      throw std::runtime_error(fmt::format("{} bytes", data.rlim_cur));
    if (reserve(kMemoryToAdd + data_bytes()) != MAP_FAILED) throw std::runtime_error("more than that");
    if (reserve(kMemoryToAdd / 2) == MAP_FAILED) throw std::runtime_error("not half of it");
    right(call, device);
  });
  const Reply reply = run(asks);
  EXPECT_EQ(reply.status, Status::done) << reply.detail;
}

/// Keeps `bytes` of memory in its first call, and aborts in its second.
template <std::size_t bytes>
void keeps(const Call& call, Device& device) {
  static int calls = 0;
  if (++calls > 1) std::abort();
  if (reserve(bytes) == MAP_FAILED) throw std::runtime_error("no memory");
  right(call, device);
}

TEST_F(WorkerTest, WhatCallsBeforeHadKeptIsToldWhereItIsMost) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  const Kernel little = with(&keeps<kMemoryToAdd / 2 - 64 * kMiB>), much = with(&keeps<kMemoryToAdd / 2 + 64 * kMiB>);
  const std::string aborted = fmt::format("signal {} ({})", SIGABRT, strsignal(SIGABRT));
  EXPECT_EQ(run(little).status, Status::done);
  EXPECT_EQ(run(little).detail, aborted);
  EXPECT_EQ(run(much).status, Status::done);
  EXPECT_EQ(run(much).detail, aborted + ", and calls before it had kept 2.1 of the 4 GiB of memory that they may add");
}
#endif

/// No system call of either ABI lets a process signal another process or write to it.
TEST_F(WorkerTest, NoSystemCallReachesAnotherProcess) {
  const Kernel tries = with([](const Call& call, Device& device) {
    const pid_t engine = getppid();
    const auto denied = [](long result) { return result == -1 && errno == EPERM; };
    if (!denied(syscall(SYS_ptrace, PTRACE_PEEKDATA, engine, 0, 0))) throw std::runtime_error("ptrace");
    if (!denied(syscall(SYS_process_vm_writev, engine, nullptr, 0, nullptr, 0, 0)))
      throw std::runtime_error("process_vm_writev");
    if (!denied(syscall(SYS_pidfd_send_signal, -1, 0, nullptr, 0))) throw std::runtime_error("pidfd_send_signal");
    if (!denied(syscall(SYS_rt_sigqueueinfo, engine, 0, nullptr))) throw std::runtime_error("rt_sigqueueinfo");
    if (!denied(syscall(SYS_rt_tgsigqueueinfo, engine, engine, 0, nullptr)))
      throw std::runtime_error("rt_tgsigqueueinfo");
    if (!denied(syscall(SYS_tkill, getpid(), 0))) throw std::runtime_error("tkill");
    if (!denied(syscall(SYS_tgkill, engine, engine, 0))) throw std::runtime_error("tgkill");
    if (!denied(kill(engine, 0)) || !denied(kill(0, 0)) || !denied(kill(-1, 0))) throw std::runtime_error("kill");
    if (syscall(SYS_tgkill, getpid(), getpid(), 0) != 0 || kill(getpid(), 0) != 0)
      throw std::runtime_error("its own process is out of its reach");
#if defined(__x86_64__)
    if (!denied(syscall(0x40000000 + SYS_getpid))) throw std::runtime_error("x32");
#endif
    right(call, device);
  });
  const Reply reply = run(tries);
  EXPECT_EQ(reply.status, Status::done) << reply.detail;
}

#if defined(__x86_64__)
/// Calls getpid() through the 32-bit interface.
long getpid_by_32_bits() {
  long result = 20;
  __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  return result;
}

TEST_F(WorkerTest, SystemCallsOf32BitsAreDenied) {
  const pid_t child = fork();
  if (child == 0) _exit(getpid_by_32_bits() == getpid() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) GTEST_SKIP() << "this system has none";
  const Kernel asks = with([](const Call& call, Device& device) {
    if (const long result = getpid_by_32_bits(); result != -EPERM)
      throw std::runtime_error(fmt::format("result {}", result));
    right(call, device);
  });
  const Reply reply = run(asks);
  EXPECT_EQ(reply.status, Status::done) << reply.detail;
}
#endif

/// A device with its own memory that does its work at synchronization.
class Distant final : public Device {
 public:
  Backend backend() const override { return Backend::vulkan; }
  std::string description() const override { return "far away"; }
  MemoryInfo memory() const override { return {std::uint64_t{1} << 30, std::uint64_t{1} << 30}; }
  bool host_visible() const override { return false; }
  bool has_guard_pages() const override { return true; }
  void synchronize() override {
    for (const auto& work : std::exchange(submitted, {})) work();
  }
  std::vector<std::string> take_messages() override { return std::exchange(messages, {}); }

  std::vector<std::function<void()>> submitted;
  std::vector<std::string> messages;
  std::string guard_pages;  ///< guard pages of each allocation: n, b or a

 private:
  void* allocate_bytes(std::size_t bytes) override {
    guard_pages += 'n';
    return std::calloc(bytes, 1);
  }
  void* allocate_guarded(std::size_t bytes, GuardPage guard_page) override {
    guard_pages += guard_page == GuardPage::before ? 'b' : 'a';
    return std::calloc(bytes, 1);
  }
  void release_bytes(void* address, std::size_t) noexcept override { std::free(address); }
  void upload_bytes(void* destination, const void* source, std::size_t bytes) override {
    std::memcpy(destination, source, bytes);
  }
  void download_bytes(void* destination, const void* source, std::size_t bytes) override {
    std::memcpy(destination, source, bytes);
  }
};

class DistantTest : public WorkerTest {
 protected:
  static void SetUpTestSuite() {
    DeviceRegistration(Backend::vulkan, []() -> std::unique_ptr<Device> { return std::make_unique<Distant>(); });
  }
  static Kernel distant(void (*run)(const Call&, Device&)) {
    Kernel k = with(run);
    k.backend = Backend::vulkan;
    return k;
  }
};

TEST_F(DistantTest, ResultsAreWaitedForAndBroughtBackWithAllAroundThem) {
  const Kernel good = distant([](const Call& call, Device& device) {
    static_cast<Distant&>(device).submitted.push_back([call] { right(call, assay::device(Backend::cpu)); });
  });
  const Kernel overruns = distant([](const Call& call, Device& device) {
    static_cast<Distant&>(device).submitted.push_back([call] {
      const View<float> c = call.tensors[2].as<float>();
      c.data()[c.extent()] = 1;
    });
  });
  for (int layout = 0; layout < kNearLayouts; ++layout)
    for (const Kernel* k : {&good, &overruns}) {
      Case c;
      c.dims = {2, 3, 4};
      c.layout = static_cast<Layout>(layout);
      const Problem problem = make_problem(op_, c, {});
      const Stage stage(worker_.arena(), problem, c, Poison::nan);
      const Reply reply = worker_.run(op_, *k, problem.dims, problem.params, stage.tensors(), contract::Level::pre);
      ASSERT_EQ(reply.status, Status::done) << reply.detail;
      EXPECT_EQ(worker_.device(), "far away");
      const std::vector<float> got = stage.read(2);
      if (k == &overruns) {
        EXPECT_TRUE(stage.damage());
        continue;
      }
      for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < 4; ++j) {
          float sum = 0;
          for (std::size_t p = 0; p < 3; ++p) sum += problem.values[0][i * 3 + p] * problem.values[1][p * 4 + j];
          EXPECT_FLOAT_EQ(got[i * 4 + j], sum);
        }
      EXPECT_FALSE(stage.damage());
    }
}

TEST_F(DistantTest, AChangeOfAnyInputIsBroughtBackToo) {
  const Kernel changes[] = {distant([](const Call& call, Device&) { call.tensors[0].as<float>().data()[0] += 1; }),
                            distant([](const Call& call, Device&) { call.tensors[1].as<float>().data()[0] += 1; })};
  for (std::size_t t = 0; t < 2; ++t) {
    Case c;
    c.dims = {2, 3, 4};
    const Problem problem = make_problem(op_, c, {});
    const Stage stage(worker_.arena(), problem, c, Poison::finite);
    ASSERT_EQ(worker_.run(op_, changes[t], problem.dims, problem.params, stage.tensors(), contract::Level::pre).status,
              Status::done);
    EXPECT_TRUE(stage.damage()) << op_.tensors[t].name;
  }
}

TEST_F(DistantTest, WhatRunsHereIsWaitedForToo) {
  const Kernel late = distant([](const Call& call, Device& device) {
    static_cast<Distant&>(device).submitted.push_back([call] { right(call, assay::device(Backend::cpu)); });
  });
  Case c;
  c.dims = {2, 3, 4};
  const Problem problem = make_problem(op_, c, {});
  EXPECT_EQ(run_here(late, problem), run_here(with(right), problem));
}

/// A forked child that returns from the kernel must exit and send no answer; device drivers may start such processes,
/// and the kernel waits.
TEST_F(DistantTest, AProcessThatReturnsFromTheKernelEndsThere) {
  const Kernel forks = distant([](const Call& call, Device&) {
    right(call, assay::device(Backend::cpu));
    const pid_t child = fork();
    if (child == 0) return;
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0)
      throw std::runtime_error(fmt::format("wait status {}", status));
  });
  for (int call = 0; call < 2; ++call) {
    const Reply reply = run(forks);
    EXPECT_EQ(reply.status, Status::done) << reply.detail;
  }
}

TEST_F(DistantTest, ItsMemoryHasTheFencesOfTheCase) {
  const Kernel tells =
      distant([](const Call&, Device& device) { throw std::runtime_error(static_cast<Distant&>(device).guard_pages); });
  EXPECT_EQ(run(tells, Placement::sentinels).detail, "nnn");
  EXPECT_EQ(run(tells, Placement::page_start).detail, "bbb");
  EXPECT_EQ(run(tells, Placement::page_end).detail, "aaa");
}

TEST_F(DistantTest, MessagesOfItsLayersFailTheCall) {
  const Kernel complains = distant([](const Call& call, Device& device) {
    static_cast<Distant&>(device).messages = {"first", "second"};
    right(call, device);
  });
  const Reply reply = run(complains);
  EXPECT_EQ(reply.status, Status::failed);
  for (const char* part : {"validation", "2 messages", "first"})
    EXPECT_NE(reply.detail.find(part), std::string::npos) << reply.detail;
}

TEST_F(WorkerTest, AMissingDeviceIsUnavailableNotAPass) {
  Kernel k = with(right);
  k.backend = absent_backend();
  EXPECT_EQ(run(k).status, Status::unavailable);
  CampaignOptions options;
  options.cases = 1;
  const KernelResult result = run_campaign(op_, k, options);
  EXPECT_TRUE(result.unavailable());
  for (const ObligationResult& o : result.obligations)
    EXPECT_EQ(o.reason, "backend cuda is unavailable: the test took it away") << o.info->id;
}

}  // namespace
}  // namespace assay::falsify::worker_test
