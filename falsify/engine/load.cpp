#include "falsify/engine/load.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace assay::falsify {
namespace {

constexpr int kMaxThreads = 4;
/// Largest number of loop iterations in one piece of work: about 50 microseconds.
constexpr std::uint32_t kPiece = 1 << 15;

std::atomic<int> wanted{0};

void* work(void* argument) {
  auto state = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(argument)) * 0x9e3779b1u;
  for (;;) {
    wanted.wait(0);
    while (wanted.load(std::memory_order_relaxed) != 0) {
      state = state * 1664525u + 1013904223u;
      volatile std::uint32_t sum = 0;
      for (std::uint32_t i = 0, end = (state >> 8) % kPiece; i < end; ++i) sum = sum + i;
      if ((state >> 28) == 0) sched_yield();
    }
  }
  return nullptr;
}

/// Starts one thread per usable processor, at most kMaxThreads. They block all signals, which are the kernel's.
void start_threads() {
  cpu_set_t usable;
  const int processors = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 1;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 128 << 10);
  pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
  for (std::uintptr_t n = 1; n <= static_cast<std::uintptr_t>(std::min(processors, kMaxThreads)); ++n) {
    pthread_t thread;
    pthread_create(&thread, &small, &work, reinterpret_cast<void*>(n));
  }
  pthread_attr_destroy(&small);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

LoadScope::LoadScope(bool on) : on_(on) {
  if (!on_) return;
  static const bool started = (start_threads(), true);
  static_cast<void>(started);
  wanted = 1;
  wanted.notify_all();
}

LoadScope::~LoadScope() {
  if (on_) wanted = 0;
}

}  // namespace assay::falsify
