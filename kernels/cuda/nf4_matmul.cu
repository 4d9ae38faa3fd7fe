// DX = DY·W with CUDA, W in NF4 codes.
#include "ops/nf4_matmul.hpp"

#include "kernels/cuda/nf4_product.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_matmul {
namespace {

using ops::Nf4MatmulArgs;

const KernelRegistration naive{nf4_product_kernel<Nf4MatmulArgs, &nf4_naive<false>>(
    "nf4_matmul/" ASSAY_CUDA_NAME "/naive", "one thread an output")};
const KernelRegistration register_tiled{preferred(nf4_product_kernel<Nf4MatmulArgs, &nf4_tiled<false>, 128>(
    "nf4_matmul/" ASSAY_CUDA_NAME "/register_tiled", "128x128 tiles, decoded into shared memory"))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_matmul
