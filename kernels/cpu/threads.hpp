// Threads of one call: its elements are shared out, and each is computed as on one thread, to the bit.
#pragma once

#include <cblas.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/shape.hpp"

namespace assay::cpu {

inline constexpr Index kMostThreads = 64;

/// Returns the threads for a call of so many multiplications that can be cut into so many parts: those that OpenBLAS
/// has, or 1 where starting one takes longer than it saves (tests/bench).
inline Index threads_for(Index multiplications, Index parts) {
  constexpr Index kThreadedVolume = Index{1} << 24;
  if (multiplications < kThreadedVolume) return 1;
  return std::clamp<Index>(std::min<Index>(openblas_get_num_threads(), parts), 1, kMostThreads);
}

/// Calls f(thread) for each thread below `threads`, at once, and returns when all have returned. `f` throws nothing.
/// Takes nothing from the heap, as std::thread would; what the system starts no thread for runs on this one.
template <class F>
void on_threads(Index threads, const F& f) {
  struct Other {
    const F* f;
    Index number;
    pthread_t id;
    bool started;
  };
  std::array<Other, kMostThreads> others;
  for (Index t = 1; t < threads; ++t) {
    Other& other = others[static_cast<std::size_t>(t)] = {&f, t, {}, false};
    other.started = pthread_create(
                        &other.id, nullptr,
                        [](void* of) -> void* {
                          const Other& self = *static_cast<const Other*>(of);
                          (*self.f)(self.number);
                          return nullptr;
                        },
                        &other) == 0;
  }
  f(0);
  for (Index t = 1; t < threads; ++t) {
    const Other& other = others[static_cast<std::size_t>(t)];
    if (other.started) pthread_join(other.id, nullptr);
    else f(t);
  }
}

/// Returns the first and the end of a thread's share of `count` items, which starts at a multiple of `unit`.
inline std::pair<Index, Index> share(Index count, Index unit, Index thread, Index threads) {
  const Index units = (count + unit - 1) / unit;
  return {std::min(count, units * thread / threads * unit), std::min(count, units * (thread + 1) / threads * unit)};
}

}  // namespace assay::cpu
