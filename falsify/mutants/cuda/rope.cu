// Wrong rotations: the right kernel, each with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/rotary.cuh"
#include "ops/rope.hpp"
#include "ops/rope_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rope {
namespace {

using F = RotaryFault;

template <F fault>
KernelRegistration wrong(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(rotary_row<ops::RopeArgs, float, fault>("rope", ""), id, says));
}
template <F fault>
KernelRegistration wrong_back(std::string_view id, std::string_view says) {
  return KernelRegistration(mutant(rotary_row<ops::RopeBackwardArgs, float, fault>("rope_backward", ""), id, says));
}

const KernelRegistration registrations[] = {
    wrong<F::first_head_only>(ASSAY_MUTANT("rope", "first_head_only"), "heads beyond the first are not written (bug 31)"),
    wrong<F::no_barrier>(ASSAY_MUTANT("rope", "no_barrier"), "cosines are read before all are stored (bug 28)"),
    wrong<F::other_layout>(ASSAY_MUTANT("rope", "other_layout"), "pairs of the other layout (bug 36)"),
    wrong<F::position_off_by_one>(ASSAY_MUTANT("rope", "position_off_by_one"), "positions are counted from 1"),
    wrong_back<F::unrotated>(ASSAY_MUTANT("rope_backward", "unrotated"), "the gradient passes unrotated (bug 35)"),
    wrong_back<F::no_barrier>(ASSAY_MUTANT("rope_backward", "no_barrier"), "cosines are read before all are stored (bug 28)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rope
