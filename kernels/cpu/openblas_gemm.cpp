// The product by OpenBLAS.
#include <cblas.h>
#include <fmt/core.h>

#include <climits>

#include "kernels/cpu/gemm.hpp"

namespace assay::cpu {

std::optional<std::string> openblas_refusal(const GemmCall& call) {
  const Index largest = std::max({call.m, call.k, call.n, call.a.ld, call.b.ld, call.ldc, call.addend_ld});
  if (largest <= INT_MAX) return std::nullopt;
  return fmt::format("OpenBLAS counts in 32-bit integers: an extent or leading dimension of {} is too large", largest);
}

void openblas_gemm(const GemmCall& call) {
  if (call.m == 0 || call.n == 0) return;
  if (call.k == 0) return fill_with_addend(call);
  if (call.addend != nullptr) fill_with_addend(call);
  const auto transpose = [](const GemmOperand& x) { return x.transposed ? CblasTrans : CblasNoTrans; };
  // beta = 0 overwrites C without reading it (a NaN in it does not survive); alpha = 0 would not read A and B, and no
  // contract has a scale that can be 0.
  cblas_sgemm(CblasRowMajor, transpose(call.a), transpose(call.b), static_cast<int>(call.m), static_cast<int>(call.n),
              static_cast<int>(call.k), call.scale, call.a.data, static_cast<int>(call.a.ld), call.b.data,
              static_cast<int>(call.b.ld), call.addend != nullptr ? 1.0F : 0.0F, call.c, static_cast<int>(call.ldc));
}

}  // namespace assay::cpu
