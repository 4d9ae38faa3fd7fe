#include "falsify/engine/contain.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "falsify/engine/leave.hpp"

namespace assay::falsify {
namespace {

using Clock = std::chrono::steady_clock;

/// Children that fork_process() made and that have not been waited for, and those that are left to end.
std::set<pid_t>& known() {
  static std::set<pid_t> pids;
  return pids;
}

/// Children that were killed and have not ended within kToEnd.
std::set<pid_t>& left_to_end() {
  static std::set<pid_t> pids;
  return pids;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsMemory = false;  // shadow memory is larger
#else
constexpr bool kLimitsMemory = true;
#endif

/// The parent of a process, by /proc/PID/stat: "pid (name) state parent ...", where the name may hold anything.
pid_t parent_of(const char* pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t end = line.rfind(')');
  return end == std::string::npos || end + 4 > line.size() ? -1 : static_cast<pid_t>(std::atol(line.c_str() + end + 4));
}

std::vector<pid_t> orphans() {
  std::vector<pid_t> found;
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {
    const auto pid = static_cast<pid_t>(std::atol(entry->d_name));
    if (pid > 0 && !known().contains(pid) && parent_of(entry->d_name) == getpid()) found.push_back(pid);
  }
  closedir(folder);
  return found;
}

void limit_memory() {
  if (!kLimitsMemory) return;
  const rlim_t bytes = data_bytes() + kMemoryToAdd;
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_DATA, &limit);
}

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;  // no filter
#endif

/// System calls that signal or write to other processes fail with EPERM; kill and tgkill reach this process alone.
void forbid_signals() {
  if (kArchitecture == 0) return;
  constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr), kFirst = offsetof(seccomp_data, args[0]);
  constexpr std::uint32_t kOtherAbi = 0x40000000;  // of x86-64: numbers of x32
  const std::vector<std::uint32_t> denied{SYS_ptrace,          SYS_process_vm_writev, SYS_pidfd_send_signal,
                                          SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_tkill};
  std::vector<sock_filter> code;
  std::vector<std::size_t> to_deny, to_own;
  const auto jump = [&](std::uint16_t test, std::uint32_t value, std::vector<std::size_t>& target) {
    target.push_back(code.size());
    code.push_back({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), 0, 0, value});
  };
  const auto load = [&](std::uint32_t offset) { code.push_back({BPF_LD | BPF_W | BPF_ABS, 0, 0, offset}); };
  load(offsetof(seccomp_data, arch));
  code.push_back({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, kArchitecture});
  code.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM});
  load(kNumber);
  jump(BPF_JGE, kOtherAbi, to_deny);
  for (std::uint32_t call : denied) jump(BPF_JEQ, call, to_deny);
  jump(BPF_JEQ, SYS_kill, to_own);
  jump(BPF_JEQ, SYS_tgkill, to_own);
  code.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
  for (std::size_t i : to_own) code[i].jt = static_cast<std::uint8_t>(code.size() - i - 1);
  load(kFirst);
  code.push_back({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, static_cast<std::uint32_t>(getpid())});
  for (std::size_t i : to_deny) code[i].jt = static_cast<std::uint8_t>(code.size() - i - 1);
  code.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM});
  code.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // Older kernels slow a filtered process down against speculation; a kernel under test has no secrets to guess.
  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
}

/// Waits for a child that has been killed. Where that lasts too long, it is left, and waited for later.
int wait_for_killed(pid_t pid, Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  if (!has_ended(pid, static_cast<int>(std::max<std::int64_t>(left, 0)))) {
    known().insert(pid);
    left_to_end().insert(pid);
    return SIGKILL;
  }
  int status = 0;
  waitpid(pid, &status, 0);
  known().erase(pid);
  return status;
}

void end_orphans(Clock::time_point until) {
  std::erase_if(left_to_end(), [](pid_t pid) {
    const bool ended = waitpid(pid, nullptr, WNOHANG) != 0;
    if (ended) known().erase(pid);
    return ended;
  });
  // Each round orphans the children of those killed. The bound is for one that forks faster than it is killed.
  for (int round = 0; round < 1000; ++round) {
    siginfo_t any{};
    if (waitid(P_ALL, 0, &any, WEXITED | WNOHANG | WNOWAIT) != 0) return;  // no children at all
    const std::vector<pid_t> found = orphans();
    if (found.empty()) return;
    for (pid_t pid : found) kill(pid, SIGKILL);
    for (pid_t pid : found) wait_for_killed(pid, until);
  }
}

}  // namespace

std::size_t data_bytes() {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);  // streams take several times as long
  char text[256];
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  std::size_t pages = 0;  // size resident shared text lib data dirty
  return std::sscanf(text, "%*u %*u %*u %*u %*u %zu", &pages) == 1 ? pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

pid_t fork_process() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw Unavailable("worker process", fmt::format("fork failed: {}", std::strerror(errno)));
  if (pid > 0) {
    known().insert(pid);
    return pid;
  }
  known().clear();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) leave(0);
  return 0;
}

void contain_process(int channel, bool host) {
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  if (channel > STDERR_FILENO + 1) syscall(SYS_close_range, STDERR_FILENO + 1, channel - 1, 0);
  syscall(SYS_close_range, channel + 1, ~0u, 0);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (!host) return;
  limit_memory();
  forbid_signals();
}

bool has_ended(pid_t pid, int milliseconds) {
  const auto until = Clock::now() + std::chrono::milliseconds(milliseconds);
  const auto ended = [pid] {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
  };
  if (ended()) return true;
  if (const auto process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); process >= 0) {
    pollfd end{process, POLLIN, 0};
    poll(&end, 1, milliseconds);
    close(process);
  }
  // The end of one that is traced is its tracer's to take first: then nothing is left to poll for.
  while (!ended()) {
    if (Clock::now() >= until) return false;
    usleep(1000);
  }
  return true;
}

void end_orphans() { end_orphans(Clock::now() + kToEnd); }

int end_process(pid_t pid) {
  const auto until = Clock::now() + kToEnd;
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
  const int status = wait_for_killed(pid, until);
  end_orphans(until);
  return status;
}

}  // namespace assay::falsify
