// Wrong values of Q4_K super-blocks: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/q4_k_dequantize.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_dequantize {
namespace {

using F = Q4kFault;

template <F fault>
KernelRegistration wrong(std::string_view id, std::string_view says) {
  return KernelRegistration(
      mutant(q4k_dequantize_row<&q4k_dequantize<fault>>("", "falsify/mutants/cuda/q4_k_dequantize.cu", ""), id, says));
}

const KernelRegistration rows[] = {
    wrong<F::nibbles_interleaved>(ASSAY_MUTANT("q4_k_dequantize", "nibbles_interleaved"),
                                  "the two nibbles of a byte are neighbours (bug 84)"),
    wrong<F::high_scales_short>(ASSAY_MUTANT("q4_k_dequantize", "high_scales_short"),
                                "scales of sub-blocks 4 to 7 lack their upper two bits (bug 85)"),
    wrong<F::subnormals_halved>(ASSAY_MUTANT("q4_k_dequantize", "subnormals_halved"),
                                "subnormal d and dmin come out halved (bug 87)"),
    wrong<F::last_block_dropped>(ASSAY_MUTANT("q4_k_dequantize", "last_block_dropped"),
                                 "floor instead of ceiling of k / 256 (bug 8)"),
    wrong<F::rows_joined>(ASSAY_MUTANT("q4_k_dequantize", "rows_joined"),
                          "a ragged row starts in the last super-block of the row before (bug 7)"),
    wrong<F::first_row_only>(ASSAY_MUTANT("q4_k_dequantize", "first_row_only"), "one row is launched for a batch (bug 43)"),
    wrong<F::alignment_unchecked>(ASSAY_MUTANT("q4_k_dequantize", "alignment_unchecked"),
                                  "stores of 16 bytes to rows that are not aligned to them"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_dequantize
