// Wrong linear layers: the right kernels, each with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/affine_product.cuh"
#include "kernels/linear.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_linear {
namespace {

using F = ProductFault;

template <class Algorithm, ProductFault product_fault, LinearFault fault = LinearFault::none>
KernelRegistration wrong(std::string_view id, std::string_view text) {
  return KernelRegistration(
      mutant(composed_kernel<ops::LinearArgs, &linear_by<&multiply<Algorithm, product_fault>, fault>>(
                 "linear", "", "falsify/mutants/cuda/linear.cu", ""),
             id, text));
}

const KernelRegistration rows[] = {
    wrong<RegisterTiled, F::none, LinearFault::weight_as_in_out>(ASSAY_MUTANT("linear", "weight_as_in_out"),
                                                                 "W read as [in, out] (bugs 5, 6)"),
    wrong<RegisterTiled, F::none, LinearFault::bias_dropped>(ASSAY_MUTANT("linear", "bias_dropped"),
                                                             "the bias is not added (bug 42)"),
    wrong<Naive16, F::none, LinearFault::first_row_only>(ASSAY_MUTANT("linear", "first_row_only"),
                                                         "a kernel of one row launched for a batch (bug 43)"),
    wrong<Naive16, F::grid_swapped>(ASSAY_MUTANT("linear", "grid_swapped"), "s and out exchanged in the grid (bug 1)"),
    wrong<Naive16, F::return_before_barrier>(ASSAY_MUTANT("linear", "return_before_barrier"),
                                             "threads outside y return before the barrier (bug 14)"),
    wrong<Naive16, F::no_barrier_after_store>(ASSAY_MUTANT("linear", "no_barrier_after_store"),
                                              "no __syncthreads between filling the tiles and reading them (bug 28)"),
    wrong<Naive16, F::k_not_predicated>(ASSAY_MUTANT("linear", "k_not_predicated"),
                                        "x read past its rows and W past its last where in is ragged (bug 7)"),
    wrong<Naive16, F::store_not_predicated>(ASSAY_MUTANT("linear", "store_not_predicated"),
                                            "the edge tiles write outside y (bugs 2, 16)"),
    wrong<RegisterTiled, F::stage_not_swapped>(
        ASSAY_MUTANT("linear", "stage_not_swapped"),
        "both stages of the double buffer are the same: filled while it is read"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_linear
