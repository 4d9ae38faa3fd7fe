// Wrong normalizations and gradients: the right kernels, each with one fault.
#include "kernels/cuda/rmsnorm.cuh"
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/rmsnorm_backward.cuh"
#include "ops/rmsnorm.hpp"
#include "ops/rmsnorm_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm {
namespace {

using F = RmsnormFault;
using B = RmsnormBackwardFault;

template <F fault>
KernelRegistration wrong(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(rmsnorm_row<ops::RmsnormArgs, float, fault>(""), id, says));
}
template <B fault>
KernelRegistration wrong_gradient(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(rmsnorm_backward_row<ops::RmsnormBackwardArgs, fault>(""), id, says));
}

const KernelRegistration registrations[] = {
    wrong<F::no_barrier>(ASSAY_MUTANT("rmsnorm", "no_barrier"), "no __syncthreads before the warps' sums are read (bug 28)"),
    wrong<F::half_the_lanes_lost>(ASSAY_MUTANT("rmsnorm", "half_the_lanes_lost"), "the sum over lanes leaves out its first step"),
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    wrong<F::mask_names_absent_lanes>(ASSAY_MUTANT("rmsnorm", "mask_names_absent_lanes"),
                                      "n threads a block: shuffles name lanes that the last warp lacks (bug 44)"),
#endif
    wrong<F::first_row_only>(ASSAY_MUTANT("rmsnorm", "first_row_only"), "one row's grid is launched for a batch (bug 43)"),
    wrong<F::eps_hard_coded>(ASSAY_MUTANT("rmsnorm", "eps_hard_coded"), "eps is 1e-5 whatever the caller says (bug 43)"),
    wrong<F::tail_dropped>(ASSAY_MUTANT("rmsnorm", "tail_dropped"), "floor instead of ceiling of n / 4 in the sum (bug 8)"),
    wrong_gradient<B::no_barrier>(ASSAY_MUTANT("rmsnorm_backward", "no_barrier"), "no __syncthreads before the warps' sums are read (bug 28)"),
    wrong_gradient<B::weight_outside>(ASSAY_MUTANT("rmsnorm_backward", "weight_outside"), "weight is applied outside the projection (bug 33)"),
    wrong_gradient<B::last_row_group_lost>(ASSAY_MUTANT("rmsnorm_backward", "last_row_group_lost"), "dweight leaves out every eighth row"),
    wrong_gradient<B::dweight_unwritten>(ASSAY_MUTANT("rmsnorm_backward", "dweight_unwritten"), "dweight is never written (bug 29)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm
