#pragma once
// As if a judge had a defect: the process that judges dies of a signal.
#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

namespace assay::falsify {

/// Sends the signal to the first process that this one starts; gives up after ten seconds.
inline void kill_first_child(int signal) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    DIR* const threads = opendir("/proc/self/task");
    pid_t child = 0;
    while (const dirent* thread = child > 0 ? nullptr : readdir(threads))
      if (thread->d_name[0] != '.') std::ifstream("/proc/self/task/" + std::string(thread->d_name) + "/children") >> child;
    closedir(threads);
    if (child > 0) {
      ::kill(child, signal);
      return;
    }
    std::this_thread::yield();
  }
}

}  // namespace assay::falsify
