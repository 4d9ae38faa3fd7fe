// The product by OpenBLAS.
#include <cblas.h>
#include <fmt/core.h>

#include <climits>

#include "kernels/cpu/gemm.hpp"

namespace assay::cpu {

std::optional<std::string> openblas_refusal(const GemmCall& call) {
  // OpenBLAS's small products scatter to 32-bit offsets (vscatterdps in sgemm_small_kernel of SkylakeX).
  const Index a_rows = call.a.transposed ? call.k : call.m, b_rows = call.b.transposed ? call.n : call.k;
  const Index largest = std::max({call.m, call.k, call.n, a_rows * call.a.ld, b_rows * call.b.ld, call.m * call.ldc});
  if (largest <= INT_MAX) return std::nullopt;
  return fmt::format(
      "OpenBLAS counts in 32-bit integers: {} elements from the first row to behind the last are too many", largest);
}

void openblas_gemm(const GemmCall& call) {
  if (call.m == 0 || call.n == 0) return;
  if (call.k == 0) return fill_with_addend(call);
  if (call.addend != nullptr) fill_with_addend(call);
  const auto transpose = [](const GemmOperand& x) { return x.transposed ? CblasTrans : CblasNoTrans; };
  // beta = 0 overwrites C without reading it, so that a NaN in C does not survive. alpha = 0 would skip reading A and
  // B, but no contract allows a scale of 0.
  cblas_sgemm(CblasRowMajor, transpose(call.a), transpose(call.b), static_cast<int>(call.m), static_cast<int>(call.n),
              static_cast<int>(call.k), call.scale, call.a.data, static_cast<int>(call.a.ld), call.b.data,
              static_cast<int>(call.b.ld), call.addend != nullptr ? 1.0F : 0.0F, call.c, static_cast<int>(call.ldc));
}

}  // namespace assay::cpu
