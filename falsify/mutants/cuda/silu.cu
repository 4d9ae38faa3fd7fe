// Wrong silu: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/silu.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu {
namespace {

template <void (*run)(const ops::SiluArgs&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(
      mutant(map_kernel_row<ops::SiluArgs, run>("silu", "", "falsify/mutants/cuda/silu.cu", ""), id, fault));
}

const KernelRegistration rows[] = {
    wrong<&silu<SiluFault::exp_of_x>>(ASSAY_MUTANT("silu", "exp_of_x"),
                                      "exp(x) / (1 + exp(x)) everywhere: Inf / Inf for large x"),
    wrong<&silu<SiluFault::clamped>>(ASSAY_MUTANT("silu", "clamped"), "exp(-x) clamped at x = -20"),
    wrong<&silu<SiluFault::branches_swapped>>(ASSAY_MUTANT("silu", "branches_swapped"),
                                              "the two sides of sigmoid exchanged"),
    wrong<&silu<SiluFault::none, MapFault::first_row_only>>(ASSAY_MUTANT("silu", "first_row_only"),
                                                            "a single row is launched for a batch (bug 43)"),
    wrong<&silu<SiluFault::none, MapFault::alignment_unchecked>>(ASSAY_MUTANT("silu", "alignment_unchecked"),
                                                                 "16-byte loads from rows that are aligned to 4"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu
