// Matrix products: split sums, three products of TF32, adapters, NF4.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/half.hpp"
#include "core/nf4.hpp"
#include "ops/lora_linear.hpp"
#include "ops/matmul.hpp"
#include "ops/nf4_dequantize.hpp"
#include "ops/nf4_matmul_nt.hpp"
#include "tests/orders/orders.hpp"

namespace assay::orders_test {
namespace {

using ops::LoraLinearArgs;
using ops::MatmulArgs;
using ops::Nf4DequantizeArgs;
using ops::Nf4MatmulNtArgs;

template <class Dot>
auto product(Dot dot) {
  return [dot](const MatmulArgs& args) {
    const auto a = args.a.as<const float>(), b = args.b.as<const float>();
    const auto c = args.c.as<float>();
    for (Index i = 0; i < args.m; ++i)
      for (Index j = 0; j < args.n; ++j)
        c(i, j) = dot(
            args.k, [&](Index p) { return a(i, p); }, [&](Index p) { return b(p, j); });
  };
}

/// Sums parts separately, then adds the parts in turn: a workspace, or atomics in one order.
template <Index part>
struct Split {
  template <class X, class Y>
  float operator()(Index k, X x, Y y) const {
    float all = 0;
    for (Index first = 0; first < k; first += part) {
      float sum = 0;
      for (Index p = first; p < std::min(k, first + part); ++p) sum = std::fma(x(p), y(p), sum);
      all += sum;
    }
    return all;
  }
};

float upper(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffffe000U); }

/// Adds small terms first, in the order of the three instructions.
struct ThreeProducts {
  template <class X, class Y>
  float operator()(Index k, X x, Y y) const {
    float sum = 0;
    for (Index p = 0; p < k; ++p) {
      const float a = upper(x(p)), b = upper(y(p));
      if (!std::isfinite(x(p)) || !std::isfinite(y(p))) {
        sum += x(p) * y(p);
        continue;
      }
      sum += upper(x(p) - a) * b;
      sum += a * upper(y(p) - b);
      sum += a * b;
    }
    return sum;
  }
};

/// Factors, products and all partial sums are halves.
struct Halves {
  static float half(float x) { return widen(to_half(x)); }
  template <class X, class Y>
  float operator()(Index k, X x, Y y) const {
    float sum = 0;
    for (Index p = 0; p < k; ++p) sum = half(sum + half(half(x(p)) * half(y(p))));
    return sum;
  }
};

/// Scales the adapter: its product with B, or its first factor.
template <bool scaled_before>
void lora(const LoraLinearArgs& a) {
  const float scale = static_cast<float>(a.alpha) / static_cast<float>(a.r);
  const auto x = a.x.as<const float>(), weight = a.weight.as<const float>(), bias = a.bias.as<const float>();
  const auto y = a.y.as<float>();
  for (Index i = 0; i < a.s; ++i) {
    for (Index q = 0; q < a.r; ++q) {
      float sum = 0;
      for (Index p = 0; p < a.in; ++p) sum += x(i, p) * a.a(q, p);
      a.t(i, q) = sum;
    }
    for (Index o = 0; o < a.out; ++o) {
      float base = 0, adapter = 0;
      for (Index p = 0; p < a.in; ++p) base += x(i, p) * weight(o, p);
      if (a.biases > 0) base += bias(0, o);
      for (Index q = 0; q < a.r; ++q)
        adapter += scaled_before ? (a.t(i, q) * scale) * a.b(o, q) : a.t(i, q) * a.b(o, q);
      y(i, o) = base + (scaled_before ? adapter : adapter * scale);
    }
  }
}

void dequantize(const Nf4DequantizeArgs& a) {
  for (Index j = 0; j < a.n; ++j)
    for (Index p = 0; p < a.k; ++p) {
      const int code = a.codes(j, p / 2) >> (p % 2 == 0 ? 4 : 0) & 15;
      a.y(j, p) = kNf4[code] * nf4_scale(a.absmax(j, p / 64));
    }
}
void nf4_gemv(const Nf4MatmulNtArgs& a) {
  const Index m = a.y.dim(0), n = a.y.dim(1), k = a.x.dim(1);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      float lane[32] = {};
      for (Index p = 0; p < k; ++p) {
        const int code = a.codes(j, p / 2) >> (p % 2 == 0 ? 4 : 0) & 15;
        lane[p / 32 % 32] += a.x(i, p) * (kNf4[code] * nf4_scale(a.absmax(j, p / 64)));
      }
      for (int half = 16; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
      a.y(i, j) = lane[0];
    }
}

}  // namespace

Orders product_orders() {
  return {order<MatmulArgs>("matmul", "CUTLASS", "include/cutlass/gemm/kernel/gemm_splitk_parallel.h",
                            "sums of 32 terms, then their sum", product(Split<32>{})),
          order<MatmulArgs>("matmul", "CUTLASS", "include/cutlass/gemm/warp/mma_tensor_op_fast_f32.h",
                            "three products of TF32", product(ThreeProducts{}), {.inputs = Format::tf32x3}),
          order<MatmulArgs>("matmul", "cuBLAS", "cublasGemmEx with CUBLAS_COMPUTE_16F",
                            "factors, products and partial sums are halves", product(Halves{}),
                            {.inputs = Format::f16, .accumulator = Format::f16}),
          order<LoraLinearArgs>("lora_linear", "PEFT", "src/peft/tuners/lora/layer.py, Linear.forward",
                                "B (A x) scaled, then added", lora<false>),
          order<LoraLinearArgs>("lora_linear", "Unsloth", "unsloth/kernels/utils.py, matmul_lora", "A x scaled first",
                                lora<true>),
          order<Nf4DequantizeArgs>("nf4_dequantize", "bitsandbytes", "csrc/kernels.cu, kDequantizeBlockwise",
                                   "entry times absmax", dequantize),
          order<Nf4MatmulNtArgs>("nf4_matmul_nt", "bitsandbytes", "csrc/kernels.cu, kgemm_4bit_inference_naive",
                                 "entry times absmax, then x, sums by lanes", nf4_gemv)};
}

}  // namespace assay::orders_test
