// Y = X·Wᵀ with CUDA, W in NF4 codes.
#include "ops/nf4_matmul_nt.hpp"

#include "kernels/cuda/nf4_product.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_matmul_nt {
namespace {

using ops::Nf4MatmulNtArgs;

const KernelRegistration naive{nf4_product_kernel<Nf4MatmulNtArgs, &nf4_naive<true>>(
    "nf4_matmul_nt/" ASSAY_CUDA_NAME "/naive", "one thread an output")};
const KernelRegistration by_rows{preferred(varying_with_batch(nf4_product_kernel<Nf4MatmulNtArgs, &nf4_by_rows, 128>(
    "nf4_matmul_nt/" ASSAY_CUDA_NAME "/by_rows",
    "up to 4 rows: x in registers, four rows of W at once, the next on their way; more: 128x128 tiles, decoded into shared memory")))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_matmul_nt
