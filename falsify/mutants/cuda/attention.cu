// Wrong attentions: the right kernels, each with one fault.
#include "kernels/cuda/attention_mma.cuh"
#include "falsify/mutants/cuda/mutant.cuh"
#include "ops/attention.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_attention {
namespace {

using F = AttentionFault;

template <F fault>
KernelRegistration wrong(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(attention_tiled_row<ops::AttentionArgs, float, fault>(""), id, says));
}
template <F fault>
KernelRegistration wrong_warp(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(attention_warp_row<ops::AttentionArgs, float, fault>(""), id, says));
}

template <F fault, class S = BFloat16>
KernelRegistration wrong_mma(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(attention_mma_row<ops::AttentionArgs, S, fault>(""), id, says));
}

const KernelRegistration registrations[] = {
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    wrong<F::no_barrier_before_values>(ASSAY_MUTANT("attention", "no_barrier_before_values"),
                                       "values overwrite keys that other threads still read (bug 28)"),
    wrong<F::no_barrier_before_keys>(ASSAY_MUTANT("attention", "no_barrier_before_keys"),
                                     "keys overwrite values that other threads still read (bug 28)"),
#endif
    wrong<F::sum_not_rescaled>(ASSAY_MUTANT("attention", "sum_not_rescaled"), "the sum of weights is not rescaled where a maximum grows"),
    wrong<F::mean_not_rescaled>(ASSAY_MUTANT("attention", "mean_not_rescaled"), "the sums of values are not rescaled where a maximum grows"),
    wrong<F::mask_off_by_one>(ASSAY_MUTANT("attention", "mask_off_by_one"), "a query sees the key after its own"),
    wrong<F::mask_absent>(ASSAY_MUTANT("attention", "mask_absent"), "no causal mask (bugs 38, 57)"),
    wrong<F::lengths_ignored>(ASSAY_MUTANT("attention", "lengths_ignored"), "keys past the sequence's length count"),
    wrong<F::heads_by_modulo>(ASSAY_MUTANT("attention", "heads_by_modulo"), "head h reads key-value head h % kv_heads (bug 15)"),
    wrong<F::scale_by_d>(ASSAY_MUTANT("attention", "scale_by_d"), "1/sqrt(d) whatever scale is given"),
    wrong<F::tile_tail_dropped>(ASSAY_MUTANT("attention", "tile_tail_dropped"), "floor instead of ceiling of keys / 64 (bug 8)"),
    wrong<F::masked_row_nan>(ASSAY_MUTANT("attention", "masked_row_nan"), "a row that sees nothing is 0 / 0 (bug 40)"),
    wrong<F::masked_values_multiplied>(ASSAY_MUTANT("attention", "masked_values_multiplied"),
                                       "a weight of zero times NaN of a value that the query does not see (bug 40)"),
    wrong<F::logsumexp_unwritten>(ASSAY_MUTANT("attention", "logsumexp_unwritten"), "logsumexp is allocated and never written"),
    wrong<F::half_the_lanes_lost>(ASSAY_MUTANT("attention", "half_the_lanes_lost"), "the maximum over lanes leaves out its first step"),
    wrong<F::first_sequence_only>(ASSAY_MUTANT("attention", "first_sequence_only"), "one sequence's grid is launched for a batch (bug 43)"),
    wrong<F::keys_by_query_count>(ASSAY_MUTANT("attention", "keys_by_query_count"),
                                  "queries are taken for the last positions of the places, whatever starts says (bug 39)"),
    wrong_warp<F::half_the_lanes_lost>(ASSAY_MUTANT("attention", "warp_half_the_lanes_lost"), "the sum over lanes leaves out its first step"),
    wrong_warp<F::sum_not_rescaled>(ASSAY_MUTANT("attention", "warp_sum_not_rescaled"), "the sum of weights is not rescaled where a maximum grows"),
    wrong_warp<F::heads_by_modulo>(ASSAY_MUTANT("attention", "warp_heads_by_modulo"), "head h reads key-value head h % kv_heads (bug 15)"),
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    wrong_mma<F::no_barrier_before_keys>(ASSAY_MUTANT("attention", "mma_no_barrier_before_reuse"),
                                         "tiles are overwritten that other warps still read (bug 28)"),
    wrong_mma<F::no_barrier_before_values>(ASSAY_MUTANT("attention", "mma_no_barrier_after_arrival"),
                                           "tiles are read before other threads' copies have arrived (bug 28)"),
    wrong_mma<F::no_wait>(ASSAY_MUTANT("attention", "mma_no_wait"), "tiles are read before the copies are waited for"),
#endif
    wrong_mma<F::mean_not_rescaled>(ASSAY_MUTANT("attention", "mma_mean_not_rescaled"), "outputs are not rescaled where a maximum grows"),
    wrong_mma<F::sum_not_rescaled, float>(ASSAY_MUTANT("attention", "mma_sum_not_rescaled"), "the sum of weights is not rescaled where a maximum grows"),
    wrong_mma<F::mask_off_by_one, float>(ASSAY_MUTANT("attention", "mma_mask_off_by_one"), "a query sees the key after its own"),
    wrong_mma<F::masked_values_multiplied>(ASSAY_MUTANT("attention", "mma_masked_values_multiplied"),
                                           "a weight of zero times NaN of a value that the query does not see (bug 40)"),
    wrong_mma<F::masked_row_nan>(ASSAY_MUTANT("attention", "mma_masked_row_nan"), "a row that sees nothing is 0 / 0 (bug 40)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_attention
