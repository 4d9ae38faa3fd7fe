// y = W·x for W in Q4_K super-blocks on the CPU: decoded in registers, never stored.
#include "ops/q4_k_gemv.hpp"

#include "core/q4_k.hpp"
#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/q4_k_gemv.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/q4_k-inl.hpp"
#include "kernels/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_q4_k_gemv::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// Multiplies one row: one vector sum of its low nibbles and one of its high nibbles. The values of a ragged last
/// super-block are decoded separately; values past k are not multiplied.
float dot_row(Index k, const std::uint8_t* block, const float* x) {
  const Q4kTag d;
  auto low = hn::Zero(d), high = low;
  const auto take = [&](Index at, hn::Vec<Q4kTag> v, hn::Vec<Q4kTag> w) HWY_ATTR {
    low = hn::MulAdd(v, hn::LoadU(d, x + at), low);
    high = hn::MulAdd(w, hn::LoadU(d, x + at + 32), high);
  };
  for (; k >= q4_k::kValues; k -= q4_k::kValues, block += q4_k::kBytes, x += q4_k::kValues) for_each_value(block, take);
  if (k > 0) {
    HWY_ALIGN float values[q4_k::kValues];
    decode(block, values);
    const auto lanes = static_cast<Index>(hn::Lanes(d));
    for (Index j = 0; j < k; j += lanes) {
      const auto mask = hn::FirstN(d, static_cast<std::size_t>(std::min(lanes, k - j)));
      low = hn::MulAdd(hn::IfThenElseZero(mask, hn::Load(d, values + j)), load_masked(d, x + j, mask), low);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
}

void multiply(Index rows, Index k, Rows<const std::uint8_t> blocks, const float* x, float* y) {
  for (Index i = 0; i < rows; ++i) y[i] = dot_row(k, blocks.data + i * blocks.ld, x);
}

}  // namespace
}  // namespace assay::cpu::of_q4_k_gemv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_q4_k_gemv {
namespace {

HWY_EXPORT(multiply);

using ops::Q4KGemvArgs;

/// Sums codes times x, and x, over a sub-block before scaling, as integer kernels do: a scale applies to 32 terms at
/// once, and errors are relative to both parts of a weight.
void by_sub_blocks(const Q4KGemvArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i) {
    float sum = 0.0F;
    for (Index first = 0; first < args.k; first += q4_k::kSubBlock) {
      const std::uint8_t* const block = &args.blocks(i, first / q4_k::kValues * q4_k::kBytes);
      const Index place = first % q4_k::kValues;
      float codes = 0.0F, elements = 0.0F;
      for (Index p = 0; p < std::min(q4_k::kSubBlock, args.k - first); ++p) {
        codes += static_cast<float>(q4_k::code_at(block, place + p)) * args.x(first + p);
        elements += args.x(first + p);
      }
      const q4_k::Line line = q4_k::line_of(block, place / q4_k::kSubBlock);
      sum += line.step * codes - line.minimum * elements;
    }
    args.y(i) = sum;
  }
}

/// The naive kernel in SIMD, two vector sums a row.
void highway(const Q4KGemvArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(multiply)(args.rows, args.k, rows_of(args.blocks), args.x.data(), args.y.data());
}

const KernelRegistration by_sub_blocks_kernel{{.id = "q4_k_gemv/cpu/by_sub_blocks",
                                               .summary = "sums of codes and of x by sub-blocks, scaled once each",
                                               .run = &run_typed<Q4KGemvArgs, &by_sub_blocks>}};
const KernelRegistration highway_kernel{
    {.id = "q4_k_gemv/cpu/highway",
     .summary = "super-blocks decoded in registers, two vector sums per row, one thread",
     .run = &run_typed<Q4KGemvArgs, &highway>,
     .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_q4_k_gemv
#endif
