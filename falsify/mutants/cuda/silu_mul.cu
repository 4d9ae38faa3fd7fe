// Wrong gates and gradients: the right kernels, each with one fault.
#include "kernels/cuda/silu_mul.cuh"
#include "falsify/mutants/cuda/mutant.cuh"
#include "ops/silu_mul.hpp"
#include "ops/silu_mul_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul {
namespace {

using F = GateFault;

template <F fault>
KernelRegistration wrong(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(silu_mul_row<ops::SiluMulArgs, float, fault>(""), id, says));
}
template <F fault>
KernelRegistration wrong_gradient(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(silu_mul_backward_row<ops::SiluMulBackwardArgs, fault>(""), id, says));
}

const KernelRegistration registrations[] = {
    wrong<F::tail_unwritten>(ASSAY_MUTANT("silu_mul", "tail_unwritten"), "floor instead of ceiling of n / 4 (bug 8)"),
    wrong<F::exchanged>(ASSAY_MUTANT("silu_mul", "exchanged"), "silu of up, times gate"),
    wrong<F::first_block_only>(ASSAY_MUTANT("silu_mul", "first_block_only"), "one block is launched for all rows (bug 43)"),
    wrong<F::half_precision>(ASSAY_MUTANT("silu_mul", "half_precision"), "the sigmoid passes through binary16"),
    wrong_gradient<F::no_up>(ASSAY_MUTANT("silu_mul_backward", "no_up"), "dgate lacks the factor up (bug 17)"),
    wrong_gradient<F::dup_unwritten>(ASSAY_MUTANT("silu_mul_backward", "dup_unwritten"), "dup is never written (bug 17)"),
    wrong_gradient<F::tail_unwritten>(ASSAY_MUTANT("silu_mul_backward", "tail_unwritten"), "floor instead of ceiling of n / 4 (bug 8)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul
