// In the sandbox, foreign code reaches only its own process, and the calls that kernels need stay allowed.
#include "system/sandbox.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "system/child_exit.hpp"
#include "system/child_process.hpp"

namespace assay::falsify::sandbox_test {
namespace {

/// Returns the faults that `look` finds in a sandbox of this kind.
std::string inside(Sandbox kind, std::string (*look)()) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t pid = fork_process();
  if (pid == 0) {
    enter_sandbox(ends[1], STDERR_FILENO, kind);
    const std::string wrong = look();
    static_cast<void>(!write(ends[1], wrong.data(), wrong.size()));
    leave(0);
  }
  close(ends[1]);
  std::string wrong;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) wrong.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  await_counts(pid);
  const int status = end_process(pid);
  return wrong + (WIFEXITED(status) ? "" : fmt::format("it ended with wait status {:#x}", status));
}

/// Collects the names of calls that were allowed.
class Denied {
 public:
  void operator()(const char* what, long result) {
    if (result >= 0) allowed_ += fmt::format("{} is allowed; ", what);
  }
  std::string allowed() const { return allowed_; }

 private:
  std::string allowed_;
};

int open_of_judge(const char* file, int how) { return open(fmt::format("/proc/{}/{}", getppid(), file).c_str(), how); }

std::string reaches_judge() {
  Denied denied;
  for (const char* file : {"mem", "maps", "environ", "auxv", "fd/1"}) denied(file, open_of_judge(file, O_RDONLY));
  denied("mem to write", open_of_judge("mem", O_RDWR));
  denied("ptrace", ptrace(PTRACE_SEIZE, getppid(), nullptr, nullptr));
  char byte;
  const iovec here{&byte, 1}, there{&byte, 1};
  denied("process_vm_readv", syscall(SYS_process_vm_readv, getppid(), &here, 1, &there, 1, 0));
  denied("process_vm_writev", syscall(SYS_process_vm_writev, getppid(), &here, 1, &there, 1, 0));
  denied("pidfd_getfd", syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getppid(), 0), 0, 0));
  denied("kill", kill(getppid(), 0));
  rlimit limit{};
  denied("prlimit", prlimit(getppid(), RLIMIT_CORE, nullptr, &limit));
  if (prlimit(0, RLIMIT_CORE, nullptr, &limit) != 0 || prlimit(getpid(), RLIMIT_CORE, nullptr, &limit) != 0)
    return "its own limits are denied";
  return denied.allowed();
}

TEST(Sandbox, NobodyInItReachesTheJudge) {
  EXPECT_EQ(inside(Sandbox::host, &reaches_judge), "");
  EXPECT_EQ(inside(Sandbox::device, &reaches_judge), "");
}

TEST(Sandbox, EveryCapabilityIsGone) {
  const auto look = []() -> std::string {
    std::string held;
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability)
      if (geteuid() == 0 && prctl(PR_CAPBSET_READ, capability, 0, 0, 0) != 0) held += fmt::format("{} ", capability);
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) held += "new privileges";
    return held;
  };
  EXPECT_EQ(inside(Sandbox::host, look), "");
  EXPECT_EQ(inside(Sandbox::device, look), "");
}

TEST(Sandbox, LocksAreToldAsTheyAre) {
  const Locks locks = locks_here();
  EXPECT_TRUE(locks.capabilities);
  EXPECT_TRUE(locks.untraceable);
  const bool has_landlock = syscall(444, nullptr, 0, 1) > 0;
  EXPECT_EQ(locks.landlock, has_landlock);
#if !defined(ASSAY_COVERAGE)
  EXPECT_EQ(locks.files, has_landlock);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_TRUE(locks.system_calls);
#endif
}

TEST(Sandbox, ADeviceMayDoWhatItsDriverDoes) {
  const auto look = []() -> std::string {
    std::string wrong;
    const auto must = [&](const char* what, bool holds) { wrong += holds ? "" : fmt::format("{} is denied; ", what); };
    must("a socket", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    must("shared memory", mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    must("a file in memory", memfd_create("x", 0) >= 0);
    must("a thread's name", open("/proc/self/comm", O_WRONLY) >= 0);
    std::string name = (std::filesystem::temp_directory_path() / "assay-sandbox-XXXXXX").string();
    must("a file", mkstemp(name.data()) >= 0 && unlink(name.c_str()) == 0);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    must("a process", child > 0 && waitpid(child, nullptr, 0) == child);
    return wrong;
  };
  EXPECT_EQ(inside(Sandbox::device, look), "");
}

TEST(Sandbox, ADeviceTurnsNoKnobOfTheSystem) {
  if (!locks_here().landlock || geteuid() != 0) GTEST_SKIP() << "without Landlock, or nobody who might";
  const auto look = []() -> std::string {
    Denied denied;
    denied("core_pattern", open("/proc/sys/kernel/core_pattern", O_WRONLY));
    denied("oom_score_adj", open_of_judge("oom_score_adj", O_WRONLY));
    return denied.allowed();
  };
  EXPECT_EQ(inside(Sandbox::device, look), "");
}

TEST(Sandbox, AKernelOnTheHostReadsComputesAndStartsThreads) {
  const auto look = []() -> std::string {
    std::string wrong;
    const auto must = [&](const char* what, bool holds) { wrong += holds ? "" : fmt::format("{} is denied; ", what); };
    pthread_t thread;
    void* (*nothing)(void*) = [](void* x) { return x; };
    must("a thread", pthread_create(&thread, nullptr, nothing, nullptr) == 0 && pthread_join(thread, nullptr) == 0);
    must("an executable page",
         mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    must("reading a file", open("/proc/self/maps", O_RDONLY) >= 0 && open("/", O_RDONLY | O_DIRECTORY) >= 0);
    must("the null device", open("/dev/null", O_RDWR) >= 0);
    cpu_set_t processors;
    must("its own processors", sched_getaffinity(0, sizeof processors, &processors) == 0 &&
                                   sched_setaffinity(0, sizeof processors, &processors) == 0);
    must("a signal to itself", raise(SIGCONT) == 0);
    int ends[2];
    must("a pipe", pipe(ends) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    return wrong;
  };
  EXPECT_EQ(inside(Sandbox::host, look), "");
}

TEST(Sandbox, AKernelOnTheHostGetsNothingThatOutlivesOrOutgrowsIt) {
  const auto look = []() -> std::string {
    Denied denied;
    const sched_param none{};
    int ends[2], self = getpid();
    if (pipe(ends) != 0) return "no pipe";
    f_owner_ex owner{F_OWNER_PID, getpid()};
    denied("F_SETOWN", fcntl(ends[0], F_SETOWN, getpid()));
    denied("F_SETOWN_EX", fcntl(ends[0], F_SETOWN_EX, &owner));
    denied("F_SETSIG", fcntl(ends[0], F_SETSIG, SIGKILL));
    denied("FIOSETOWN", ioctl(ends[0], 0x8901, &self));
    denied("sched_setscheduler", sched_setscheduler(getppid(), SCHED_BATCH, &none));
    cpu_set_t before, first, after;
    sched_getaffinity(getppid(), sizeof before, &before);
    CPU_ZERO(&first);
    CPU_SET(CPU_ISSET(0, &before) ? 0 : 1, &first);
    sched_setaffinity(getppid(), sizeof first, &first);
    sched_getaffinity(getppid(), sizeof after, &after);
    denied("sched_setaffinity", CPU_EQUAL(&before, &after) ? -1 : 0);
    denied("setpriority", setpriority(PRIO_PROCESS, getppid(), 19));
    denied("PR_SET_PDEATHSIG", prctl(PR_SET_PDEATHSIG, 0));
    denied("memfd_create", memfd_create("x", 0));
    denied("shmget", shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600));
    const auto map = [](int flags) {
      return mmap(nullptr, 4096, PROT_READ, MAP_ANONYMOUS | flags, -1, 0) == MAP_FAILED ? -1 : 0;
    };
    denied("shared memory", map(MAP_SHARED));
    denied("a stack that grows", map(MAP_PRIVATE | MAP_GROWSDOWN));
    char parameters[256] = {};
    denied("io_uring", syscall(SYS_io_uring_setup, 4, parameters));
    denied("perf_event_open", syscall(SYS_perf_event_open, parameters, 0, -1, -1, 0));
    denied("unshare", unshare(CLONE_NEWUSER));
    timer_t timer{};
    const itimerval soon{{0, 1000}, {0, 1000}};
    denied("timer_create", timer_create(CLOCK_MONOTONIC, nullptr, &timer));
    denied("setitimer", setitimer(ITIMER_REAL, &soon, nullptr));
    denied("alarm", static_cast<int>(alarm(1)));
    denied("chmod", chmod("/", 0755));
#if !defined(ASSAY_SANITIZED)
    denied("a socket", socket(AF_UNIX, SOCK_STREAM, 0));
    denied("a pair of sockets", socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    const auto started = [](pid_t child) {
      if (child == 0) _exit(0);
      return child;
    };
    denied("fork", started(fork()));
    denied("clone", started(static_cast<pid_t>(syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0))));
    clone_args plain{};
    plain.exit_signal = SIGCHLD;
    denied("clone3", started(static_cast<pid_t>(syscall(SYS_clone3, &plain, sizeof plain))));
#endif
    return denied.allowed();
  };
  EXPECT_EQ(inside(Sandbox::host, look), "");
}

#if !defined(ASSAY_COVERAGE)
TEST(Sandbox, AKernelOnTheHostWritesNoFile) {
  if (!locks_here().files) GTEST_SKIP() << "without Landlock";
  const auto look = []() -> std::string {
    Denied denied;
    const std::string name =
        (std::filesystem::temp_directory_path() / fmt::format("assay-sandbox-{}", getpid())).string();
    denied("a file", open(name.c_str(), O_WRONLY | O_CREAT, 0600));
    denied("a folder", mkdir(name.c_str(), 0700));
    denied("a pipe", mkfifo(name.c_str(), 0600));
    denied("the program", open("/proc/self/exe", O_WRONLY));
    denied("a device", open("/dev/zero", O_WRONLY));
    return denied.allowed();
  };
  EXPECT_EQ(inside(Sandbox::host, look), "");
}
#endif

/// A full disk is reported to the writer and kills no process.
TEST(Sandbox, AFileHasItsLimit) {
  const auto look = []() -> std::string {
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    return limit.rlim_cur == kFileBytes && limit.rlim_max == kFileBytes ? "" : fmt::format("{} bytes", limit.rlim_max);
  };
  EXPECT_EQ(inside(Sandbox::host, look), "");
}

}  // namespace
}  // namespace assay::falsify::sandbox_test
