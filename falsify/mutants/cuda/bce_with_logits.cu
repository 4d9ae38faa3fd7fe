// Wrong binary cross-entropies: the right kernels, each with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/bce_with_logits.cuh"
#include "kernels/cuda/bce_with_logits_backward.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bce_with_logits {
namespace {

template <LabelFault fault>
KernelRegistration wrong(std::string_view id, std::string_view what) {
  return KernelRegistration(mutant(bce_kernel<fault>(""), id, what));
}
template <LabelBackwardFault fault>
KernelRegistration wrong_backward(std::string_view id, std::string_view what) {
  return KernelRegistration(mutant(bce_backward_row<fault>(""), id, what));
}

const KernelRegistration rows[] = {
    wrong<LabelFault::tail_dropped>(ASSAY_MUTANT("bce_with_logits", "tail_dropped"),
                                    "floor instead of ceiling of classes / 4 (bug 8)"),
    wrong<LabelFault::no_barrier>(ASSAY_MUTANT("bce_with_logits", "no_barrier"),
                                  "no __syncthreads before the sums of the warps are read (bug 28)"),
    wrong<LabelFault::first_warp_only>(ASSAY_MUTANT("bce_with_logits", "first_warp_only"),
                                       "the sums of warps from 1 on are left out"),
    wrong<LabelFault::first_row_only>(ASSAY_MUTANT("bce_with_logits", "first_row_only"),
                                      "one block launched for the batch (bug 43)"),
    wrong<LabelFault::sum_for_mean>(ASSAY_MUTANT("bce_with_logits", "sum_for_mean"),
                                    "the sum over classes for their mean (bug 71)"),
    wrong_backward<LabelBackwardFault::tail_dropped>(ASSAY_MUTANT("bce_with_logits_backward", "tail_dropped"),
                                                     "floor instead of ceiling of classes / 4 (bug 8)"),
    wrong_backward<LabelBackwardFault::first_row_only>(ASSAY_MUTANT("bce_with_logits_backward", "first_row_only"),
                                                       "one row launched for the batch (bug 43)"),
    wrong_backward<LabelBackwardFault::accumulates>(ASSAY_MUTANT("bce_with_logits_backward", "accumulates"),
                                                    "adds to what dlogits held (bug 23)"),
    wrong_backward<LabelBackwardFault::sum_for_mean>(ASSAY_MUTANT("bce_with_logits_backward", "sum_for_mean"),
                                                     "not divided by classes (bug 71)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bce_with_logits
