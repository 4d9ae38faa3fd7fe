// Threads of one call: its elements are shared out, and each is computed as on one thread, to the bit.
#pragma once

#include <cblas.h>

#include <algorithm>
#include <array>
#include <thread>
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
template <class F>
void on_threads(Index threads, const F& f) {
  std::array<std::jthread, kMostThreads - 1> others;
  for (Index t = 1; t < threads; ++t) others[static_cast<std::size_t>(t - 1)] = std::jthread([&f, t] { f(t); });
  f(0);
}

/// Returns the first and the end of a thread's share of `count` items, which starts at a multiple of `unit`.
inline std::pair<Index, Index> share(Index count, Index unit, Index thread, Index threads) {
  const Index units = (count + unit - 1) / unit;
  return {std::min(count, units * thread / threads * unit), std::min(count, units * (thread + 1) / threads * unit)};
}

}  // namespace assay::cpu
