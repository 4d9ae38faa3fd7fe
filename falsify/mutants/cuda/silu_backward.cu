// Wrong silu_backward: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/silu_backward.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_backward {
namespace {

template <void (*run)(const ops::SiluBackwardArgs&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(
      map_kernel_row<ops::SiluBackwardArgs, run>("silu_backward", "", "falsify/mutants/cuda/silu_backward.cu", ""), id,
      fault));
}

const KernelRegistration rows[] = {
    wrong<&silu_backward<SiluBackwardFault::sigmoid_slope>>(ASSAY_MUTANT("silu_backward", "sigmoid_slope"),
                                                            "the slope of sigmoid alone (bug 51)"),
    wrong<&silu_backward<SiluBackwardFault::no_slope>>(ASSAY_MUTANT("silu_backward", "no_slope"),
                                                       "sigmoid taken for a constant"),
    wrong<&silu_backward<SiluBackwardFault::value_for_argument>>(ASSAY_MUTANT("silu_backward", "value_for_argument"),
                                                                 "y in place of x in the slope"),
    wrong<&silu_backward<SiluBackwardFault::none, MapFault::width_as_stride>>(
        ASSAY_MUTANT("silu_backward", "width_as_stride"),
        "the width used as leading dimension of the first input (bug 39)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_backward
