// The sigmoid, shared by the gate of SwiGLU and its gradients.
#pragma once

#include "runtime/cuda/launch.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// Returns 1 / x for x in [1, 2]: the steps of the compiler's division, which is rounded correctly, without its test of
/// the range.
__device__ inline float reciprocal_of_1_to_2(float x) {
#if defined(__CUDACC__)
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return fmaf(r, fmaf(-x, r, 1.0f), r);
#else
  return 1.0f / x;
#endif
}

/// Returns sigmoid(x) and 1 - sigmoid(x) by exp(-|x|), which never overflows.
__device__ inline float2 sigmoid_and_rest(float x) {
  const float power = expf(-fabsf(x)), larger = reciprocal_of_1_to_2(1.0f + power), smaller = power * larger;
  return x < 0.0f ? make_float2(smaller, larger) : make_float2(larger, smaller);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
