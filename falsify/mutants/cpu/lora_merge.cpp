// Wrong merges of adapters into weights: the right composition with one fault, or loops with one.
#include <algorithm>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"
#include "kernels/cpu/affine_product.hpp"
#include "kernels/lora.hpp"

namespace assay::mutants::lora_merge_mutants {
namespace {

using ops::LoraMergeArgs;
using ops::LoraUnmergeArgs;

enum class Fault {
  weight_in_bf16,
  product_in_bf16,
  tf32_inputs,
  last_rank_dropped,
  last_column_unwritten,
  width_as_stride,
  nan_swallowed,
  weight_clobbered,
  added_to_output,
  first_call_only,
  one_element_at_large,
  saturates,
};

template <Fault F>
void add_in_loops(View<const float> from, View<const float> a, View<const float> b, View<float> to, float scale) {
  static int calls = 0;
  ++calls;
  const Index ranks = a.dim(0), r = F == Fault::last_rank_dropped && ranks % 4 == 1 && ranks > 1 ? ranks - 1 : ranks;
  const Index columns = F == Fault::last_column_unwritten && to.dim(1) > 1 ? to.dim(1) - 1 : to.dim(1);
  const Index lda = F == Fault::width_as_stride ? a.dim(1) : a.stride(0);
  if (F == Fault::first_call_only && calls > 1) return;
  for (Index o = 0; o < to.dim(0); ++o)
    for (Index p = 0; p < columns; ++p) {
      float sum = 0;
      for (Index q = 0; q < r; ++q) {
        float x = b(o, q), y = a.data()[q * lda + p];
        if (F == Fault::tf32_inputs) x = rounded(x, 11), y = rounded(y, 11);
        if (F == Fault::nan_swallowed && x * y != x * y) continue;
        sum += x * y;
      }
      if (F == Fault::saturates) sum = std::clamp(sum, -65504.0f, 65504.0f);
      if (F == Fault::product_in_bf16) sum = rounded(sum, 8);
      if (F == Fault::one_element_at_large && o == 512 && p == 512) sum += 1;
      const float weight = F == Fault::weight_in_bf16 ? rounded(from(o, p), 8) : from(o, p);
      to(o, p) = weight + scale * sum + (F == Fault::added_to_output ? to(o, p) : 0.0f);
    }
  if (F == Fault::weight_clobbered && from.size() > 0) const_cast<float&>(from(0, 0)) = to(0, 0);
}

template <Fault F>
void merge(const LoraMergeArgs& args, Device&) {
  add_in_loops<F>(args.weight, args.a, args.b, args.merged, lora_scale(args.alpha, args.r));
}
template <Fault F>
void unmerge(const LoraUnmergeArgs& args, Device&) {
  add_in_loops<F>(args.merged, args.a, args.b, args.weight, -lora_scale(args.alpha, args.r));
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<LoraMergeArgs, &merge<F>>("lora_merge", id, fault);
}
template <Fault F>
KernelRegistration add_unmerge(std::string_view id, std::string_view fault) {
  return cpu_mutant<LoraUnmergeArgs, &unmerge<F>>("lora_unmerge", id, fault);
}
template <LoraFault F>
KernelRegistration composed(std::string_view id, std::string_view fault) {
  return cpu_mutant<LoraMergeArgs, &lora_merge_by<&cpu::multiply_tiled, F>>("lora_merge", id, fault);
}
template <LoraFault F>
KernelRegistration composed_unmerge(std::string_view id, std::string_view fault) {
  return cpu_mutant<LoraUnmergeArgs, &lora_unmerge_by<&cpu::multiply_tiled, F>>("lora_unmerge", id, fault);
}

using L = LoraFault;

const KernelRegistration registrations[] = {
    composed<L::transposed_where_square>("mutant/cpu/lora_merge/transposed_where_square",
                                         "(B · A)ᵀ is merged where W is square (bug 77)"),
    composed<L::scale_by_root>("mutant/cpu/lora_merge/scale_by_root", "alpha / sqrt(r): the scale of rsLoRA (bug 76)"),
    composed<L::scale_is_alpha>("mutant/cpu/lora_merge/scale_is_alpha", "alpha in place of alpha / r (bug 76)"),
    composed<L::weight_dropped>("mutant/cpu/lora_merge/weight_dropped", "the adapter takes the place of the weight"),
    composed<L::sign_flipped>("mutant/cpu/lora_merge/sign_flipped", "the adapter is taken away"),
    composed<L::b_as_r_out>("mutant/cpu/lora_merge/b_as_r_out", "B read as [r, out] (bugs 5, 77)"),
    add<Fault::weight_in_bf16>("mutant/cpu/lora_merge/weight_in_bf16", "the weight rounded to bfloat16 (bug 88)"),
    add<Fault::product_in_bf16>("mutant/cpu/lora_merge/product_in_bf16", "B · A rounded to bfloat16"),
    add<Fault::tf32_inputs>("mutant/cpu/lora_merge/tf32_inputs", "A and B rounded to TF32"),
    add<Fault::last_rank_dropped>("mutant/cpu/lora_merge/last_rank_dropped",
                                  "the last rank dropped where r % 4 is 1 (bug 8)"),
    add<Fault::last_column_unwritten>("mutant/cpu/lora_merge/last_column_unwritten",
                                      "the last column is not written (bug 29)"),
    add<Fault::width_as_stride>("mutant/cpu/lora_merge/width_as_stride",
                                "width used as leading dimension of A (bug 39)"),
    add<Fault::nan_swallowed>("mutant/cpu/lora_merge/nan_swallowed", "products that are NaN are left out"),
    add<Fault::weight_clobbered>("mutant/cpu/lora_merge/weight_clobbered",
                                 "merged in place: the weight is written (bug 25)"),
    add<Fault::added_to_output>("mutant/cpu/lora_merge/added_to_output", "added to what the output held (bug 29)"),
    add<Fault::saturates>("mutant/cpu/lora_merge/saturates", "B · A clamped to the range of f16"),
    add<Fault::first_call_only>("mutant/cpu/lora_merge/first_call_only",
                                "writes only on the first call of the process"),
    add<Fault::one_element_at_large>("mutant/cpu/lora_merge/one_element_at_large",
                                     "merged[512, 512] is alpha / r too large"),
    composed_unmerge<L::transposed_where_square>("mutant/cpu/lora_unmerge/transposed_where_square",
                                                 "(B · A)ᵀ is taken out where W is square (bug 77)"),
    composed_unmerge<L::scale_by_root>("mutant/cpu/lora_unmerge/scale_by_root",
                                       "alpha / sqrt(r): the scale of rsLoRA (bug 76)"),
    composed_unmerge<L::scale_is_alpha>("mutant/cpu/lora_unmerge/scale_is_alpha",
                                        "alpha in place of alpha / r (bug 76)"),
    composed_unmerge<L::sign_flipped>("mutant/cpu/lora_unmerge/sign_flipped", "the adapter is merged a second time"),
    composed_unmerge<L::weight_dropped>("mutant/cpu/lora_unmerge/weight_dropped", "minus the adapter alone"),
    composed_unmerge<L::b_as_r_out>("mutant/cpu/lora_unmerge/b_as_r_out", "B read as [r, out] (bugs 5, 77)"),
    add_unmerge<Fault::weight_in_bf16>("mutant/cpu/lora_unmerge/weight_in_bf16",
                                       "the merged weight rounded to bfloat16 (bug 88)"),
    add_unmerge<Fault::last_rank_dropped>("mutant/cpu/lora_unmerge/last_rank_dropped",
                                          "the last rank dropped where r % 4 is 1 (bug 8)"),
    add_unmerge<Fault::last_column_unwritten>("mutant/cpu/lora_unmerge/last_column_unwritten",
                                              "the last column is not written (bug 29)"),
    add_unmerge<Fault::weight_clobbered>("mutant/cpu/lora_unmerge/weight_clobbered",
                                         "taken out in place: the merged weight is written (bug 25)"),
    add_unmerge<Fault::saturates>("mutant/cpu/lora_unmerge/saturates", "B · A clamped to the range of f16"),
    add_unmerge<Fault::nan_swallowed>("mutant/cpu/lora_unmerge/nan_swallowed", "products that are NaN are left out"),
    add_unmerge<Fault::one_element_at_large>("mutant/cpu/lora_unmerge/one_element_at_large",
                                             "weight[512, 512] is alpha / r too small"),
};

}  // namespace
}  // namespace assay::mutants::lora_merge_mutants
