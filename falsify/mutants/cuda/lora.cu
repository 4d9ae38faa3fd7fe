// Wrong adapters: the right kernels in a wrong composition, or the right composition of wrong kernels.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/affine_product.cuh"
#include "kernels/lora.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_lora {
namespace {

using F = ProductFault;
using L = LoraFault;
constexpr std::string_view kSource = "falsify/mutants/cuda/lora.cu";

template <class Algorithm, ProductFault product_fault, LoraFault fault = LoraFault::none>
KernelRegistration forward(std::string_view id, std::string_view text) {
  return KernelRegistration(
      mutant(composed_kernel<ops::LoraLinearArgs, &lora_linear_by<&multiply<Algorithm, product_fault>, fault>>(
                 "lora_linear", "", kSource, ""),
             id, text));
}
template <class Algorithm, ProductFault product_fault, LoraFault fault = LoraFault::none>
KernelRegistration backward(std::string_view id, std::string_view text) {
  return KernelRegistration(
      mutant(composed_kernel<ops::LoraLinearBackwardArgs,
                             &lora_linear_backward_by<&multiply<Algorithm, product_fault>, fault>>(
                 "lora_linear_backward", "", kSource, ""),
             id, text));
}
template <class Algorithm, ProductFault product_fault, LoraFault fault = LoraFault::none>
KernelRegistration merge(std::string_view id, std::string_view text) {
  return KernelRegistration(
      mutant(composed_kernel<ops::LoraMergeArgs, &lora_merge_by<&multiply<Algorithm, product_fault>, fault>>(
                 "lora_merge", "", kSource, ""),
             id, text));
}
template <class Algorithm, ProductFault product_fault, LoraFault fault = LoraFault::none>
KernelRegistration unmerge(std::string_view id, std::string_view text) {
  return KernelRegistration(
      mutant(composed_kernel<ops::LoraUnmergeArgs, &lora_unmerge_by<&multiply<Algorithm, product_fault>, fault>>(
                 "lora_unmerge", "", kSource, ""),
             id, text));
}

const KernelRegistration rows[] = {
    forward<RegisterTiled, F::none, L::scale_by_root>(ASSAY_MUTANT("lora_linear", "scale_by_root"),
                                                      "alpha / sqrt(r): the scale of rsLoRA (bug 76)"),
    forward<RegisterTiled, F::none, L::bias_dropped>(ASSAY_MUTANT("lora_linear", "bias_dropped"),
                                                     "the path with an adapter drops the bias (bug 42)"),
    forward<RegisterTiled, F::none, L::layer_overwritten>(ASSAY_MUTANT("lora_linear", "layer_overwritten"),
                                                          "the adapter takes the place of the layer"),
    forward<Naive16, F::none, L::t_of_first_row>(ASSAY_MUTANT("lora_linear", "t_of_first_row"),
                                                 "t computed for one row of a batch (bug 43)"),
    forward<Naive16, F::grid_swapped>(ASSAY_MUTANT("lora_linear", "grid_swapped"),
                                      "rows and columns exchanged in every grid (bug 1)"),
    forward<Naive16, F::grid_of_first_call>(ASSAY_MUTANT("lora_linear", "grid_of_first_call"),
                                            "the grid of t is kept for y (bug 27)"),
    forward<Naive16, F::no_barrier_after_store>(ASSAY_MUTANT("lora_linear", "no_barrier_after_store"),
                                                "no __syncthreads between filling the tiles and reading them (bug 28)"),
    forward<Naive16, F::return_before_barrier>(ASSAY_MUTANT("lora_linear", "return_before_barrier"),
                                               "threads outside a result return before the barrier (bug 14)"),
#if !defined(__CUDACC__)  // a device's fresh memory is zeros
    backward<RegisterTiled, F::none, L::stale_scratch>(ASSAY_MUTANT("lora_linear_backward", "stale_scratch"),
                                                       "dy · B added to what scratch memory held (bugs 23, 24)"),
#endif
    backward<RegisterTiled, F::none, L::da_not_scaled>(ASSAY_MUTANT("lora_linear_backward", "da_not_scaled"),
                                                       "dA without alpha / r (bug 48)"),
    backward<RegisterTiled, F::none, L::dx_of_layer_alone>(ASSAY_MUTANT("lora_linear_backward", "dx_of_layer_alone"),
                                                           "dx without the adapter's part (bug 53)"),
    backward<Naive16, F::none, L::db_of_first_row>(ASSAY_MUTANT("lora_linear_backward", "db_of_first_row"),
                                                   "dB of the first row alone (bug 43)"),
    backward<Naive16, F::one_row_of_blocks>(ASSAY_MUTANT("lora_linear_backward", "one_row_of_blocks"),
                                            "grids of one row of blocks (bug 43)"),
    backward<Naive16, F::k_not_predicated>(ASSAY_MUTANT("lora_linear_backward", "k_not_predicated"),
                                           "factors read past their last row where sums are ragged (bug 7)"),
    backward<RegisterTiled, F::stage_not_swapped>(
        ASSAY_MUTANT("lora_linear_backward", "stage_not_swapped"),
        "both stages of the double buffer are the same: filled while it is read"),
    merge<RegisterTiled, F::none, L::transposed_where_square>(ASSAY_MUTANT("lora_merge", "transposed_where_square"),
                                                              "(B · A)ᵀ is merged where W is square (bug 77)"),
    merge<RegisterTiled, F::none, L::scale_by_root>(ASSAY_MUTANT("lora_merge", "scale_by_root"),
                                                    "alpha / sqrt(r): the scale of rsLoRA (bug 76)"),
    merge<Naive16, F::store_not_predicated>(ASSAY_MUTANT("lora_merge", "store_not_predicated"),
                                            "the edge tiles write outside the result (bugs 2, 16)"),
    merge<Naive16, F::width_as_stride>(ASSAY_MUTANT("lora_merge", "width_as_stride"),
                                       "widths used as leading dimensions (bug 39)"),
    merge<Naive16, F::no_barrier_after_store>(ASSAY_MUTANT("lora_merge", "no_barrier_after_store"),
                                              "no __syncthreads between filling the tiles and reading them (bug 28)"),
    unmerge<RegisterTiled, F::none, L::sign_flipped>(ASSAY_MUTANT("lora_unmerge", "sign_flipped"),
                                                     "the adapter is merged a second time"),
    unmerge<RegisterTiled, F::none, L::transposed_where_square>(ASSAY_MUTANT("lora_unmerge", "transposed_where_square"),
                                                                "(B · A)ᵀ is taken out where W is square (bug 77)"),
    unmerge<Naive16, F::return_before_barrier>(ASSAY_MUTANT("lora_unmerge", "return_before_barrier"),
                                               "threads outside the result return before the barrier (bug 14)"),
    unmerge<RegisterTiled, F::no_barrier_between_stages>(
        ASSAY_MUTANT("lora_unmerge", "no_barrier_between_stages"),
        "no __syncthreads between the stages of the double buffer (bug 28)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_lora
