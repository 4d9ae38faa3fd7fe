// Wrong products C = A·B: the right kernels, each with one fault.
#include "ops/matmul.hpp"

#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/naive16.cuh"
#include "kernels/cuda/register_tiled.cuh"
#include "kernels/cuda/tf32_wmma.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_matmul {
namespace {

using F = ProductFault;

template <void (*run)(const Product&, Device&)>
Kernel matmul_kernel() {
  return product_kernel<ops::MatmulArgs, run>("matmul", "", "falsify/mutants/cuda/matmul.cu", "");
}
template <F fault>
KernelRegistration naive(std::string_view id, std::string_view text) {
  return KernelRegistration(mutant(matmul_kernel<&naive16<false, false, fault>>(), id, text));
}
template <F fault>
KernelRegistration tiled(std::string_view id, std::string_view text) {
  return KernelRegistration(mutant(matmul_kernel<&register_tiled<false, false, fault>>(), id, text));
}
template <F fault>
KernelRegistration tensor(std::string_view id, std::string_view text, const Arithmetic& declared = kTf32Arithmetic) {
  return KernelRegistration(mutant(declaring(declared, matmul_kernel<&tf32_wmma<false, false, fault>>()), id, text));
}

const KernelRegistration rows[] = {
    naive<F::no_barrier_after_store>(ASSAY_MUTANT("matmul", "no_barrier_after_store"),
                                     "no __syncthreads between filling the tiles and reading them (bug 28)"),
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    naive<F::no_barrier_after_use>(ASSAY_MUTANT("matmul", "no_barrier_after_use"),
                                   "no __syncthreads before the tiles are filled again (bug 28)"),
#endif
    naive<F::return_before_barrier>(ASSAY_MUTANT("matmul", "return_before_barrier"),
                                    "threads outside C return before the barrier (bug 14)"),
    naive<F::tile_off_by_one>(ASSAY_MUTANT("matmul", "tile_off_by_one"),
                              "shared memory read one row too far, past the end of the tile"),
    naive<F::k_not_predicated>(ASSAY_MUTANT("matmul", "k_not_predicated"),
                               "A read past its rows and B past its last where K is ragged (bug 7)"),
    naive<F::store_not_predicated>(ASSAY_MUTANT("matmul", "store_not_predicated"),
                                   "the edge tiles write outside C (bugs 2, 16)"),
    naive<F::width_as_stride>(ASSAY_MUTANT("matmul", "width_as_stride"), "width used as leading dimension (bug 39)"),
    naive<F::bf16_sum>(ASSAY_MUTANT("matmul", "bf16_sum"), "partial sums held in bfloat16"),
    naive<F::tile_reused>(ASSAY_MUTANT("matmul", "tile_reused"), "from the third on, the tile of B before is read again"),
    naive<F::stale_sum>(ASSAY_MUTANT("matmul", "stale_sum"),
                        "the sum starts with what shared memory held: never zeroed (bugs 23, 29)"),
    naive<F::grid_swapped>(ASSAY_MUTANT("matmul", "grid_swapped"), "m and n exchanged in the grid (bug 1)"),
    naive<F::grid_of_first_call>(ASSAY_MUTANT("matmul", "grid_of_first_call"),
                                 "the grid of the first call is kept for every shape (bug 27)"),
    naive<F::one_row_of_blocks>(ASSAY_MUTANT("matmul", "one_row_of_blocks"),
                                "a grid of one row of blocks, whatever m is (bug 43)"),
    tiled<F::stage_not_swapped>(ASSAY_MUTANT("matmul", "stage_not_swapped"),
                                "both stages of the double buffer are the same: filled while it is read"),
    tiled<F::no_barrier_between_stages>(ASSAY_MUTANT("matmul", "no_barrier_between_stages"),
                                        "no __syncthreads between the stages of the double buffer (bug 28)"),
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    tensor<F::no_wait>(ASSAY_MUTANT("matmul", "no_wait"), "asynchronous copies are not waited for (bug 28)"),
#endif
    tensor<F::no_barrier_before_reuse>(ASSAY_MUTANT("matmul", "no_barrier_before_reuse"),
                                       "a stage is read and filled with no __syncthreads between (bug 28)"),
    tensor<F::inputs_truncated>(ASSAY_MUTANT("matmul", "inputs_truncated"),
                                "inputs truncated to TF32 where rounding to nearest is declared"),
    tensor<F::none>(ASSAY_MUTANT("matmul", "tf32_declared_f32"), "TF32 tensor cores, declared as float32 (bug 88)", {}),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_matmul
