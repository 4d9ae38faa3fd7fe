// The product C = op(A)·op(B) shared by matmul, matmul_nt and matmul_tn, and its implementations.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "core/arithmetic.hpp"
#include "core/view.hpp"
#include "kernels/affine_product.hpp"

namespace assay::cpu {

/// A row-major matrix in memory: element (i, j) is data[i * ld + j]. If `transposed`, the product uses its transpose.
struct GemmOperand {
  const float* data = nullptr;
  Index ld = 1;
  bool transposed = false;
};

/// C[m,n] = scale op(A)[m,k] · op(B)[k,n] + addend, all float32. C is overwritten, and read only if it is the addend. C
/// shares no memory with A or B; A and B may be the same. Addresses need only the alignment of float. k = 0 gives the
/// addend, or 0.
struct GemmCall {
  Index m = 0;
  Index k = 0;
  Index n = 0;
  GemmOperand a;
  GemmOperand b;
  float* c = nullptr;
  Index ldc = 1;
  float scale = 1;
  const float* addend = nullptr;  ///< element (i, j) is addend[i * addend_ld + j]; null: nothing is added
  Index addend_ld = 0;
};

/// Returns the leading dimension of a row-major matrix; the width if there are fewer than two rows or no elements,
/// where the contract allows any stride.
template <AnyView V>
Index leading_dimension(const V& matrix) {
  return matrix.dim(0) > 1 && matrix.dim(1) > 0 ? matrix.stride(0) : std::max<Index>(matrix.dim(1), 1);
}

/// C = addend, or 0: the product for k = 0.
inline void fill_with_addend(const GemmCall& call) {
  if (call.addend == call.c) return;
  for (Index i = 0; i < call.m; ++i)
    if (call.addend != nullptr) std::copy_n(call.addend + i * call.addend_ld, call.n, call.c + i * call.ldc);
    else std::fill_n(call.c + i * call.ldc, call.n, 0.0F);
}

inline GemmOperand operand(const View<const float>& matrix, bool transposed) {
  return {matrix.data(), leading_dimension(matrix), transposed};
}
inline GemmOperand operand(const StorageView& matrix, bool transposed) {
  return operand(matrix.as<const float>(), transposed);
}

/// Describes the product of MatmulArgs, MatmulNtArgs or MatmulTnArgs.
template <class Args>
AffineProduct product_of(const Args& args, bool a_transposed, bool b_transposed) {
  return {.a = args.a, .a_transposed = a_transposed, .b = args.b, .b_transposed = b_transposed, .c = args.c};
}

/// Builds the call of a product whose matrices are all float32.
inline GemmCall gemm_call(const AffineProduct& x) {
  return {.m = x.m(),
          .k = x.k(),
          .n = x.n(),
          .a = operand(x.a, x.a_transposed),
          .b = operand(x.b, x.b_transposed),
          .c = x.c.as<float>().data(),
          .ldc = leading_dimension(x.c),
          .scale = x.scale,
          .addend = x.adds() ? x.addend.as<const float>().data() : nullptr,
          .addend_ld = x.adds() ? x.addend_step() : 0};
}
template <class Args>
GemmCall gemm_call(const Args& args, bool a_transposed, bool b_transposed) {
  return gemm_call(product_of(args, a_transposed, b_transposed));
}

inline constexpr std::string_view kWidened =
    "highway_tiled's tiles over panels widened to f32, or AMX tiles of bf16; one rounding at the end";

/// cblas_sgemm with alpha = scale, and beta = 1 if there is an addend. Error at most k·u·|A|·|B| element by element, in
/// OpenBLAS's own order; the scale and the addend cost one rounding each.
void openblas_gemm(const GemmCall& call);
/// Returns why OpenBLAS cannot take the call: its integers and some of its offsets have 32 bits.
std::optional<std::string> openblas_refusal(const GemmCall& call);

/// Register tiles in Highway SIMD, on the best instruction set of this processor, and threads for a large product. Each
/// element, at any position and on any number of threads, is summed over k in ascending order, in blocks of 256 whose sums are added in turn: error at most
/// k·u·|A|·|B|. The bits of a row of C depend on that row of A and on B alone.
void tiled_gemm(const GemmCall& call);

/// The tiles of tiled_gemm for factors of any format, widened while they are packed. Sums are those of tiled_gemm for
/// the same values, float32 until all of k, a second term and the addend are in; C is rounded once: error at most
/// k·u·|A|·|B| and half a unit of C's format. Products of two matrices in bf16 are formed by AMX on processors that have
/// it (and AVX-512), in blocks of 1024 terms. The bits of a row of C depend on that row of A and on B alone.
void widened_gemm(const AffineProduct& product);

/// The arithmetic of kernels by widened_gemm: AMX counts subnormal factors and sums as zero.
inline Arithmetic widened_arithmetic(DType storage) { return {.flushes_subnormals = storage == DType::bf16}; }

/// tiled_gemm where it is faster, else openblas_gemm.
void dispatch_gemm(const GemmCall& call);

}  // namespace assay::cpu
