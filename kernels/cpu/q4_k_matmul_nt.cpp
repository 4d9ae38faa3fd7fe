// Y = X·Wᵀ for W in Q4_K super-blocks on the CPU.
#include "ops/q4_k_matmul_nt.hpp"

#include <algorithm>

#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/gemm.hpp"
#include "runtime/registry.hpp"
#include "serve/scratch.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/q4_k_matmul_nt.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/q4_k-inl.hpp"
#include "kernels/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_q4_k_matmul_nt::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// A row of W times kRows rows of X: each has a vector sum of low nibbles and one of high nibbles, so that bits do not
/// depend on kRows.
template <int kRows>
void dot_rows(Index k, const std::uint8_t* block, Rows<const float> x, float* y, Index y_ld) {
  const Q4kTag d;
  hn::Vec<Q4kTag> low[kRows], high[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) low[r] = high[r] = hn::Zero(d);
  Index first = 0;
  for (; first + q4_k::kValues <= k; first += q4_k::kValues, block += q4_k::kBytes)
    for_each_value(block, [&](Index at, hn::Vec<Q4kTag> v, hn::Vec<Q4kTag> w) HWY_ATTR {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const float* const from = x.data + r * x.ld + first + at;
        low[r] = hn::MulAdd(v, hn::LoadU(d, from), low[r]);
        high[r] = hn::MulAdd(w, hn::LoadU(d, from + 32), high[r]);
      }
    });
  if (first < k) {
    HWY_ALIGN float values[q4_k::kValues];
    decode(block, values);
    const auto lanes = static_cast<Index>(hn::Lanes(d));
    for (Index p = first; p < k; p += lanes) {
      // Values past k are not multiplied: they may be infinite.
      const auto mask = hn::FirstN(d, static_cast<std::size_t>(std::min(lanes, k - p)));
      const auto v = hn::IfThenElseZero(mask, hn::Load(d, values + (p - first)));
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) low[r] = hn::MulAdd(v, load_masked(d, x.data + r * x.ld + p, mask), low[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) y[r * y_ld] = hn::GetLane(hn::SumOfLanes(d, hn::Add(low[r], high[r])));
}

/// Multiplies for m from 1 to 4.
void multiply_few(Index m, Index k, Index n, Rows<const std::uint8_t> blocks, Rows<const float> x, Rows<float> y) {
  using Kernel = void (*)(Index, const std::uint8_t*, Rows<const float>, float*, Index);
  static constexpr Kernel kKernels[] = {&dot_rows<1>, &dot_rows<2>, &dot_rows<3>, &dot_rows<4>};
  for (Index j = 0; j < n; ++j) kKernels[m - 1](k, blocks.data + j * blocks.ld, x, y.data + j, y.ld);
}

/// Decodes rows [from, from + count) of W to rows of floats of whole super-blocks.
void decode_rows(Index k, Rows<const std::uint8_t> blocks, Index from, Index count, float* to) {
  for (Index j = from; j < from + count; ++j)
    for (Index n = 0; n < q4_k::blocks_of(k); ++n, to += q4_k::kValues)
      decode(blocks.data + j * blocks.ld + n * q4_k::kBytes, to);
}

}  // namespace
}  // namespace assay::cpu::of_q4_k_matmul_nt::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_q4_k_matmul_nt {
namespace {

HWY_EXPORT(multiply_few);
HWY_EXPORT(decode_rows);

using ops::Q4KMatmulNtArgs;

/// The naive kernel in SIMD. Up to four rows of X: decoded weights stay in registers. More: register tiles over panels
/// of 32 rows of W, each decoded once into scratch memory of 128 k bytes.
void highway(const Q4KMatmulNtArgs& args, Device&) {
  constexpr Index kPanel = 32;
  if (args.m == 0 || args.n == 0) return;
  const auto blocks = rows_of(args.blocks);
  if (args.m <= 4 || args.k == 0) {
    const auto x = rows_of(args.x);
    const auto y = rows_of(args.y);
    for (Index i = 0; i < args.m; i += 4) HWY_DYNAMIC_DISPATCH(multiply_few)
    (std::min<Index>(4, args.m - i), args.k, args.n, blocks, {x.data + i * x.ld, x.ld}, {y.data + i * y.ld, y.ld});
    return;
  }
  const Index width = q4_k::blocks_of(args.k) * q4_k::kValues;
  const Scratch<float> panel(static_cast<std::size_t>(std::min(kPanel, args.n) * width));
  for (Index j = 0; j < args.n; j += kPanel) {
    const Index rows = std::min(kPanel, args.n - j);
    HWY_DYNAMIC_DISPATCH(decode_rows)(args.k, blocks, j, rows, panel.data());
    tiled_gemm({args.m,
                args.k,
                rows,
                operand(args.x, false),
                {panel.data(), width, true},
                args.y.data() + j,
                leading_dimension(args.y)});
  }
}

const KernelRegistration highway_kernel{
    {.id = "q4_k_matmul_nt/cpu/highway",
     .batch_invariant = false,
     .summary = "up to four rows from registers, more over panels of 32 decoded rows",
     .run = &run_typed<Q4KMatmulNtArgs, &highway>,
     .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_q4_k_matmul_nt
#endif
