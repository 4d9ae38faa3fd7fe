// Wrong residual_add: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/residual_add.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_residual_add {
namespace {

template <void (*run)(const ops::ResidualAddArgs&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(
      mutant(map_kernel_row<ops::ResidualAddArgs, run>("residual_add", "", "falsify/mutants/cuda/residual_add.cu", ""),
             id, fault));
}

const KernelRegistration rows[] = {
    wrong<&residual_add<ResidualAddFault::alpha_ignored>>(ASSAY_MUTANT("residual_add", "alpha_ignored"),
                                                          "the scale of the branch is left out"),
    wrong<&residual_add<ResidualAddFault::alpha_on_skip>>(ASSAY_MUTANT("residual_add", "alpha_on_skip"),
                                                          "the skip connection is scaled instead of the branch"),
    wrong<&residual_add<ResidualAddFault::none, MapFault::first_row_only>>(
        ASSAY_MUTANT("residual_add", "first_row_only"), "a single row is launched for a batch (bug 43)"),
    wrong<&residual_add<ResidualAddFault::none, MapFault::tail_unwritten>>(
        ASSAY_MUTANT("residual_add", "tail_unwritten"), "columns past the last whole group of four unwritten (bug 8)"),
    wrong<&residual_add<ResidualAddFault::none, MapFault::alignment_unchecked>>(
        ASSAY_MUTANT("residual_add", "alignment_unchecked"), "16-byte loads from rows that are aligned to 4"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_residual_add
