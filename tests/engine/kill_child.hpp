#pragma once
// Simulates a defect in the engine: the judging process dies of a signal.
#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <utility>

namespace assay::falsify {

namespace detail {
inline void kill_first_child(int signal) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    DIR* const threads = opendir("/proc/self/task");
    pid_t child = 0;
    while (const dirent* thread = child > 0 ? nullptr : readdir(threads))
      if (thread->d_name[0] != '.')
        std::ifstream("/proc/self/task/" + std::string(thread->d_name) + "/children") >> child;
    closedir(threads);
    if (child > 0) {
      ::kill(child, signal);
      return;
    }
    std::this_thread::yield();
  }
}
}  // namespace detail

/// Sends the signal to the first child of this process; gives up after ten seconds. Wait for the future. The thread is
/// detached: a process forked meanwhile could not join it, which a thread sanitizer reports as a leak.
inline std::future<void> kill_first_child(int signal) {
  std::packaged_task<void()> task([signal] { detail::kill_first_child(signal); });
  std::future<void> done = task.get_future();
  std::thread(std::move(task)).detach();
  return done;
}

}  // namespace assay::falsify
