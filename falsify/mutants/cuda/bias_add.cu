// Wrong bias_add: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/bias_add.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add {
namespace {

template <void (*run)(const ops::BiasAddArgs&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(
      mutant(map_kernel_row<ops::BiasAddArgs, run>("bias_add", "", "falsify/mutants/cuda/bias_add.cu", ""), id, fault));
}

const KernelRegistration rows[] = {
    wrong<&bias_add<BiasAddFault::bias_dropped>>(ASSAY_MUTANT("bias_add", "bias_dropped"),
                                                 "the bias is left out (bug 42)"),
    wrong<&bias_add<BiasAddFault::bias_of_row>>(ASSAY_MUTANT("bias_add", "bias_of_row"),
                                                "row i gets bias[i + j]: the bias read as a matrix of stride 1"),
    wrong<&bias_add<BiasAddFault::none, MapFault::first_row_only>>(ASSAY_MUTANT("bias_add", "first_row_only"),
                                                                   "a single row is launched for a batch (bug 43)"),
    wrong<&bias_add<BiasAddFault::none, MapFault::tail_unwritten>>(
        ASSAY_MUTANT("bias_add", "tail_unwritten"), "columns past the last whole group of four unwritten (bug 8)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add
