// DX = DY·W on the CPU, W in NF4 codes.
#include "ops/nf4_matmul.hpp"

#include <algorithm>

#include "serve/scratch.hpp"
#include "kernels/cpu/nf4_product.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nf4_matmul.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/nf4-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_nf4_matmul::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// dx += dy[j] w[j,:] for a row of W and 1 to 4 rows of dy; the rows of dx stay in the cache.
void add_row(const Nf4Operand& w, Index j, Index m, const float* dy, Index dy_ld, Rows<float> dx) {
  const Nf4Tag d;
  const std::uint8_t* codes = w.codes.data + j * w.codes.ld;
  for (Index p = 0; p < w.k; p += kNf4Block)
    for_each_nf4_vector(codes + p / 2, nf4_scale(w.absmax.data[j * w.absmax.ld + p / kNf4Block]),
                        [&](int v, Nf4Vec weights) {
                          const Index at = p + v * kNf4Lanes, left = w.k - at;
                          if (left <= 0) return;
                          for (Index i = 0; i < m; ++i) {
                            float* const to = dx.data + i * dx.ld + at;
                            const Nf4Vec factor = hn::Set(d, dy[i * dy_ld]);
                            if (left >= kNf4Lanes) {
                              hn::StoreU(hn::MulAdd(factor, weights, hn::LoadU(d, to)), d, to);
                            } else {
                              const auto mask = hn::FirstN(d, static_cast<std::size_t>(left));
                              store_masked(hn::MulAdd(factor, weights, load_masked(d, to, mask)), d, to, mask);
                            }
                          }
                        });
}

/// Multiplies for m from 1 to 4.
void multiply_few_plain(const Nf4Operand& w, Index m, Rows<const float> dy, Rows<float> dx) {
  for (Index i = 0; i < m; ++i) std::fill_n(dx.data + i * dx.ld, w.k, 0.0F);
  for (Index j = 0; j < w.n; ++j) add_row(w, j, m, dy.data + j, dy.ld, dx);
}

/// Decodes columns [from, from + count) of W to floats [n, count]; from is a multiple of 64.
void decode_columns(const Nf4Operand& w, Index from, Index count, float* to) {
  for (Index j = 0; j < w.n; ++j)
    for (Index p = 0; p < count; p += kNf4Block)
      decode_nf4_block(w.codes.data + j * w.codes.ld + (from + p) / 2,
                       nf4_scale(w.absmax.data[j * w.absmax.ld + (from + p) / kNf4Block]),
                       std::min(kNf4Block, count - p), to + j * count + p);
}

}  // namespace
}  // namespace assay::cpu::of_nf4_matmul::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_nf4_matmul {
namespace {

HWY_EXPORT(multiply_few_plain);
HWY_EXPORT(decode_columns);

using ops::Nf4MatmulArgs;

/// The naive kernel in SIMD. Up to four rows of DY: decoded weights stay in registers. More: register tiles over panels
/// of 128 columns of W, each decoded once into scratch memory of 512 n bytes.
void highway(const Nf4MatmulArgs& args, Device&) {
  constexpr Index kPanel = 2 * kNf4Block;
  if (args.m == 0 || args.k == 0) return;
  const Nf4Operand w = nf4_operand(args);
  if (args.m <= 4 || args.n == 0) {
    for (Index i = 0; i < args.m; i += 4) HWY_DYNAMIC_DISPATCH(multiply_few_plain)
    (w, std::min<Index>(4, args.m - i), {args.dy.data() + i * rows_of(args.dy).ld, rows_of(args.dy).ld},
     {args.dx.data() + i * rows_of(args.dx).ld, rows_of(args.dx).ld});
    return;
  }
  const Scratch<float> panel(static_cast<std::size_t>(std::min(kPanel, args.k) * args.n));
  for (Index p = 0; p < args.k; p += kPanel) {
    const Index columns = std::min(kPanel, args.k - p);
    HWY_DYNAMIC_DISPATCH(decode_columns)(w, p, columns, panel.data());
    tiled_gemm({args.m,
                args.n,
                columns,
                operand(args.dy, false),
                {panel.data(), columns, false},
                args.dx.data() + p,
                leading_dimension(args.dx)});
  }
}

const KernelRegistration highway_kernel{
    {.id = "nf4_matmul/cpu/highway",
     .batch_invariant = false,
     .summary = "up to four rows from registers, more over panels of 128 decoded columns",
     .run = &run_typed<Nf4MatmulArgs, &highway>,
     .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_nf4_matmul
#endif
