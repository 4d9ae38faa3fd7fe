// Y = X·Wᵀ on the CPU, W in NF4 codes.
#include "ops/nf4_matmul_nt.hpp"

#include <algorithm>

#include "serve/scratch.hpp"
#include "kernels/cpu/nf4_product.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nf4_matmul_nt.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/nf4-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_nf4_matmul_nt::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// Row j of W times kRows rows of X: every vector of a block has its own sum, so that bits do not depend on kRows.
template <int kRows>
void dot_rows(const Nf4Operand& w, Index j, Rows<const float> x, float* y, Index y_ld) {
  const Nf4Tag d;
  constexpr int kSums = std::min(4, kNf4Vectors);
  Nf4Vec sums[kRows][kSums];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) sums[r][s] = hn::Zero(d);
  const std::uint8_t* codes = w.codes.data + j * w.codes.ld;
  const float* absmax = w.absmax.data + j * w.absmax.ld;
  const Index whole = w.k / kNf4Block, rest = w.k % kNf4Block;
  for (Index b = 0; b < whole; ++b)
    for_each_nf4_vector(codes + b * kNf4Bytes, nf4_scale(absmax[b]), [&](int v, Nf4Vec weights) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
        sums[r][v % kSums] =
            hn::MulAdd(weights, hn::LoadU(d, x.data + r * x.ld + b * kNf4Block + v * kNf4Lanes), sums[r][v % kSums]);
    });
  if (rest > 0)
    for_each_nf4_vector(codes + whole * kNf4Bytes, nf4_scale(absmax[whole]), [&](int v, Nf4Vec weights) {
      const Index left = rest - v * kNf4Lanes;
      if (left <= 0) return;
      // Mask values past the row's end: they may be infinite, and 0 * inf is NaN.
      const auto mask = hn::FirstN(d, static_cast<std::size_t>(std::min(left, kNf4Lanes)));
      const Nf4Vec inside = hn::IfThenElseZero(mask, weights);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
        sums[r][v % kSums] = hn::MulAdd(
            inside, load_masked(d, x.data + r * x.ld + whole * kNf4Block + v * kNf4Lanes, mask), sums[r][v % kSums]);
    });
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    Nf4Vec sum = sums[r][0];
#pragma GCC unroll 4
    for (int s = 1; s < kSums; ++s) sum = hn::Add(sum, sums[r][s]);
    y[r * y_ld + j] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

/// Multiplies for m from 1 to 4.
void multiply_few(const Nf4Operand& w, Index m, Rows<const float> x, Rows<float> y) {
  using Kernel = void (*)(const Nf4Operand&, Index, Rows<const float>, float*, Index);
  static constexpr Kernel kKernels[] = {&dot_rows<1>, &dot_rows<2>, &dot_rows<3>, &dot_rows<4>};
  for (Index j = 0; j < w.n; ++j) kKernels[m - 1](w, j, x, y.data, y.ld);
}

/// Decodes rows [from, from + count) of W to dense rows of floats.
void decode_rows(const Nf4Operand& w, Index from, Index count, float* to) {
  for (Index j = from; j < from + count; ++j)
    for (Index p = 0; p < w.k; p += kNf4Block)
      decode_nf4_block(w.codes.data + j * w.codes.ld + p / 2, nf4_scale(w.absmax.data[j * w.absmax.ld + p / kNf4Block]),
                       std::min(kNf4Block, w.k - p), to + (j - from) * w.k + p);
}

}  // namespace
}  // namespace assay::cpu::of_nf4_matmul_nt::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_nf4_matmul_nt {
namespace {

HWY_EXPORT(multiply_few);
HWY_EXPORT(decode_rows);

using ops::Nf4MatmulNtArgs;

/// The naive kernel in SIMD. Up to four rows of X: decoded weights stay in registers. More: register tiles over panels
/// of 32 rows of W, each decoded once into scratch memory of 128 k bytes.
void highway(const Nf4MatmulNtArgs& args, Device&) {
  constexpr Index kPanel = 32;
  if (args.m == 0 || args.n == 0) return;
  const Nf4Operand w = nf4_operand(args);
  if (args.m <= 4 || args.k == 0) {
    for (Index i = 0; i < args.m; i += 4) HWY_DYNAMIC_DISPATCH(multiply_few)
    (w, std::min<Index>(4, args.m - i), {args.x.data() + i * rows_of(args.x).ld, rows_of(args.x).ld},
     {args.y.data() + i * rows_of(args.y).ld, rows_of(args.y).ld});
    return;
  }
  const Scratch<float> panel(static_cast<std::size_t>(std::min(kPanel, args.n) * args.k));
  for (Index j = 0; j < args.n; j += kPanel) {
    const Index rows = std::min(kPanel, args.n - j);
    HWY_DYNAMIC_DISPATCH(decode_rows)(w, j, rows, panel.data());
    tiled_gemm({args.m,
                args.k,
                rows,
                operand(args.x, false),
                {panel.data(), args.k, true},
                args.y.data() + j,
                leading_dimension(args.y)});
  }
}

const KernelRegistration highway_kernel{
    {.id = "nf4_matmul_nt/cpu/highway",
     .batch_invariant = false,
     .summary = "up to four rows from registers, more over panels of 32 decoded rows",
     .run = &run_typed<Nf4MatmulNtArgs, &highway>,
     .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_nf4_matmul_nt
#endif
