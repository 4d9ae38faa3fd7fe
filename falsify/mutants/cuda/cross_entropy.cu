// Wrong cross-entropies: the right kernels, each with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/cross_entropy.cuh"
#include "kernels/cuda/cross_entropy_backward.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy {
namespace {

template <LossFault fault>
KernelRegistration wrong(std::string_view id, std::string_view what) {
  return KernelRegistration(mutant(cross_entropy_kernel<fault>(""), id, what));
}
template <LossBackwardFault fault>
KernelRegistration wrong_backward(std::string_view id, std::string_view what) {
  return KernelRegistration(mutant(cross_entropy_backward_row<fault>(""), id, what));
}

const KernelRegistration rows[] = {
    wrong<LossFault::tail_dropped>(ASSAY_MUTANT("cross_entropy", "tail_dropped"),
                                   "floor instead of ceiling of classes / 4 (bug 8)"),
    wrong<LossFault::padded_with_zero>(ASSAY_MUTANT("cross_entropy", "padded_with_zero"),
                                       "lanes past the last class count as logits of 0"),
    wrong<LossFault::no_barrier>(ASSAY_MUTANT("cross_entropy", "no_barrier"),
                                 "no __syncthreads before the warps' results are read (bug 28)"),
    wrong<LossFault::half_the_lanes_lost>(ASSAY_MUTANT("cross_entropy", "half_the_lanes_lost"),
                                          "a warp's reduction leaves out its first step (bug 44)"),
    wrong<LossFault::first_row_only>(ASSAY_MUTANT("cross_entropy", "first_row_only"),
                                     "one block launched for the batch: rows from 1 on unwritten (bug 43)"),
    wrong<LossFault::mean_over_rows>(ASSAY_MUTANT("cross_entropy", "mean_over_rows"),
                                     "the weighted mean divides by rows (bug 58)"),
    wrong<LossFault::one_warp_of_rows>(ASSAY_MUTANT("cross_entropy", "one_warp_of_rows"),
                                       "the total sees the rows of one warp"),
    wrong<LossFault::not_rescaled>(ASSAY_MUTANT("cross_entropy", "not_rescaled"),
                                   "a thread's sum is not rescaled to the row's maximum"),
    wrong_backward<LossBackwardFault::onehot_missing>(ASSAY_MUTANT("cross_entropy_backward", "onehot_missing"),
                                                      "p where p - onehot is due"),
    wrong_backward<LossBackwardFault::tail_dropped>(ASSAY_MUTANT("cross_entropy_backward", "tail_dropped"),
                                                    "floor instead of ceiling of classes / 4 (bug 8)"),
    wrong_backward<LossBackwardFault::total_ignored>(ASSAY_MUTANT("cross_entropy_backward", "total_ignored"),
                                                     "the gradient of total is not used"),
    wrong_backward<LossBackwardFault::first_row_only>(ASSAY_MUTANT("cross_entropy_backward", "first_row_only"),
                                                      "one row launched for the batch (bug 43)"),
    wrong_backward<LossBackwardFault::accumulates>(ASSAY_MUTANT("cross_entropy_backward", "accumulates"),
                                                   "adds to what dlogits held (bug 23)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy
