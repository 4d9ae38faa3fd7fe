// Wrong products C = A · B. One blocked kernel; each fault is one deviation from it.
#include "ops/matmul.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <thread>
#include <vector>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::matmul_mutants {
namespace {

enum class Fault {
  none, dropped_last_k, k_tile_floor, swapped_grid, b_transposed, column_major_store, width_as_stride, stale_accumulator,
  edge_rows_unwritten, edge_columns_unwritten, store_past_row, store_past_end, read_past_row, bf16_inputs, tf32_inputs,
  tf32_truncated, bf16_accumulator, f16_accumulator, wrong_alpha, zero_skipped, nan_swallowed, accumulates, cached_shape,
  single_row, input_clobbered, k_used_twice, off_by_one_stride, small_flushed, saturates, first_call_only, crash, hang,
  exit_call, last_element_scaled, sum_saved_for_even_k, wrong_tail_row, one_element_at_large,
};

constexpr Index kTile = 16;

template <Fault F>
float element(const ops::MatmulArgs& args, Index i, Index j) {
  const Index lda = F == Fault::width_as_stride ? args.k : args.a.stride(0);
  const Index ldb = F == Fault::width_as_stride ? args.n : args.b.stride(0) + (F == Fault::off_by_one_stride ? 1 : 0);
  const auto a = [&](Index p) { return args.a.data()[i * lda + p]; };
  const auto b = [&](Index p) {
    return F == Fault::b_transposed ? args.b.data()[j * args.b.stride(0) + p] : args.b.data()[p * ldb + j];
  };
  Index k = args.k;
  if (F == Fault::dropped_last_k) k = std::max<Index>(k - 1, 0);
  if (F == Fault::k_tile_floor) k = k / kTile * kTile;
  if (F == Fault::read_past_row) k = k + 1;
  float sum = 0;
  for (Index tile = 0; tile < k; tile += kTile) {
    if (F == Fault::k_used_twice && tile == 2 * kTile) sum += a(tile - 1) * b(tile - 1);
    for (Index p = tile; p < std::min(tile + kTile, k); ++p) {
      float x = a(p), y = b(p);
      if (F == Fault::bf16_inputs) x = rounded(x, 8), y = rounded(y, 8);
      if (F == Fault::tf32_inputs) x = rounded(x, 11), y = rounded(y, 11);
      if (F == Fault::tf32_truncated) x = truncated(x, 11), y = truncated(y, 11);
      if (F == Fault::zero_skipped && (x == 0 || y == 0)) continue;
      if (F == Fault::nan_swallowed && std::isnan(x * y)) continue;
      if (F == Fault::small_flushed && std::fabs(x) < 1e-5f) x = 0;
      sum += x * y;
      if (F == Fault::bf16_accumulator) sum = rounded(sum, 8);
      if (F == Fault::f16_accumulator) sum = rounded(sum, 11);
      if (F == Fault::saturates) sum = std::clamp(sum, -65504.0f, 65504.0f);
    }
  }
  if (F == Fault::wrong_alpha) sum *= 1.0001f;
  if (F == Fault::last_element_scaled && i == args.m - 1 && j == args.n - 1) sum *= 1.001f;
  if (F == Fault::one_element_at_large && i == 512 && j == 512) sum += 1;
  if (F == Fault::sum_saved_for_even_k && args.k > 1 && args.k % 2 == 0) sum -= a(0) * b(0) * 0x1p-10f;
  return sum;
}

template <Fault F>
void mutant(const ops::MatmulArgs& given, Device&) {
  ops::MatmulArgs args = given;
  static int calls = 0;
  ++calls;
  if (F == Fault::cached_shape) {
    static const Index first_n = args.n, first_k = args.k;
    args.n = std::min(args.n, first_n), args.k = std::min(args.k, first_k);
  }
  if (F == Fault::swapped_grid) std::swap(args.m, args.n);
  if (F == Fault::single_row) args.m = std::min<Index>(args.m, 1);
  if (F == Fault::edge_rows_unwritten) args.m = args.m / kTile * kTile;
  if (F == Fault::edge_columns_unwritten) args.n = args.n / 4 * 4;
  if (F == Fault::crash && args.k == 17) raise(SIGSEGV);
  if (F == Fault::hang && args.n % 33 == 32) pause();
  if (F == Fault::exit_call && args.m == 3) _exit(0);
  float stale = 0;
  const Index ldc = F == Fault::column_major_store ? 1 : args.c.stride(0);
  const Index step = F == Fault::column_major_store ? args.c.stride(0) : 1;
  for (Index i = 0; i < args.m; ++i) {
    for (Index j = 0; j < args.n; ++j) {
      float& c = args.c.data()[i * ldc + j * step];
      float value = element<F>(args, i, j);
      if (F == Fault::stale_accumulator && j % kTile != 0) value += 0.5f * stale;
      if (F == Fault::accumulates) value += c;
      if (F == Fault::first_call_only && calls > 1) continue;
      if (F == Fault::wrong_tail_row && i == args.m - 1 && args.m % 4 == 3) value = element<F>(args, i - 1, j);
      c = value;
      stale = value;
    }
    if (F == Fault::store_past_row && args.n > 0 && args.n % 4 != 0) args.c.data()[i * ldc + args.n] = stale;
  }
  if (F == Fault::store_past_end && args.m * args.n > 0) args.c.data()[args.c.extent()] = stale;
  if (F == Fault::input_clobbered && args.m * args.k > 0) const_cast<float&>(args.a(args.m - 1, args.k - 1)) = 0;
}

/// Two threads add their halves of K into C without a lock. A thread gives way between reading and writing at times, as the
/// scheduler would make it: on a busy machine they would not meet otherwise.
void race(const ops::MatmulArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.c(i, j) = 0;
  const auto half = [&](Index from, Index to) {
    for (Index p = from; p < to; ++p)
      for (Index i = 0; i < args.m; ++i)
        for (Index j = 0; j < args.n; ++j) {
          volatile float& c = args.c(i, j);
          const float before = c;
          if (j == 0) std::this_thread::yield();
          c = before + args.a(i, p) * args.b(p, j);
        }
  };
  std::thread other(half, 0, args.k / 2);
  half(args.k / 2, args.k);
  other.join();
}

using Dense = std::vector<float>;

/// One level of Strassen's algorithm on even sizes: norm-wise accurate, element-wise not.
void strassen(const ops::MatmulArgs& args, Device& device) {
  if (args.m % 2 || args.k % 2 || args.n % 2 || args.m < 2 || args.k < 2 || args.n < 2)
    return mutant<Fault::none>(args, device);
  const Index m = args.m / 2, k = args.k / 2, n = args.n / 2;
  const auto a = [&](int q, Index i, Index p) { return args.a(i + (q / 2) * m, p + (q % 2) * k); };
  const auto b = [&](int q, Index p, Index j) { return args.b(p + (q / 2) * k, j + (q % 2) * n); };
  struct Term { int x, y; float sign; };
  const auto product = [&](Term ta, Term tb) {
    Dense c(static_cast<std::size_t>(m * n));
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j)
        for (Index p = 0; p < k; ++p)
          c[static_cast<std::size_t>(i * n + j)] += (a(ta.x, i, p) + (ta.y < 0 ? 0 : ta.sign * a(ta.y, i, p))) *
                                                    (b(tb.x, p, j) + (tb.y < 0 ? 0 : tb.sign * b(tb.y, p, j)));
    return c;
  };
  const Dense m1 = product({0, 3, 1}, {0, 3, 1}), m2 = product({2, 3, 1}, {0, -1, 0}), m3 = product({0, -1, 0}, {1, 3, -1}),
              m4 = product({3, -1, 0}, {2, 0, -1}), m5 = product({0, 1, 1}, {3, -1, 0}), m6 = product({2, 0, -1}, {0, 1, 1}),
              m7 = product({1, 3, -1}, {2, 3, 1});
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(i * n + j);
      args.c(i, j) = m1[at] + m4[at] - m5[at] + m7[at];
      args.c(i, j + n) = m3[at] + m5[at];
      args.c(i + m, j) = m2[at] + m4[at];
      args.c(i + m, j + n) = m1[at] - m2[at] + m3[at] + m6[at];
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::MatmulArgs, &mutant<F>>("matmul", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::dropped_last_k>("mutant/cpu/matmul/dropped_last_k", "the last k is not added"),
    add<Fault::k_tile_floor>("mutant/cpu/matmul/k_tile_floor", "floor instead of ceiling of K / 16 (bug 8)"),
    add<Fault::swapped_grid>("mutant/cpu/matmul/swapped_grid", "m and n exchanged in the grid (bug 1)"),
    add<Fault::b_transposed>("mutant/cpu/matmul/b_transposed", "B read as its transpose (bugs 3, 4)"),
    add<Fault::column_major_store>("mutant/cpu/matmul/column_major_store", "C stored column-major (bug 6)"),
    add<Fault::width_as_stride>("mutant/cpu/matmul/width_as_stride", "width used as leading dimension (bug 39)"),
    add<Fault::off_by_one_stride>("mutant/cpu/matmul/off_by_one_stride", "leading dimension of B off by one"),
    add<Fault::stale_accumulator>("mutant/cpu/matmul/stale_accumulator", "the accumulator keeps half of its last value"),
    add<Fault::edge_rows_unwritten>("mutant/cpu/matmul/edge_rows_unwritten", "rows past the last whole tile unwritten"),
    add<Fault::edge_columns_unwritten>("mutant/cpu/matmul/edge_columns_unwritten", "columns past the last whole vector unwritten"),
    add<Fault::store_past_row>("mutant/cpu/matmul/store_past_row", "one store past each row (bug 2)"),
    add<Fault::store_past_end>("mutant/cpu/matmul/store_past_end", "one store past the end (bug 16)"),
    add<Fault::read_past_row>("mutant/cpu/matmul/read_past_row", "one k too many is read and added (bug 7)"),
    add<Fault::bf16_inputs>("mutant/cpu/matmul/bf16_inputs", "inputs rounded to bfloat16 (bug 88)"),
    add<Fault::tf32_inputs>("mutant/cpu/matmul/tf32_inputs", "inputs rounded to TF32"),
    add<Fault::tf32_truncated>("mutant/cpu/matmul/tf32_truncated", "inputs truncated to TF32"),
    add<Fault::bf16_accumulator>("mutant/cpu/matmul/bf16_accumulator", "partial sums held in bfloat16"),
    add<Fault::f16_accumulator>("mutant/cpu/matmul/f16_accumulator", "partial sums held with 11 bits"),
    add<Fault::wrong_alpha>("mutant/cpu/matmul/wrong_alpha", "the product is scaled by 1.0001"),
    add<Fault::zero_skipped>("mutant/cpu/matmul/zero_skipped", "zero operands skipped: 0 * Inf is lost"),
    add<Fault::nan_swallowed>("mutant/cpu/matmul/nan_swallowed", "terms that are NaN are left out"),
    add<Fault::accumulates>("mutant/cpu/matmul/accumulates", "adds to what C held (bug 25)"),
    add<Fault::cached_shape>("mutant/cpu/matmul/cached_shape", "the first call's n and k are kept (bug 27)"),
    add<Fault::single_row>("mutant/cpu/matmul/single_row", "a single-row kernel run for a batch (bug 43)"),
    add<Fault::input_clobbered>("mutant/cpu/matmul/input_clobbered", "an input is written"),
    add<Fault::k_used_twice>("mutant/cpu/matmul/k_used_twice", "one k of the third tile added twice"),
    add<Fault::small_flushed>("mutant/cpu/matmul/small_flushed", "elements below 1e-5 treated as zero"),
    add<Fault::saturates>("mutant/cpu/matmul/saturates", "partial sums clamped to the range of f16"),
    add<Fault::first_call_only>("mutant/cpu/matmul/first_call_only", "writes only on the first call of the process"),
    add<Fault::crash>("mutant/cpu/matmul/crash", "dies of a signal at k = 17"),
    add<Fault::hang>("mutant/cpu/matmul/hang", "does not return for some n"),
    add<Fault::exit_call>("mutant/cpu/matmul/exit_call", "ends the process at m = 3"),
    add<Fault::last_element_scaled>("mutant/cpu/matmul/last_element_scaled", "the last element is 0.1% too large"),
    add<Fault::sum_saved_for_even_k>("mutant/cpu/matmul/first_term_reduced", "the first term 0.1% short where k is even"),
    add<Fault::one_element_at_large>("mutant/cpu/matmul/one_element_at_large", "c[512, 512] is 1 too large"),
    add<Fault::wrong_tail_row>("mutant/cpu/matmul/wrong_tail_row", "the last row repeats the one before for m % 4 = 3"),
    cpu_mutant<ops::MatmulArgs, &race>("matmul", "mutant/cpu/matmul/race", "two threads add into C without a lock (bug 28)"),
    cpu_mutant<ops::MatmulArgs, &strassen>("matmul", "mutant/cpu/matmul/strassen", "one level of Strassen: no element-wise bound"),
};

}  // namespace
}  // namespace assay::mutants::matmul_mutants
