// dx = dy times the derivative of x sigmoid(x).
#include "kernels/cuda/elementwise.cuh"
#include "ops/silu_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_backward {
namespace {

struct SiluBackward {
  __device__ float operator()(const float (&x)[2]) const {
    const float v = x[0], power = expf(-fabsf(v));  // never overflows
    const float larger = 1.0f / (1.0f + power), smaller = power * larger;
    const float s = v < 0.0f ? smaller : larger, rest = v < 0.0f ? larger : smaller;
    return x[1] * fmaf(v * s, rest, s);
  }
};

/// dx[i,j] = dy[i,j] (s + x s (1 - s)), s = sigmoid(x[i,j]); x, dy, dx (m,n) S, row-major, any leading dimension,
/// dx apart. 12 m n bytes.
template <class S>
void run(const ops::SiluBackwardArgs& args, Device& device) {
  map(map_of<S>(args.dx, args.x, args.dy), SiluBackward{}, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "one pass, 16 bytes a thread where rows are aligned",
                             .run = &run_typed<ops::SiluBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("silu_backward/" ASSAY_CUDA_NAME "/vectors"),
                                            add<Half>("silu_backward/" ASSAY_CUDA_NAME "/vectors_f16"),
                                            add<BFloat16>("silu_backward/" ASSAY_CUDA_NAME "/vectors_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_backward
