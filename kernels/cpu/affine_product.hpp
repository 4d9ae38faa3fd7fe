// Calls the products of gemm.hpp from their back-end-independent description.
#pragma once

#include <optional>
#include <string>

#include "kernels/cpu/gemm.hpp"
#include "runtime/device.hpp"

namespace assay::cpu {

inline void multiply_openblas(const AffineProduct& x, Device&) { openblas_gemm(gemm_call(x)); }
inline void multiply_tiled(const AffineProduct& x, Device&) { tiled_gemm(gemm_call(x)); }
inline void multiply_dispatch(const AffineProduct& x, Device&) { dispatch_gemm(gemm_call(x)); }
inline void multiply_widened(const AffineProduct& x, Device&) { widened_gemm(x); }

/// Returns why OpenBLAS cannot take matrices of these extents and strides, or nothing if it can.
template <AnyView... V>
std::optional<std::string> openblas_refuses(const V&... matrices) {
  GemmCall call;
  call.m = 1;
  call.ldc = std::max({std::max<Index>(matrices.dim(0), 1) * leading_dimension(matrices)...});
  return openblas_refusal(call);
}

inline constexpr std::string_view kOpenblas = "cblas_sgemm";
inline constexpr std::string_view kHighwayTiled = "register tiles of 12x32 (AVX-512) or 6x16 (AVX2)";
inline constexpr std::string_view kDispatch = "highway_tiled for small products, else OpenBLAS";

}  // namespace assay::cpu
