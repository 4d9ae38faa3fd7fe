// Wrong mean_pool_backward: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/mean_pool_backward.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool_backward {
namespace {

template <void (*run)(const ops::MeanPoolBackwardArgs&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(map_kernel_row<ops::MeanPoolBackwardArgs, run>(
                                       "mean_pool_backward", "", "falsify/mutants/cuda/mean_pool_backward.cu", ""),
                                   id, fault));
}

const KernelRegistration rows[] = {
    wrong<&mean_pool_backward<SpreadFault::masked_by_product>>(
        ASSAY_MUTANT("mean_pool_backward", "masked_by_product"),
        "padding is multiplied by 0: a NaN of dy leaks (bug 40)"),
    wrong<&mean_pool_backward<SpreadFault::divided_by_rows>>(ASSAY_MUTANT("mean_pool_backward", "divided_by_rows"),
                                                             "divided by s in place of the length"),
    wrong<&mean_pool_backward<SpreadFault::length_included>>(ASSAY_MUTANT("mean_pool_backward", "length_included"),
                                                             "i <= length"),
    wrong<&mean_pool_backward<SpreadFault::first_batch_only>>(ASSAY_MUTANT("mean_pool_backward", "first_batch_only"),
                                                              "one sequence is launched for a batch (bug 43)"),
    wrong<&mean_pool_backward<SpreadFault::padding_unwritten>>(ASSAY_MUTANT("mean_pool_backward", "padding_unwritten"),
                                                               "the gradient of padding is not written (bug 29)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool_backward
