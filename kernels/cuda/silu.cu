// y = x sigmoid(x).
#include "kernels/cuda/elementwise.cuh"
#include "ops/silu.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu {
namespace {

struct Silu {
  __device__ float operator()(const float (&x)[1]) const {
    const float v = x[0], power = expf(-fabsf(v));  // never overflows
    return v * ((v < 0.0f ? power : 1.0f) / (1.0f + power));
  }
};

/// y[i,j] = x[i,j] sigmoid(x[i,j]); x, y (m,n) S, row-major, any leading dimension, apart. 8 m n bytes.
template <class S>
void run(const ops::SiluArgs& args, Device& device) {
  map(map_of<S>(args.y, args.x), Silu{}, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "one pass, 16 bytes a thread where rows are aligned",
                             .run = &run_typed<ops::SiluArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("silu/" ASSAY_CUDA_NAME "/vectors"),
                                            add<Half>("silu/" ASSAY_CUDA_NAME "/vectors_f16"),
                                            add<BFloat16>("silu/" ASSAY_CUDA_NAME "/vectors_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu
