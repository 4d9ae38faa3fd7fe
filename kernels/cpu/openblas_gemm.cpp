// The product by OpenBLAS.
#include <cblas.h>
#include <fmt/core.h>

#include <climits>

#include "kernels/cpu/gemm.hpp"

namespace assay::cpu {

std::optional<std::string> openblas_refusal(const GemmCall& call) {
  const Index largest = std::max({call.m, call.k, call.n, call.a.ld, call.b.ld, call.ldc});
  if (largest <= INT_MAX) return std::nullopt;
  return fmt::format("OpenBLAS counts in 32-bit integers: an extent or leading dimension of {} is too large", largest);
}

void openblas_gemm(const GemmCall& call) {
  if (call.m == 0 || call.n == 0) return;
  if (call.k == 0) return zero_fill(call);
  const auto transpose = [](const GemmOperand& x) { return x.transposed ? CblasTrans : CblasNoTrans; };
  // beta = 0 overwrites C without reading it (a NaN in it does not survive).
  cblas_sgemm(CblasRowMajor, transpose(call.a), transpose(call.b), static_cast<int>(call.m), static_cast<int>(call.n),
              static_cast<int>(call.k), 1.0F, call.a.data, static_cast<int>(call.a.ld), call.b.data,
              static_cast<int>(call.b.ld), 0.0F, call.c, static_cast<int>(call.ldc));
}

}  // namespace assay::cpu
