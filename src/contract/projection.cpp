#include "contract/projection.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

// The body is compiled once per instruction set and selected at run time. (target_clones does not work: its resolvers
// run before the sanitizers are initialized.)
#define ASSAY_INLINE [[gnu::always_inline]] inline
#pragma GCC diagnostic ignored "-Wpsabi"  // all functions that pass vectors are inlined

namespace assay::contract {
namespace {

struct Job {
  const float* m;
  Index rows, cols, stride;  ///< stride of the sparse axis; the other axis has stride 1
  const double *x, *w;
  double *first, *second;
};

template <SecondSum beside>
ASSAY_INLINE void add(double& second, double value, double weight) {
  if constexpr (beside == SecondSum::squares) second += value * value;
  if constexpr (beside == SecondSum::magnitudes) second += std::fabs(value) * weight;
}

template <int kLanes>
struct VectorTypes;
template <>
struct VectorTypes<4> {
  using Floats [[gnu::vector_size(16), gnu::aligned(4)]] = float;
  using Doubles [[gnu::vector_size(32), gnu::aligned(8)]] = double;
  using Bits [[gnu::vector_size(32)]] = std::int64_t;
};
template <>
struct VectorTypes<8> {
  using Floats [[gnu::vector_size(32), gnu::aligned(4)]] = float;
  using Doubles [[gnu::vector_size(64), gnu::aligned(8)]] = double;
  using Bits [[gnu::vector_size(64)]] = std::int64_t;
};

/// Vectors of kLanes doubles, the number that an instruction set adds at once.
template <int kLanes>
struct Vectors : VectorTypes<kLanes> {
  using typename VectorTypes<kLanes>::Floats, typename VectorTypes<kLanes>::Doubles, typename VectorTypes<kLanes>::Bits;

  ASSAY_INLINE static void load(Doubles& to, const float* from) {
#if defined(__x86_64__)
    if constexpr (kLanes == 8) {  // gcc 12 otherwise converts two halves and joins them
      asm("vcvtps2pd %1, %0" : "=v"(to) : "v"(*reinterpret_cast<const Floats*>(from)));
      return;
    }
#endif
    to = __builtin_convertvector(*reinterpret_cast<const Floats*>(from), Doubles);
  }
  ASSAY_INLINE static void load(Doubles& to, const double* from) { to = *reinterpret_cast<const Doubles*>(from); }

  template <SecondSum beside>
  ASSAY_INLINE static void add(Doubles& second, const Doubles& value, const Doubles& weight) {
    if constexpr (beside == SecondSum::squares) second += value * value;
    if constexpr (beside == SecondSum::magnitudes)
      second += reinterpret_cast<Doubles>(reinterpret_cast<Bits>(value) & INT64_MAX) * weight;
  }
  ASSAY_INLINE static double total(const Doubles& v) {
    const double low = (v[0] + v[1]) + (v[2] + v[3]);
    if constexpr (kLanes == 4) return low;
    else return low + ((v[4] + v[5]) + (v[6] + v[7]));
  }
};

/// Dense rows: R rows at a time share the loads of x and w.
template <SecondSum beside, int kLanes, int R>
ASSAY_INLINE void dense_rows(const Job& job, Index i) {
  using V = Vectors<kLanes>;
  using Doubles = typename V::Doubles;
  Doubles first[R] = {}, second[R] = {};
  const float* row[R];
  for (int r = 0; r < R; ++r) row[r] = job.m + (i + r) * job.stride;
  Index j = 0;
  for (; j + kLanes <= job.cols; j += kLanes) {
    Doubles x, w = {};
    V::load(x, job.x + j);
    if constexpr (beside == SecondSum::magnitudes) V::load(w, job.w + j);
    for (int r = 0; r < R; ++r) {
      Doubles value;
      V::load(value, row[r] + j);
      first[r] += value * x;
      V::template add<beside>(second[r], value, w);
    }
  }
  for (int r = 0; r < R; ++r) {
    double f = V::total(first[r]), s = V::total(second[r]);
    for (Index t = j; t < job.cols; ++t) {
      f += static_cast<double>(row[r][t]) * job.x[t];
      add<beside>(s, row[r][t], beside == SecondSum::magnitudes ? job.w[t] : 0);
    }
    job.first[i + r] = f;
    if constexpr (beside != SecondSum::nothing) job.second[i + r] = s;
  }
}

/// Dense columns: C columns at a time share the loads and stores of the sums.
template <SecondSum beside, int kLanes, int C>
ASSAY_INLINE void dense_columns(const Job& job, Index begin, Index end, Index j) {
  using V = Vectors<kLanes>;
  using Doubles = typename V::Doubles;
  const float* column[C];
  for (int c = 0; c < C; ++c) column[c] = job.m + (j + c) * job.stride;
  const auto w = [&](int c) { return beside == SecondSum::magnitudes ? job.w[j + c] : 0; };
  Index i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    Doubles first, second = {};
    V::load(first, job.first + i);
    if constexpr (beside != SecondSum::nothing) V::load(second, job.second + i);
    for (int c = 0; c < C; ++c) {
      Doubles value;
      V::load(value, column[c] + i);
      first += value * job.x[j + c];
      const Doubles weight = Doubles{} + w(c);
      V::template add<beside>(second, value, weight);
    }
    *reinterpret_cast<Doubles*>(job.first + i) = first;
    if constexpr (beside != SecondSum::nothing) *reinterpret_cast<Doubles*>(job.second + i) = second;
  }
  for (; i < end; ++i)
    for (int c = 0; c < C; ++c) {
      job.first[i] += static_cast<double>(column[c][i]) * job.x[j + c];
      if constexpr (beside != SecondSum::nothing) add<beside>(job.second[i], column[c][i], w(c));
    }
}

template <SecondSum beside, bool rows_are_dense, int kLanes>
ASSAY_INLINE void run(const Job& job) {
  if constexpr (rows_are_dense) {
    constexpr int kRows = 8;  // enough sums to hide the latency of an addition
    Index i = 0;
    for (; i + kRows <= job.rows; i += kRows) dense_rows<beside, kLanes, kRows>(job, i);
    for (; i < job.rows; ++i) dense_rows<beside, kLanes, 1>(job, i);
  } else {
    constexpr Index kBlock = 1024;  // sums of a block stay in the first-level cache
    for (Index begin = 0; begin < job.rows; begin += kBlock) {
      const Index end = std::min(begin + kBlock, job.rows);
      Index j = 0;
      for (; j + 4 <= job.cols; j += 4) dense_columns<beside, kLanes, 4>(job, begin, end, j);
      for (; j < job.cols; ++j) dense_columns<beside, kLanes, 1>(job, begin, end, j);
    }
  }
}

template <SecondSum beside, bool rows_are_dense>
void run_plain(const Job& job) {
  run<beside, rows_are_dense, 4>(job);
}
#if defined(__x86_64__)
template <SecondSum beside, bool rows_are_dense>
[[gnu::target("arch=x86-64-v3")]] void run_v3(const Job& job) {
  run<beside, rows_are_dense, 4>(job);
}
template <SecondSum beside, bool rows_are_dense>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void run_v4(const Job& job) {
  run<beside, rows_are_dense, 8>(job);
}
#endif

template <SecondSum beside, bool rows_are_dense>
void dispatch(const Job& job) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd"))
    return run_v4<beside, rows_are_dense>(job);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    return run_v3<beside, rows_are_dense>(job);
#endif
  run_plain<beside, rows_are_dense>(job);
}

/// Plain loops if neither axis is dense.
template <SecondSum beside>
void strided(View<const float> m, const Job& job) {
  for (Index i = 0; i < job.rows; ++i) {
    double first = 0, second = 0;
    for (Index j = 0; j < job.cols; ++j) {
      first += static_cast<double>(m(i, j)) * job.x[j];
      add<beside>(second, m(i, j), beside == SecondSum::magnitudes ? job.w[j] : 0);
    }
    job.first[i] = first;
    if constexpr (beside != SecondSum::nothing) job.second[i] = second;
  }
}

template <SecondSum beside>
void project_as(View<const float> m, Job job) {
  if (job.cols == 0) {
    std::fill_n(job.first, job.rows, 0.0);
    if (beside != SecondSum::nothing) std::fill_n(job.second, job.rows, 0.0);
  } else if (m.stride(1) == 1 || job.cols == 1) {
    job.stride = m.stride(0);
    dispatch<beside, true>(job);
  } else if (m.stride(0) == 1 || job.rows == 1) {
    job.stride = m.stride(1);
    std::fill_n(job.first, job.rows, 0.0);
    if (beside != SecondSum::nothing) std::fill_n(job.second, job.rows, 0.0);
    dispatch<beside, false>(job);
  } else {
    strided<beside>(m, job);
  }
}

}  // namespace

void project(SecondSum beside, View<const float> m, const double* x, const double* w, double* first, double* second) {
  const Job job{m.data(), m.dim(0), m.dim(1), 1, x, w, first, second};
  switch (beside) {
    case SecondSum::nothing: return project_as<SecondSum::nothing>(m, job);
    case SecondSum::magnitudes: return project_as<SecondSum::magnitudes>(m, job);
    case SecondSum::squares: return project_as<SecondSum::squares>(m, job);
  }
}

}  // namespace assay::contract
