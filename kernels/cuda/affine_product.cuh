// Products with a scale and an addend, launched from their back-end-independent description.
#pragma once

#include "kernels/affine_product.hpp"
#include "kernels/cuda/mma_product.cuh"
#include "kernels/cuda/naive16.cuh"
#include "kernels/cuda/register_tiled.cuh"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

template <class S, class Out = S, class SB = S>
ProductOf<S, Out, SB> product_of(const AffineProduct& x) {
  return {static_cast<int>(x.m()),
          static_cast<int>(x.k()),
          static_cast<int>(x.n()),
          static_cast<const S*>(x.a.data()),
          static_cast<const SB*>(x.b.data()),
          static_cast<Out*>(x.c.data()),
          leading_dimension(x.a),
          leading_dimension(x.b),
          leading_dimension(x.c)};
}
inline Affine affine_of(const AffineProduct& x) {
  return {x.scale, x.adds() ? static_cast<const float*>(x.addend.data()) : nullptr, x.adds() ? x.addend_step() : 0};
}
template <class S>
Biased<S> biased_of(const AffineProduct& x) {
  return {x.adds() ? static_cast<const S*>(x.addend.data()) : nullptr};
}

struct Naive16 {
  template <bool a_transposed, bool b_transposed>
  static void run(const AffineProduct& x, Device& device) {
    naive16_with<a_transposed, b_transposed>(product_of<float>(x), affine_of(x), device);
  }
};
struct RegisterTiled {
  template <bool a_transposed, bool b_transposed>
  static void run(const AffineProduct& x, Device& device) {
    register_tiled_with<a_transposed, b_transposed>(product_of<float>(x), affine_of(x), device);
  }
};

template <class Algorithm>
void multiply(const AffineProduct& x, Device& device) {
  if (x.m() == 0 || x.n() == 0) return;
  if (x.a_transposed && x.b_transposed) Algorithm::template run<true, true>(x, device);
  else if (x.a_transposed) Algorithm::template run<true, false>(x, device);
  else if (x.b_transposed) Algorithm::template run<false, true>(x, device);
  else Algorithm::template run<false, false>(x, device);
}

/// The product of a linear layer in 16 bits, A · Bᵀ with a scale of 1 and a bias for all rows or none.
template <class S>
void naive16_layer(const AffineProduct& x, Device& device) {
  if (x.m() > 0 && x.n() > 0) naive16_with<false, true>(product_of<S>(x), biased_of<S>(x), device);
}
template <class S>
void mma_layer(const AffineProduct& x, Device& device) {
  if (x.m() > 0 && x.n() > 0) mma_product_with<false, true>(product_of<S>(x), biased_of<S>(x), device);
}

/// Returns the registry entry of an operation on tensors of S built from products; a block computes `rows` rows of C.
template <class Args, void (*run)(const Args&, Device&), Index rows = 16, class S = float>
Kernel composed_kernel(std::string_view id, std::string_view summary) {
  return {.id = id,
          .storage = dtype_of<S>,
          .summary = summary,
          .run = &run_typed<Args, run>,
          .refuse = [](const Call& call) {
            return refuse_grid("the rows of a product", largest_products(Args::unpack(call)).m, rows);
          }};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
