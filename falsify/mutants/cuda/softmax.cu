// Wrong softmaxes and gradients: the right kernels, each with one fault.
#include "kernels/cuda/softmax.cuh"
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/softmax_backward.cuh"
#include "ops/softmax.hpp"
#include "ops/softmax_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax {
namespace {

using F = SoftmaxFault;
using B = SoftmaxBackwardFault;

template <F fault>
KernelRegistration wrong(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(softmax_row<ops::SoftmaxArgs, fault>(""), id, says));
}
template <B fault>
KernelRegistration wrong_gradient(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(softmax_backward_row<ops::SoftmaxBackwardArgs, fault>(""), id, says));
}

const KernelRegistration registrations[] = {
    wrong<F::no_barrier>(ASSAY_MUTANT("softmax", "no_barrier"), "no __syncthreads before the warps' results are read (bug 28)"),
    wrong<F::half_the_lanes_lost>(ASSAY_MUTANT("softmax", "half_the_lanes_lost"), "reductions over lanes leave out their first step"),
    wrong<F::mask_names_absent_lanes>(ASSAY_MUTANT("softmax", "mask_names_absent_lanes"),
                                      "n threads a block: shuffles name lanes that the last warp lacks (bug 44)"),
    wrong<F::not_rescaled>(ASSAY_MUTANT("softmax", "not_rescaled"), "a sum is not rescaled where its maximum grows"),
    wrong<F::masked_row_nan>(ASSAY_MUTANT("softmax", "masked_row_nan"), "a masked row gives -inf - -inf (bug 40)"),
    wrong<F::first_row_only>(ASSAY_MUTANT("softmax", "first_row_only"), "one row's grid is launched for a batch (bug 43)"),
    wrong_gradient<B::no_barrier>(ASSAY_MUTANT("softmax_backward", "no_barrier"), "no __syncthreads before the warps' sums are read (bug 28)"),
    wrong_gradient<B::half_the_lanes_lost>(ASSAY_MUTANT("softmax_backward", "half_the_lanes_lost"), "the sum over lanes leaves out its first step"),
    wrong_gradient<B::sum_of_dy>(ASSAY_MUTANT("softmax_backward", "sum_of_dy"), "the sum is of dy, not of y dy"),
    wrong_gradient<B::first_row_only>(ASSAY_MUTANT("softmax_backward", "first_row_only"), "one row's grid is launched for a batch (bug 43)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax
