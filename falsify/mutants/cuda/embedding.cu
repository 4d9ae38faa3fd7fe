// Wrong embedding: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/embedding.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding {
namespace {

template <void (*run)(const ops::EmbeddingArgs&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(
      map_kernel_row<ops::EmbeddingArgs, run>("embedding", "", "falsify/mutants/cuda/embedding.cu", ""), id, fault));
}

const KernelRegistration rows[] = {
    wrong<&embedding<GatherFault::first_token_only>>(ASSAY_MUTANT("embedding", "first_token_only"),
                                                     "one token is launched for a batch (bug 43)"),
    wrong<&embedding<GatherFault::tail_unwritten>>(ASSAY_MUTANT("embedding", "tail_unwritten"),
                                                   "columns past the last whole group of four unwritten (bug 8)"),
    wrong<&embedding<GatherFault::offset_of_32_bits>>(ASSAY_MUTANT("embedding", "narrow_offset"),
                                                      "the offset of a row wraps (bug 11)"),
    wrong<&embedding<GatherFault::copied_as_sum>>(ASSAY_MUTANT("embedding", "copied_as_sum"),
                                                  "copied as x + 0: negative zeros change"),
    wrong<&embedding<GatherFault::last_row_clamped>>(ASSAY_MUTANT("embedding", "last_row_clamped"),
                                                     "ids are clamped to v - 2"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding
