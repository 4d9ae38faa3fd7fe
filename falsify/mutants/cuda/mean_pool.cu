// Wrong mean_pool: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/mean_pool.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool {
namespace {

template <void (*run)(const ops::MeanPoolArgs&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(
      map_kernel_row<ops::MeanPoolArgs, run>("mean_pool", "", "falsify/mutants/cuda/mean_pool.cu", ""), id, fault));
}

const KernelRegistration rows[] = {
    wrong<&mean_pool<ColumnFault::no_barrier>>(ASSAY_MUTANT("mean_pool", "no_barrier"),
                                               "no __syncthreads before the sums of the stripes are read (bug 28)"),
    wrong<&mean_pool<ColumnFault::padding_times_zero>>(ASSAY_MUTANT("mean_pool", "padding_times_zero"),
                                                       "padding is multiplied by 0: a NaN in it leaks (bug 40)"),
    wrong<&mean_pool<ColumnFault::divided_by_rows>>(ASSAY_MUTANT("mean_pool", "divided_by_rows"),
                                                    "divided by s in place of the length"),
    wrong<&mean_pool<ColumnFault::lengths_of_first>>(ASSAY_MUTANT("mean_pool", "lengths_of_first"),
                                                     "the first length is used for every sequence (bug 24)"),
    wrong<&mean_pool<ColumnFault::first_batch_only>>(ASSAY_MUTANT("mean_pool", "first_batch_only"),
                                                     "one sequence is launched for a batch (bug 43)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool
