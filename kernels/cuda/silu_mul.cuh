// Rows of four elements a thread, and the sigmoid, shared by the gate of SwiGLU and its gradients.
#pragma once

#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// A matrix with rows of width n, and whether its rows start at multiples of 4 elements.
template <class S>
struct GateRows {
  S* data;
  Index ld;
  bool aligned;
};
template <class S, class V>
GateRows<S> gate_rows(const V& view) {
  auto* const data = static_cast<S*>(view.data());
  return {data, row_stride(view), rows_aligned(data, row_stride(view))};
}

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

/// Returns the launch shape for rows * n elements; threads stride by the whole grid.
inline LaunchShape gate_shape(Index rows, Index n) {
  return {dim3(static_cast<unsigned>(std::min<Index>(blocks_for(rows * ((n + 3) / 4), kRowThreads), 65536))),
          dim3(kRowThreads)};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
