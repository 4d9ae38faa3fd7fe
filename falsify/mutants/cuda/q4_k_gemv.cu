// Wrong y = W·x for W in Q4_K super-blocks: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/q4_k_gemv.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_gemv {
namespace {

using F = Q4kFault;

template <F fault>
KernelRegistration wrong(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(q4k_gemv_row<&q4k_gemv<fault>>("", "falsify/mutants/cuda/q4_k_gemv.cu", ""), id, says));
}

const KernelRegistration rows[] = {
    wrong<F::high_scales_short>(ASSAY_MUTANT("q4_k_gemv", "high_scales_short"),
                                "scales of sub-blocks 4 to 7 lack their upper two bits (bug 85)"),
    wrong<F::subnormals_halved>(ASSAY_MUTANT("q4_k_gemv", "subnormals_halved"), "subnormal d and dmin come out halved (bug 87)"),
    wrong<F::last_block_dropped>(ASSAY_MUTANT("q4_k_gemv", "last_block_dropped"), "floor instead of ceiling of k / 256 (bug 8)"),
    wrong<F::rows_joined>(ASSAY_MUTANT("q4_k_gemv", "rows_joined"),
                          "a ragged row starts in the last super-block of the row before (bug 7)"),
    wrong<F::first_row_only>(ASSAY_MUTANT("q4_k_gemv", "first_row_only"), "one row is launched for a batch (bug 43)"),
#if defined(__CUDACC__)  // forgiven by the host, whose compiler loads words
    wrong<F::alignment_unchecked>(ASSAY_MUTANT("q4_k_gemv", "alignment_unchecked"),
                                  "loads of 16 bytes from super-blocks that are not aligned to them"),
#endif
    wrong<F::half_the_lanes_lost>(ASSAY_MUTANT("q4_k_gemv", "half_the_lanes_lost"),
                                  "the sum over lanes leaves out its first step"),
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    wrong<F::no_barrier>(ASSAY_MUTANT("q4_k_gemv", "no_barrier"),
                         "no __syncthreads between storing x in shared memory and reading it (bug 28)"),
#endif
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_gemv
