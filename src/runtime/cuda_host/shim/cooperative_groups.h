// Replaces CUDA's cooperative_groups.h: blocks, and tiles of up to 32 threads, with reduce and scan (CUDA programming
// guide, "Cooperative Groups"). A tile's operation is a warp operation with the mask of the tile.
#pragma once

#include "cuda_runtime.h"

namespace assay::cuda_host::toolkit::cooperative_groups {

/// Operations of a tile.
template <class Group>
struct Lanes {
  void sync(Site site = Site::current()) const { __syncwarp(self().mask(), site); }
  template <class T>
  T shfl(T value, int source, Site site = Site::current()) const {
    return shuffle(self().mask(), value, self().lane_of(static_cast<unsigned>(source) % self().size()), site);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, Site site = Site::current()) const {
    const unsigned rank = self().thread_rank();
    return shuffle(self().mask(), value, self().lane_of(rank < delta ? rank : rank - delta), site);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, Site site = Site::current()) const {
    const unsigned rank = self().thread_rank();
    return shuffle(self().mask(), value, self().lane_of(rank + delta < self().size() ? rank + delta : rank), site);
  }
  template <class T>
  T shfl_xor(T value, unsigned lanes, Site site = Site::current()) const {
    return shuffle(self().mask(), value, self().lane_of((self().thread_rank() ^ lanes) % self().size()), site);
  }
  /// Bit r is the predicate of the thread of rank r.
  unsigned ballot(bool predicate, Site site = Site::current()) const {
    const unsigned votes = __ballot_sync(self().mask(), predicate, site);
    unsigned by_rank = 0;
    for (unsigned r = 0; r < self().size(); ++r) by_rank |= (votes >> self().lane_of(r) & 1U) << r;
    return by_rank;
  }
  int any(bool predicate, Site site = Site::current()) const {
    return __ballot_sync(self().mask(), predicate, site) != 0;
  }
  int all(bool predicate, Site site = Site::current()) const {
    return __ballot_sync(self().mask(), predicate, site) == self().mask();
  }
  unsigned num_threads() const { return self().size(); }

 private:
  const Group& self() const { return static_cast<const Group&>(*this); }
};

struct thread_block {
  static void sync(Site site = Site::current()) { barrier(site); }
  static unsigned thread_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
  static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

template <unsigned kSize, class Parent = void>
struct thread_block_tile : Lanes<thread_block_tile<kSize, Parent>> {
  static_assert(kSize >= 1 && kSize <= 32 && (kSize & (kSize - 1)) == 0,
                "cuda-host has tiles of 1, 2, 4, 8, 16 and 32 threads: for larger ones, use shared memory and sync()");
  static unsigned size() { return kSize; }
  static unsigned thread_rank() { return lane() % kSize; }
  static unsigned mask() { return ~0U >> (32 - kSize) << lane_of(0); }
  static unsigned lane_of(unsigned rank) { return lane() / kSize * kSize + rank; }
  /// Which tile of its parent this is, and of how many.
  unsigned meta_group_rank() const { return thread_block::thread_rank() % threads_of_parent / kSize; }
  unsigned meta_group_size() const { return (threads_of_parent + kSize - 1) / kSize; }

  unsigned threads_of_parent = 0;

  /// A tile may forget its parent.
  operator thread_block_tile<kSize, void>() const requires(!std::is_void_v<Parent>) { return {{}, threads_of_parent}; }
};
template <unsigned kSize, class Parent>
thread_block_tile<kSize, Parent> tiled_partition(const Parent& parent) {
  return {{}, parent.size()};
}

template <class Group>
void sync(const Group& group, Site site = Site::current()) {
  group.sync(site);
}

template <class T>
struct plus {
  T operator()(T x, T y) const { return x + y; }
};
template <class T>
struct greater {
  T operator()(T x, T y) const { return y < x ? x : y; }
};
template <class T>
struct less {
  T operator()(T x, T y) const { return x < y ? x : y; }
};
template <class T>
struct bit_and {
  T operator()(T x, T y) const { return x & y; }
};
template <class T>
struct bit_or {
  T operator()(T x, T y) const { return x | y; }
};
template <class T>
struct bit_xor {
  T operator()(T x, T y) const { return x ^ y; }
};

/// Returns the reduction in every thread of the group.
template <class Group, class T, class F>
T reduce(const Group& group, T value, F f, Site site = Site::current()) {
  for (unsigned step = group.size() / 2; step > 0; step /= 2) value = f(value, group.shfl_xor(value, step, site));
  return value;
}
/// Returns the reduction of the values of the threads up to this one.
template <class Group, class T, class F>
T inclusive_scan(const Group& group, T value, F f, Site site = Site::current()) {
  for (unsigned step = 1; step < group.size(); step *= 2) {
    const T before = group.shfl_up(value, step, site);
    if (group.thread_rank() >= step) value = f(before, value);
  }
  return value;
}
template <class Group, class T>
T inclusive_scan(const Group& group, T value, Site site = Site::current()) {
  return inclusive_scan(group, value, plus<T>(), site);
}
/// The same without this thread's value; T{} in the first thread.
template <class Group, class T, class F>
T exclusive_scan(const Group& group, T value, F f, Site site = Site::current()) {
  const T before = group.shfl_up(inclusive_scan(group, value, f, site), 1, site);
  return group.thread_rank() == 0 ? T{} : before;
}
template <class Group, class T>
T exclusive_scan(const Group& group, T value, Site site = Site::current()) {
  return exclusive_scan(group, value, plus<T>(), site);
}

}  // namespace assay::cuda_host::toolkit::cooperative_groups
