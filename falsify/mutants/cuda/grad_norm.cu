// Wrong norms of gradients, and clipping by them: the right kernels, each with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/grad_norm.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_grad_norm {
namespace {

template <NormFault fault>
KernelRegistration wrong(std::string_view id, std::string_view what) {
  return KernelRegistration(mutant(norm_row<fault>(""), id, what));
}
template <NormFault fault>
KernelRegistration wrong_clip(std::string_view id, std::string_view what) {
  return KernelRegistration(mutant(clip_row<fault>(""), id, what));
}

const KernelRegistration rows[] = {
    wrong<NormFault::tail_dropped>(ASSAY_MUTANT("global_grad_norm", "tail_dropped"),
                                   "floor instead of ceiling of n / 4 (bug 8)"),
    wrong<NormFault::no_barrier>(ASSAY_MUTANT("global_grad_norm", "no_barrier"),
                                 "no __syncthreads before the sums of the warps are read (bug 28)"),
    wrong<NormFault::last_block_lost>(ASSAY_MUTANT("global_grad_norm", "last_block_lost"),
                                      "the last block's sum is left out"),
    wrong<NormFault::squared>(ASSAY_MUTANT("global_grad_norm", "squared"), "no root (bug 61)"),
    wrong_clip<NormFault::squared>(ASSAY_MUTANT("clip_grad_norm", "squared"),
                                   "clips by the square of the norm (bug 61)"),
    wrong_clip<NormFault::per_block>(ASSAY_MUTANT("clip_grad_norm", "per_block"),
                                     "clips each block by its own norm (bug 62)"),
    wrong_clip<NormFault::scales_up>(ASSAY_MUTANT("clip_grad_norm", "scales_up"),
                                     "gradients within the limit are scaled up to it"),
    wrong_clip<NormFault::not_scaled>(ASSAY_MUTANT("clip_grad_norm", "not_scaled"),
                                      "the factor is computed and not used (bug 63)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_grad_norm
