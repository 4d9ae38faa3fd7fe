// Wrong embedding_backward: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/embedding_backward.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding_backward {
namespace {

template <void (*run)(const ops::EmbeddingBackwardArgs&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(map_kernel_row<ops::EmbeddingBackwardArgs, run>(
                                       "embedding_backward", "", "falsify/mutants/cuda/embedding_backward.cu", ""),
                                   id, fault));
}

const KernelRegistration rows[] = {
    wrong<&embedding_backward<ScatterFault::last_token_wins>>(
        ASSAY_MUTANT("embedding_backward", "last_token_wins"),
        "every token stores its own gradient: the last one wins (bug 28)"),
    wrong<&embedding_backward<ScatterFault::zeros_missing>>(ASSAY_MUTANT("embedding_backward", "zeros_missing"),
                                                            "rows of no token are not written (bug 29)"),
    wrong<&embedding_backward<ScatterFault::own_group_only>>(ASSAY_MUTANT("embedding_backward", "own_group_only"),
                                                             "only the 32 tokens around the first are summed"),
    wrong<&embedding_backward<ScatterFault::first_of_group_only>>(
        ASSAY_MUTANT("embedding_backward", "first_of_group_only"), "one match of every 32 ids is taken (bug 44)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding_backward
