// Wrong steps of AdamW: the right kernel, each with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/adamw_step.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_adamw_step {
namespace {

template <AdamwFault fault>
KernelRegistration wrong(std::string_view id, std::string_view what) {
  return KernelRegistration(mutant(adamw_row<fault>(""), id, what));
}

const KernelRegistration rows[] = {
    wrong<AdamwFault::tail_dropped>(ASSAY_MUTANT("adamw_step", "tail_dropped"),
                                    "floor instead of ceiling of n / 4 (bug 8)"),
    wrong<AdamwFault::one_past_the_end>(ASSAY_MUTANT("adamw_step", "one_past_the_end"),
                                        "i <= n: the neighbour's first element is updated (bug 2)"),
    wrong<AdamwFault::last_block_lost>(ASSAY_MUTANT("adamw_step", "last_block_lost"),
                                       "floor instead of ceiling of n / 1024 blocks (bug 8)"),
    wrong<AdamwFault::moments_not_stored>(ASSAY_MUTANT("adamw_step", "moments_not_stored"), "m is not written back"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_adamw_step
