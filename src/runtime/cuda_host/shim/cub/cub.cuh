// Replaces CUB, as far as reductions of a block go (CUB documentation, cub::BlockReduce). As there, thread 0 alone has
// the result, and other threads have garbage.
#pragma once

#include <cuda_runtime.h>

namespace assay::cuda_host::toolkit::cub {

struct Sum {
  template <class T>
  T operator()(const T& x, const T& y) const {
    return x + y;
  }
};
struct Max {
  template <class T>
  T operator()(const T& x, const T& y) const {
    return x < y ? y : x;
  }
};
struct Min {
  template <class T>
  T operator()(const T& x, const T& y) const {
    return y < x ? y : x;
  }
};

template <class T, int kX, int kAlgorithm = 0, int kY = 1, int kZ = 1>
class BlockReduce {
 public:
  struct TempStorage {
    T values[kX * kY * kZ];
  };
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  template <class F>
  T Reduce(T value, F f, int valid = kX * kY * kZ, Site site = Site::current()) {
    const unsigned rank = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    storage_.values[rank] = value;
    barrier(site);
    if (rank == 0) {
      for (int i = 1; i < valid; ++i) value = f(value, storage_.values[i]);
    } else poison(&value, sizeof value);
    return value;
  }
  T Sum(T value, int valid = kX * kY * kZ, Site site = Site::current()) {
    return Reduce(value, cub::Sum(), valid, site);
  }

 private:
  TempStorage& storage_;
};

}  // namespace assay::cuda_host::toolkit::cub
