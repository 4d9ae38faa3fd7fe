// Wrong attention against a cache: the right kernels, each with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/attention_decode.cuh"
#include "ops/attention_decode.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_decode {
namespace {

using F = DecodeFault;

template <F fault>
KernelRegistration wrong(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(decode_row<ops::AttentionDecodeArgs, float, fault>(""), id, says));
}

const KernelRegistration registrations[] = {
    wrong<F::first_sequence_only>(ASSAY_MUTANT("attention_decode",
                                  "first_sequence_only"), "one sequence's grid is launched for a batch (bug 43)"),
    wrong<F::first_head_appended>(ASSAY_MUTANT("attention_decode", "first_head_appended"), "only head 0 is appended (bug 31)"),
    wrong<F::appended_a_place_early>(ASSAY_MUTANT("attention_decode",
                                     "appended_a_place_early"), "appended at lengths - 1 (bug 30)"),
    wrong<F::new_key_missing>(ASSAY_MUTANT("attention_decode", "new_key_missing"), "attends over lengths places, not lengths + 1"),
    wrong<F::stale_place_attended>(ASSAY_MUTANT("attention_decode", "stale_place_attended"), "attends one place too many"),
    wrong<F::tile_filled_up>(ASSAY_MUTANT("attention_decode", "tile_filled_up"),
                             "values past the end are multiplied by weights of 0 (bug 40)"),
    wrong<F::lengths_of_first>(ASSAY_MUTANT("attention_decode", "lengths_of_first"), "every sequence stands where the first does"),
    wrong<F::heads_interleaved>(ASSAY_MUTANT("attention_decode", "heads_interleaved"), "head h reads h % kv_heads (bug 15)"),
    wrong<F::tiles_not_rescaled>(ASSAY_MUTANT("attention_decode",
                                 "tiles_not_rescaled"), "sums are not rescaled where the maximum grows"),
    wrong<F::splits_not_rescaled>(ASSAY_MUTANT("attention_decode", "splits_not_rescaled"),
                                  "blocks' results are added each under its own maximum"),
    wrong<F::first_split_only>(ASSAY_MUTANT("attention_decode",
                               "first_split_only"), "places beyond the first block's are cut off (bug 22)"),
    wrong<F::half_the_lanes_lost>(ASSAY_MUTANT("attention_decode",
                                  "half_the_lanes_lost"), "dot products leave out half of their lanes (bug 44)"),
    wrong<F::no_barrier>(ASSAY_MUTANT("attention_decode", "no_barrier"), "no __syncthreads before scores are read (bug 28)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_decode
