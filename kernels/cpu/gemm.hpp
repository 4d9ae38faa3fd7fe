// The product C = op(A)·op(B) that matmul, matmul_nt and matmul_tn have in common, and its implementations.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "core/view.hpp"

namespace assay::cpu {

/// A row-major matrix as it lies in memory: element (i, j) is data[i * ld + j]. `transposed` multiplies by
/// its transpose.
struct GemmOperand {
  const float* data = nullptr;
  Index ld = 1;
  bool transposed = false;
};

/// C[m,n] = op(A)[m,k] · op(B)[k,n], all float32; C is overwritten, never read. C shares no memory with A or
/// B; A and B may be the same. Addresses need no more than the alignment of float. k = 0 gives C = 0.
struct GemmCall {
  Index m = 0;
  Index k = 0;
  Index n = 0;
  GemmOperand a;
  GemmOperand b;
  float* c = nullptr;
  Index ldc = 1;
};

/// Leading dimension of a row-major matrix. Where there are fewer than two rows, or no elements, the contract
/// allows any stride and nothing follows it: the width stands in for it.
template <class T>
Index leading_dimension(const View<T>& matrix) {
  return matrix.dim(0) > 1 && matrix.dim(1) > 0 ? matrix.stride(0) : std::max<Index>(matrix.dim(1), 1);
}

/// C = 0, the product of matrices with k = 0.
inline void zero_fill(const GemmCall& call) {
  for (Index i = 0; i < call.m; ++i) std::fill_n(call.c + i * call.ldc, call.n, 0.0F);
}

inline GemmOperand operand(const View<const float>& matrix, bool transposed) {
  return {matrix.data(), leading_dimension(matrix), transposed};
}

/// Args is MatmulArgs, MatmulNtArgs or MatmulTnArgs.
template <class Args>
GemmCall gemm_call(const Args& args, bool a_transposed, bool b_transposed) {
  return {args.m,
          args.k,
          args.n,
          operand(args.a, a_transposed),
          operand(args.b, b_transposed),
          args.c.data(),
          leading_dimension(args.c)};
}

/// cblas_sgemm with alpha = 1, beta = 0. Error at most k·u·|A|·|B| element by element, in OpenBLAS's own order.
void openblas_gemm(const GemmCall& call);
/// Why OpenBLAS cannot take the call: its integers are 32 bits.
std::optional<std::string> openblas_refusal(const GemmCall& call);

/// Register tiles in Highway SIMD, on the best instruction set of this processor; one thread. Each element is summed
/// over k in ascending order, in blocks of 256 whose sums are added in turn, wherever the element stands: error at most
/// k·u·|A|·|B|, and the bits of a row of C depend on that row of A and on B alone.
void tiled_gemm(const GemmCall& call);

/// tiled_gemm where it is the quicker one, else openblas_gemm.
void dispatch_gemm(const GemmCall& call);

}  // namespace assay::cpu
