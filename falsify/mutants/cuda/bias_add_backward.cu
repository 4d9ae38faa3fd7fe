// Wrong bias_add_backward: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/bias_add_backward.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add_backward {
namespace {

template <void (*run)(const ops::BiasAddBackwardArgs&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(map_kernel_row<ops::BiasAddBackwardArgs, run>(
                                       "bias_add_backward", "", "falsify/mutants/cuda/bias_add_backward.cu", ""),
                                   id, fault));
}

const KernelRegistration rows[] = {
    wrong<&bias_add_backward<ColumnFault::no_barrier>>(
        ASSAY_MUTANT("bias_add_backward", "no_barrier"),
        "no __syncthreads before the sums of the stripes are read (bug 28)"),
    wrong<&bias_add_backward<ColumnFault::last_stripe_lost>>(ASSAY_MUTANT("bias_add_backward", "last_stripe_lost"),
                                                             "the last stripe of rows is left out of the sum"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add_backward
