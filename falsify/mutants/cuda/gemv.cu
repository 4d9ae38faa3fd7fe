// Wrong y = A·x: the right kernels, each with one fault.
#include "ops/gemv.hpp"

#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/gemv.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_gemv {
namespace {

using F = GemvFault;

template <void (*run)(const MatrixVector&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(gemv_kernel<ops::GemvArgs, run>("", "falsify/mutants/cuda/gemv.cu", ""), id, fault));
}

const KernelRegistration rows[] = {
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    wrong<&block_per_row<F::mask_names_absent_lanes>>(
        ASSAY_MUTANT("gemv", "mask_names_absent_lanes"),
        "k threads a block: the shuffles' mask names lanes that the last warp lacks (bug 44)"),
#endif
    wrong<&warp_per_row<F::half_the_lanes_lost>>(ASSAY_MUTANT("gemv", "half_the_lanes_lost"),
                                                 "the sum over lanes leaves out its first step"),
    wrong<&warp_per_row<F::tail_dropped>>(ASSAY_MUTANT("gemv", "tail_dropped"),
                                          "floor instead of ceiling of k / 32 (bug 8)"),
    wrong<&thread_per_row<F::x_step_ignored>>(ASSAY_MUTANT("gemv", "x_step_ignored"), "x read as if contiguous (bug 39)"),
    wrong<&block_per_row<F::no_barrier>>(ASSAY_MUTANT("gemv", "no_barrier"),
                                         "no __syncthreads before the sums of the warps are read (bug 28)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_gemv
