// Wrong gradients of attention: the right kernels, each with one fault.
#include "kernels/cuda/attention_backward_mma.cuh"
#include "falsify/mutants/cuda/mutant.cuh"
#include "ops/attention_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_backward {
namespace {

using F = AttentionBackwardFault;

template <F fault>
KernelRegistration wrong(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(attention_backward_row<ops::AttentionBackwardArgs, float, fault>(""), id, says));
}

template <F fault, class S>
KernelRegistration wrong_mma(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(attention_backward_mma_row<ops::AttentionBackwardArgs, S, fault>(""), id, says));
}

const KernelRegistration registrations[] = {
    wrong<F::along_dropped>(ASSAY_MUTANT("attention_backward", "along_dropped"), "ds without the row sum of dy y"),
    wrong<F::mask_off_by_one>(ASSAY_MUTANT("attention_backward", "mask_off_by_one"), "a query sees the key after its own"),
    wrong<F::lengths_ignored>(ASSAY_MUTANT("attention_backward", "lengths_ignored"), "keys past the sequence's length count"),
    wrong<F::first_head_of_group>(ASSAY_MUTANT("attention_backward", "first_head_of_group"), "one head of a group reaches dk and dv (bug 15)"),
    wrong<F::heads_by_modulo>(ASSAY_MUTANT("attention_backward", "heads_by_modulo"), "head h is of key-value head h % kv_heads (bug 15)"),
    wrong<F::key_scale_missing>(ASSAY_MUTANT("attention_backward", "key_scale_missing"), "dk is not scaled"),
    wrong<F::query_scale_missing>(ASSAY_MUTANT("attention_backward", "query_scale_missing"), "dq is not scaled"),
    wrong<F::values_from_ds>(ASSAY_MUTANT("attention_backward", "values_from_ds"), "dv of ds instead of p"),
    wrong<F::tile_tail_dropped>(ASSAY_MUTANT("attention_backward", "tile_tail_dropped"), "floor instead of ceiling of keys / 64 in dq (bug 8)"),
    wrong<F::last_queries_dropped>(ASSAY_MUTANT("attention_backward", "last_queries_dropped"), "floor instead of ceiling of rows / 64 in dk and dv (bug 8)"),
    wrong<F::masked_pairs_multiplied>(ASSAY_MUTANT("attention_backward", "masked_pairs_multiplied"),
                                      "zero times NaN between a query and a key that it does not see (bug 40)"),
    wrong<F::masked_row_counted>(ASSAY_MUTANT("attention_backward", "masked_row_counted"), "a row whose logsumexp is -inf takes part (bug 40)"),
    wrong<F::first_sequence_only>(ASSAY_MUTANT("attention_backward", "first_sequence_only"), "one sequence's grid is launched for a batch (bug 43)"),
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    wrong<F::no_barrier_before_reuse>(ASSAY_MUTANT("attention_backward", "no_barrier_before_reuse"),
                                      "a tile is overwritten that other threads still read (bug 28)"),
    wrong_mma<F::no_barrier_before_reuse, BFloat16>(ASSAY_MUTANT("attention_backward", "mma_no_barrier_before_reuse"),
                                                    "tiles are overwritten that other warps still read (bug 28)"),
#endif
    wrong_mma<F::along_dropped, BFloat16>(ASSAY_MUTANT("attention_backward", "mma_along_dropped"), "ds without the row sum of dy y"),
    wrong_mma<F::first_head_of_group, float>(ASSAY_MUTANT("attention_backward", "mma_first_head_of_group"), "one head of a group reaches dk and dv (bug 15)"),
    wrong_mma<F::tile_tail_dropped, float>(ASSAY_MUTANT("attention_backward", "mma_tile_tail_dropped"), "floor instead of ceiling of keys / 64 in dq (bug 8)"),
    wrong_mma<F::masked_pairs_multiplied, BFloat16>(ASSAY_MUTANT("attention_backward", "mma_masked_pairs_multiplied"),
                                                    "zero times NaN between a query and a key that it does not see (bug 40)"),
    wrong_mma<F::masked_row_counted, float>(ASSAY_MUTANT("attention_backward", "mma_masked_row_counted"),
                                            "a row whose logsumexp is -inf takes part (bug 40)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_backward
