// Addressing of the scales of NF4 blocks, shared by the kernels of double quantization.
#pragma once

#include <cstdint>

#include "core/nf4_absmax.hpp"
#include "core/view.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// `count` numbers in rows of `width`, row j at data + j * ld. Offsets take 64 bits.
template <class T>
struct AbsmaxRows {
  Index count, width;
  T* data;
  Index ld;

  __device__ T& at(Index i) const { return ld == width ? data[i] : data[i / width * ld + i % width]; }
};
template <class T>
AbsmaxRows<T> absmax_rows(const View<T>& absmax) {
  return {absmax.size(), absmax.dim(1), absmax.data(), absmax.dim(0) > 1 ? absmax.stride(0) : absmax.dim(1)};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
