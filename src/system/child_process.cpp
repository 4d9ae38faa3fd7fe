#include "system/child_process.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
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
#include "system/child_exit.hpp"
#include "system/sandbox.hpp"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

/// Children made by fork_process() that have not been reaped, including those abandoned after a kill.
std::set<pid_t>& known() {
  static std::set<pid_t> pids;
  return pids;
}

/// Killed children that did not end within kToEnd.
std::set<pid_t>& left_to_end() {
  static std::set<pid_t> pids;
  return pids;
}

/// Returns the parent of a process from /proc/PID/stat: "pid (name) state parent ...", where the name may contain any
/// character.
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

/// Waits for a killed child. After `until`, leaves it to be reaped later.
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
  // Each round orphans the children of the killed processes. The bound covers a process that forks faster than it is
  // killed.
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

pid_t fork_process() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  forbid_tracing();
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
  // A traced child is reported to its tracer first; until then poll() has nothing to report.
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

}  // namespace assay
