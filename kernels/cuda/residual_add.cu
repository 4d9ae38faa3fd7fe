// y = x + alpha r.
#include "kernels/cuda/elementwise.cuh"
#include "ops/residual_add.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_residual_add {
namespace {

struct ResidualAdd {
  float alpha;
  __device__ float operator()(const float (&x)[2]) const { return fmaf(alpha, x[1], x[0]); }
};

/// y[i,j] = x[i,j] + alpha r[i,j], fused; x, r, y (m,n) S, row-major, any leading dimension, y apart. 3 m n
/// elements of traffic.
template <class S>
void run(const ops::ResidualAddArgs& args, Device& device) {
  map(map_of<S>(args.y, args.x, args.r), ResidualAdd{static_cast<float>(args.alpha)}, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "one pass, 16 bytes a thread where rows are aligned",
                             .run = &run_typed<ops::ResidualAddArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("residual_add/" ASSAY_CUDA_NAME "/vectors"),
                                            add<Half>("residual_add/" ASSAY_CUDA_NAME "/vectors_f16"),
                                            add<BFloat16>("residual_add/" ASSAY_CUDA_NAME "/vectors_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_residual_add
