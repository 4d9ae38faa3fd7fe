// Wrong Q4_K super-blocks: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/q4_k_quantize.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_quantize {
namespace {

using F = Q4kEncodeFault;

template <F fault>
KernelRegistration wrong(std::string_view id, std::string_view says) {
  return KernelRegistration(
      mutant(q4k_quantize_row<&q4k_quantize<fault>>("", "falsify/mutants/cuda/q4_k_quantize.cu", ""), id, says));
}

const KernelRegistration rows[] = {
    wrong<F::last_block_dropped>(ASSAY_MUTANT("q4_k_quantize", "last_block_dropped"),
                                 "floor instead of ceiling of k / 256 (bug 8)"),
    wrong<F::first_row_only>(ASSAY_MUTANT("q4_k_quantize", "first_row_only"), "one row is launched for a batch (bug 43)"),
    wrong<F::padding_counted>(ASSAY_MUTANT("q4_k_quantize", "padding_counted"), "zeros behind a row count as values (bug 7)"),
    wrong<F::half_the_lanes_lost>(ASSAY_MUTANT("q4_k_quantize", "half_the_lanes_lost"),
                                  "the minimum of two lanes of four (bug 44)"),
    wrong<F::high_scales_short>(ASSAY_MUTANT("q4_k_quantize", "high_scales_short"),
                                "scales of sub-blocks 4 to 7 lack their upper two bits (bug 85)"),
    wrong<F::codes_uncorrected>(ASSAY_MUTANT("q4_k_quantize", "codes_uncorrected"),
                                "codes as a product with the reciprocal gives them"),
    wrong<F::halves_to_nearest>(ASSAY_MUTANT("q4_k_quantize", "halves_to_nearest"),
                                "d and dmin to nearest: the largest values are out of reach"),
    wrong<F::nan_swallowed>(ASSAY_MUTANT("q4_k_quantize", "nan_swallowed"), "minimum and maximum pass over NaN"),
    wrong<F::alignment_unchecked>(ASSAY_MUTANT("q4_k_quantize", "alignment_unchecked"),
                                  "loads of 16 bytes from rows that are not aligned to them"),
    wrong<F::partner_forgotten>(ASSAY_MUTANT("q4_k_quantize", "partner_forgotten"),
                                "high nibbles from the values 16 away (bug 84)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_quantize
