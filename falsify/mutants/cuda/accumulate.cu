// Wrong accumulate: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/accumulate.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_accumulate {
namespace {

template <void (*run)(const ops::AccumulateArgs&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(
      map_kernel_row<ops::AccumulateArgs, run>("accumulate", "", "falsify/mutants/cuda/accumulate.cu", ""), id, fault));
}

const KernelRegistration rows[] = {
    wrong<&accumulate<AccumulateFault::overwrites>>(ASSAY_MUTANT("accumulate", "overwrites"),
                                                    "dst is overwritten instead of added to (bug 29)"),
    wrong<&accumulate<AccumulateFault::alpha_ignored>>(ASSAY_MUTANT("accumulate", "alpha_ignored"),
                                                       "the factor is left out (bug 71)"),
    wrong<&accumulate<AccumulateFault::none, MapFault::width_as_stride>>(
        ASSAY_MUTANT("accumulate", "width_as_stride"),
        "the width used as leading dimension of the first input (bug 39)"),
    wrong<&accumulate<AccumulateFault::none, MapFault::first_row_only>>(
        ASSAY_MUTANT("accumulate", "first_row_only"), "a single row is launched for a batch (bug 43)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_accumulate
