// Wrong codecs of NF4, and wrong products with a matrix in its codes.
#include <algorithm>
#include <cmath>

#include "core/nf4.hpp"
#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"
#include "ops/nf4_dequantize.hpp"
#include "ops/nf4_matmul.hpp"
#include "ops/nf4_matmul_nt.hpp"
#include "ops/nf4_quantize.hpp"

namespace assay::mutants::nf4_mutants {
namespace {

enum class Decode {
  nibbles_swapped, halves_apart, blocks_over_rows, one_scale_a_row, floor_of_blocks, block_of_32, entry_off, uniform_levels,
  first_row_only, f16_scale, padding_written, width_as_stride, nan_swallowed, scale_of_next
};

template <Decode F>
void decode(const ops::Nf4DequantizeArgs& args, Device&) {
  const Index blocks = nf4_blocks(args.k);
  const Index columns = F == Decode::floor_of_blocks && args.k > kNf4Block ? args.k / kNf4Block * kNf4Block
                        : F == Decode::padding_written                     ? (args.k + 1) / 2 * 2
                                                                           : args.k;
  for (Index j = 0; j < (F == Decode::first_row_only ? std::min<Index>(1, args.n) : args.n); ++j)
    for (Index p = 0; p < columns; ++p) {
      unsigned code = nf4_code(&args.codes(j, 0), p);
      if (F == Decode::nibbles_swapped) code = nf4_code(&args.codes(j, 0), p ^ 1);
      if (F == Decode::halves_apart) {  // as Q4_0 packs them: low bits the first half of a block, high bits the second
        const unsigned pair = args.codes(j, p / kNf4Block * kNf4Bytes + p % kNf4Bytes);
        code = p % kNf4Block < kNf4Bytes ? pair & 15U : pair >> 4U;
      }
      Index b = p / kNf4Block, row = j;
      if (F == Decode::one_scale_a_row) b = 0;
      if (F == Decode::block_of_32) b = std::min(p / 32, blocks - 1);
      if (F == Decode::scale_of_next) b = std::min(b + (p % kNf4Block == 63 ? 1 : 0), blocks - 1);
      if (F == Decode::blocks_over_rows) row = (j * args.k + p) / kNf4Block / blocks, b = (j * args.k + p) / kNf4Block % blocks;
      float scale = nf4_scale(args.absmax(row, b));
      if (F == Decode::f16_scale) scale = rounded(scale, 11);
      if (F == Decode::nan_swallowed && std::isnan(scale)) scale = 0;
      float entry = kNf4[code];
      if (F == Decode::entry_off && code == 8) entry = 0.0796F;
      if (F == Decode::uniform_levels) entry = (static_cast<float>(code) - 7) / 8;
      args.y.data()[j * (F == Decode::width_as_stride ? args.k : args.y.stride(0)) + p] = entry * scale;
    }
}

template <Decode F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::Nf4DequantizeArgs, &decode<F>>("nf4_dequantize", id, fault);
}

enum class Encode {
  quotient_compared, tie_goes_up, signed_max, blocks_over_rows, zero_divided, nan_swallowed, infinity_kept, padding_zero,
  nibbles_swapped, midpoint_off, floor_to_entry, scale_of_row, tiny_kept, last_of_block_not_in_max, truncated
};

template <Encode F>
unsigned encode_one(float x, float scale) {
  if (F != Encode::zero_divided && !(scale > 0)) return kNf4Zero;
  unsigned above = 0;
  for (std::size_t i = 0; i < kNf4Midpoints.size(); ++i) {
    float limit = kNf4Midpoints[i];
    if (F == Encode::midpoint_off && i == 9) limit = std::nextafter(limit, 1.0F);
    if (F == Encode::floor_to_entry) limit = kNf4[i + 1];
    if (F == Encode::quotient_compared || F == Encode::zero_divided) above += x / scale > limit ? 1U : 0U;
    else if (F == Encode::tie_goes_up) above += x >= limit * scale ? 1U : 0U;
    else if (F == Encode::truncated) above += x > rounded(limit * scale, 11) ? 1U : 0U;
    else above += x > limit * scale ? 1U : 0U;
  }
  return above;
}

template <Encode F>
void encode(const ops::Nf4QuantizeArgs& args, Device&) {
  const Index blocks = nf4_blocks(args.k);
  for (Index j = 0; j < args.n; ++j)
    for (Index b = 0; b < blocks; ++b) {
      const Index first = b * kNf4Block, end = std::min(args.k, first + kNf4Block);
      float most = 0;
      bool finite = true;
      const auto look = [&](float x) {
        finite = finite && (F == Encode::infinity_kept ? !std::isnan(x) : std::isfinite(x));
        most = std::max(most, F == Encode::signed_max ? x : std::fabs(x));
      };
      for (Index p = F == Encode::scale_of_row ? 0 : first; p < (F == Encode::scale_of_row ? args.k : end); ++p) {
        if (F == Encode::last_of_block_not_in_max && p == first + 63) continue;
        if (F == Encode::blocks_over_rows) {
          const Index flat = j * blocks * kNf4Block + p;
          if (flat < args.n * args.k) look(args.x(flat / args.k, flat % args.k));
        } else {
          look(args.x(j, p));
        }
      }
      float scale = F == Encode::tiny_kept ? most : nf4_scale(most);
      if (F != Encode::nan_swallowed && !finite) scale = NAN;
      args.absmax(j, b) = scale;
      const auto code = [&](Index p) { return p < end ? encode_one<F>(args.x(j, p), scale) : F == Encode::padding_zero ? 0U : 7U; };
      for (Index i = 0; i < kNf4Bytes; ++i) {
        const unsigned even = code(first + 2 * i), odd = code(first + 2 * i + 1);
        args.codes(j, b * kNf4Bytes + i) =
            static_cast<std::uint8_t>(F == Encode::nibbles_swapped ? odd << 4U | even : even << 4U | odd);
      }
    }
}

template <Encode F>
KernelRegistration add_encoder(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::Nf4QuantizeArgs, &encode<F>>("nf4_quantize", id, fault);
}

enum class Product {
  nibbles_swapped, blocks_over_rows, scale_of_32, tail_dropped, padding_multiplied, transposed, bf16_weights,
  f16_weights, first_row_only, zeros_skipped, stale, one_element_at_large, nothing, last_scale_of_row, long_sum_cut, bf16_x,
  small_scale_kept
};

/// Element (j, p) of W.
template <Product F, class Args>
float weight(const Args& args, Index j, Index p) {
  const Index blocks = nf4_blocks(args.k);
  Index row = j, b = p / kNf4Block;
  if (F == Product::blocks_over_rows) row = (j * args.k + p) / kNf4Block / blocks, b = (j * args.k + p) / kNf4Block % blocks;
  if (F == Product::scale_of_32) b = std::min(p / 32, blocks - 1);
  if (F == Product::last_scale_of_row) b = blocks - 1;
  const float absmax = args.absmax(row, b);
  const float w = kNf4[nf4_code(&args.codes(j, 0), F == Product::nibbles_swapped ? p ^ 1 : p)] *
                  (F == Product::small_scale_kept ? absmax : nf4_scale(absmax));
  if (F == Product::bf16_weights) return rounded(w, 8);
  if (F == Product::f16_weights) return rounded(w, 11);
  return w;
}

/// c[i,o] = sum over `terms` of a[i,t] w, where at(o, t) is the element of W.
template <Product F, class A, class C, class At>
void multiply(const A& a, const C& c, Index terms, At at) {
  if (F == Product::nothing) return;
  if (F == Product::tail_dropped && terms > 32) terms = terms / 32 * 32;
  if (F == Product::long_sum_cut) terms = std::min<Index>(terms, 8192);
  for (Index i = 0; i < (F == Product::first_row_only ? std::min<Index>(1, c.dim(0)) : c.dim(0)); ++i)
    for (Index o = 0; o < c.dim(1); ++o) {
      float sum = 0;
      for (Index t = 0; t < terms; ++t) {
        const float x = F == Product::bf16_x ? rounded(a(i, t), 8) : a(i, t);
        if (F == Product::zeros_skipped && x == 0) continue;
        sum += x * at(o, t);
      }
      if (F == Product::one_element_at_large && o == 512 && i > 512) sum += 1;
      c(i, o) = F == Product::stale ? c(i, o) + sum : sum;
    }
}

template <Product F>
void product_nt(const ops::Nf4MatmulNtArgs& args, Device&) {
  const bool exchange = F == Product::transposed && args.n == args.k;
  multiply<F>(args.x, args.y, args.k,
              [&](Index j, Index p) { return exchange ? weight<F>(args, p, j) : weight<F>(args, j, p); });
  if (F == Product::padding_multiplied)  // as if x had zeros there
    for (Index i = 0; i < args.m; ++i)
      for (Index j = 0; j < args.n; ++j)
        for (Index p = args.k; p < nf4_blocks(args.k) * kNf4Block; ++p) args.y(i, j) += 0.0F * weight<F>(args, j, p);
}

template <Product F>
void product_plain(const ops::Nf4MatmulArgs& args, Device&) {
  const bool exchange = F == Product::transposed && args.n == args.k;
  multiply<F>(args.dy, args.dx, args.n,
              [&](Index p, Index j) { return exchange ? weight<F>(args, p, j) : weight<F>(args, j, p); });
}

template <Product F>
KernelRegistration add_nt(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::Nf4MatmulNtArgs, &product_nt<F>>("nf4_matmul_nt", id, fault);
}
template <Product F>
KernelRegistration add_plain(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::Nf4MatmulArgs, &product_plain<F>>("nf4_matmul", id, fault);
}

const KernelRegistration registrations[] = {
    add<Decode::nibbles_swapped>("mutant/cpu/nf4_dequantize/nibbles_swapped", "the earlier element in the low bits (bug 83)"),
    add<Decode::halves_apart>("mutant/cpu/nf4_dequantize/halves_apart", "a byte holds elements half a block apart (bugs 83, 84)"),
    add<Decode::blocks_over_rows>("mutant/cpu/nf4_dequantize/blocks_over_rows", "blocks counted over rows (bug 7)"),
    add<Decode::one_scale_a_row>("mutant/cpu/nf4_dequantize/one_scale_a_row", "the first scale for all blocks (bug 85)"),
    add<Decode::scale_of_next>("mutant/cpu/nf4_dequantize/scale_of_next",
                               "the last element of a block takes the next scale (bug 85)"),
    add<Decode::floor_of_blocks>("mutant/cpu/nf4_dequantize/floor_of_blocks", "floor instead of ceiling of k / 64 (bug 8)"),
    add<Decode::block_of_32>("mutant/cpu/nf4_dequantize/block_of_32", "a scale for 32 elements (bug 86)"),
    add<Decode::entry_off>("mutant/cpu/nf4_dequantize/entry_off", "entry 8 of the codebook in three digits"),
    add<Decode::uniform_levels>("mutant/cpu/nf4_dequantize/uniform_levels", "decoded as Q4_0: (q - 7) / 8 (bugs 81, 89)"),
    add<Decode::first_row_only>("mutant/cpu/nf4_dequantize/first_row_only", "one row is decoded of a matrix (bug 43)"),
    add<Decode::f16_scale>("mutant/cpu/nf4_dequantize/f16_scale", "the scale is held with 11 bits (bug 87)"),
    add<Decode::padding_written>("mutant/cpu/nf4_dequantize/padding_written", "both elements of the last byte are stored (bug 16)"),
    add<Decode::width_as_stride>("mutant/cpu/nf4_dequantize/width_as_stride", "k used as leading dimension of y (bug 39)"),
    add<Decode::nan_swallowed>("mutant/cpu/nf4_dequantize/nan_swallowed", "a NaN scale counts as 0"),
    add_encoder<Encode::quotient_compared>("mutant/cpu/nf4_quantize/quotient_compared", "x / absmax is compared with the midpoint"),
    add_encoder<Encode::tie_goes_up>("mutant/cpu/nf4_quantize/tie_goes_up", "a tie takes the upper code"),
    add_encoder<Encode::signed_max>("mutant/cpu/nf4_quantize/signed_max", "the maximum is of x, not of |x|"),
    add_encoder<Encode::blocks_over_rows>("mutant/cpu/nf4_quantize/blocks_over_rows", "maxima over blocks that cross rows (bug 7)"),
    add_encoder<Encode::zero_divided>("mutant/cpu/nf4_quantize/zero_divided", "0 / 0 in a block of zeros"),
    add_encoder<Encode::nan_swallowed>("mutant/cpu/nf4_quantize/nan_swallowed", "the maximum leaves NaN out"),
    add_encoder<Encode::infinity_kept>("mutant/cpu/nf4_quantize/infinity_kept", "an infinite absmax is stored"),
    add_encoder<Encode::padding_zero>("mutant/cpu/nf4_quantize/padding_zero", "codes behind the row's end are 0, which is -1"),
    add_encoder<Encode::nibbles_swapped>("mutant/cpu/nf4_quantize/nibbles_swapped", "the earlier element in the low bits (bug 83)"),
    add_encoder<Encode::midpoint_off>("mutant/cpu/nf4_quantize/midpoint_off", "a midpoint is one float too large"),
    add_encoder<Encode::floor_to_entry>("mutant/cpu/nf4_quantize/floor_to_entry", "the entry below, not the nearest"),
    add_encoder<Encode::scale_of_row>("mutant/cpu/nf4_quantize/scale_of_row", "the maximum of the row for every block (bug 85)"),
    add_encoder<Encode::tiny_kept>("mutant/cpu/nf4_quantize/tiny_kept", "absmax below 2^-120 is kept"),
    add_encoder<Encode::last_of_block_not_in_max>("mutant/cpu/nf4_quantize/last_of_block_not_in_max",
                                                  "the maximum leaves out element 63"),
    add_encoder<Encode::truncated>("mutant/cpu/nf4_quantize/f16_limits", "midpoints times absmax with 11 bits"),
    add_nt<Product::nibbles_swapped>("mutant/cpu/nf4_matmul_nt/nibbles_swapped", "the earlier element in the low bits (bug 84)"),
    add_nt<Product::blocks_over_rows>("mutant/cpu/nf4_matmul_nt/blocks_over_rows", "blocks counted over rows (bug 7)"),
    add_nt<Product::scale_of_32>("mutant/cpu/nf4_matmul_nt/scale_of_32", "a scale for 32 elements (bug 86)"),
    add_nt<Product::last_scale_of_row>("mutant/cpu/nf4_matmul_nt/last_scale_of_row", "the last scale for all blocks (bug 85)"),
    add_nt<Product::tail_dropped>("mutant/cpu/nf4_matmul_nt/tail_dropped", "floor instead of ceiling of k / 32 (bug 8)"),
    add_nt<Product::padding_multiplied>("mutant/cpu/nf4_matmul_nt/padding_multiplied",
                                        "weights behind the row's end times 0: NaN of infinite scales"),
    add_nt<Product::transposed>("mutant/cpu/nf4_matmul_nt/transposed", "W read as its transpose where it is square (bug 4)"),
    add_nt<Product::bf16_weights>("mutant/cpu/nf4_matmul_nt/bf16_weights", "weights are rounded to bf16 on the way"),
    add_nt<Product::f16_weights>("mutant/cpu/nf4_matmul_nt/f16_weights", "weights are rounded to f16 on the way"),
    add_nt<Product::bf16_x>("mutant/cpu/nf4_matmul_nt/bf16_x", "x is rounded to bf16"),
    add_nt<Product::first_row_only>("mutant/cpu/nf4_matmul_nt/first_row_only",
                                    "the kernel of one row is launched for a batch (bug 43)"),
    add_nt<Product::zeros_skipped>("mutant/cpu/nf4_matmul_nt/zeros_skipped", "terms with x = 0 are left out: NaN is lost"),
    add_nt<Product::stale>("mutant/cpu/nf4_matmul_nt/stale", "adds to what y held (bug 23)"),
    add_nt<Product::small_scale_kept>("mutant/cpu/nf4_matmul_nt/small_scale_kept", "scales below 2^-120 multiply"),
    add_nt<Product::long_sum_cut>("mutant/cpu/nf4_matmul_nt/long_sum_cut", "a sum ends after 8192 terms"),
    add_nt<Product::one_element_at_large>("mutant/cpu/nf4_matmul_nt/one_element_at_large", "y[i,512] is 1 too large where i > 512"),
    add_plain<Product::nothing>("mutant/cpu/nf4_matmul/nothing", "a stub: nothing is computed, and no error is raised (bug 52)"),
    add_plain<Product::nibbles_swapped>("mutant/cpu/nf4_matmul/nibbles_swapped", "the earlier element in the low bits (bug 84)"),
    add_plain<Product::blocks_over_rows>("mutant/cpu/nf4_matmul/blocks_over_rows", "blocks counted over rows (bug 7)"),
    add_plain<Product::scale_of_32>("mutant/cpu/nf4_matmul/scale_of_32", "a scale for 32 elements (bug 86)"),
    add_plain<Product::tail_dropped>("mutant/cpu/nf4_matmul/tail_dropped", "floor instead of ceiling of n / 32 (bug 8)"),
    add_plain<Product::transposed>("mutant/cpu/nf4_matmul/transposed", "dy · Wᵀ instead of dy · W where W is square (bug 3)"),
    add_plain<Product::f16_weights>("mutant/cpu/nf4_matmul/f16_weights", "weights are rounded to f16 on the way"),
    add_plain<Product::first_row_only>("mutant/cpu/nf4_matmul/first_row_only", "one row is launched for a batch (bug 43)"),
    add_plain<Product::stale>("mutant/cpu/nf4_matmul/stale", "adds to what dx held (bug 23)"),
    add_plain<Product::zeros_skipped>("mutant/cpu/nf4_matmul/zeros_skipped", "terms with dy = 0 are left out: NaN is lost"),
    add_plain<Product::long_sum_cut>("mutant/cpu/nf4_matmul/long_sum_cut", "a sum ends after 8192 terms"),
};

}  // namespace
}  // namespace assay::mutants::nf4_mutants
