// Wrong products C = A·Bᵀ and C = Aᵀ·B: an operand read as it must not be.
#include "ops/matmul_nt.hpp"

#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/naive16.cuh"
#include "kernels/cuda/register_tiled.cuh"
#include "ops/matmul_tn.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_matmul_nt {
namespace {

using F = ProductFault;
constexpr std::string_view kSource = "falsify/mutants/cuda/matmul_nt.cu";

const KernelRegistration rows[] = {
    KernelRegistration(mutant(product_kernel<ops::MatmulNtArgs, &naive16<false, false>>("matmul_nt", "", kSource, ""),
                              ASSAY_MUTANT("matmul_nt", "b_not_transposed"), "A·B instead of A·Bᵀ (bug 3)")),
    KernelRegistration(mutant(
        product_kernel<ops::MatmulNtArgs, &register_tiled<false, true, F::stage_not_swapped>>("matmul_nt", "", kSource, ""),
        ASSAY_MUTANT("matmul_nt", "stage_not_swapped"), "both stages of the double buffer are the same")),
    KernelRegistration(mutant(product_kernel<ops::MatmulTnArgs, &naive16<false, false>>("matmul_tn", "", kSource, ""),
                              ASSAY_MUTANT("matmul_tn", "a_not_transposed"), "A·B instead of Aᵀ·B (bugs 3, 4)")),
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    KernelRegistration(mutant(
        product_kernel<ops::MatmulTnArgs, &naive16<true, false, F::no_barrier_after_use>>("matmul_tn", "", kSource, ""),
        ASSAY_MUTANT("matmul_tn", "no_barrier_after_use"), "no __syncthreads before the tiles are filled again (bug 28)")),
#endif
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_matmul_nt
