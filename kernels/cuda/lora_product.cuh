// Products of linear layers in 16 bits with an adapter in float32: sums of both are added in float32 and rounded once.
#pragma once

#include "kernels/cuda/affine_product.cuh"
#include "kernels/lora16.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

inline constexpr std::string_view kMmaLowRank =
    "16-bit tensor cores (mma.sync m16n8k16) for the layer, float32 for the adapter, added to the same sums in registers";

/// scale · left · right in float32: left [m,r], right [r,n], or [n,r] if transposed.
template <bool transposed>
struct LowRank {
  int r;
  float scale;
  const float* left;
  const float* right;
  Index left_ld, right_ld;

  __device__ float left_at(int row, int q) const { return left[row * left_ld + q]; }
  __device__ float right_at(int q, int column) const {
    return right[transposed ? column * right_ld + q : q * right_ld + column];
  }
};

/// Epilogue of one thread an output: the adapter's sum over its ranks, q ascending, then the three parts in float32.
template <class S, bool transposed>
struct AddLowRank {
  Biased<S> biased;
  LowRank<transposed> adapter;

  __device__ float operator()(float sum, int row, int column) const {
    float of_ranks = 0.0f;
    for (int q = 0; q < adapter.r; ++q) of_ranks += adapter.left_at(row, q) * adapter.right_at(q, column);
    return biased(sum, row, column) + adapter.scale * of_ranks;
  }
};

/// Epilogue of a block of outputs: tiles of kRanks ranks of both factors pass through shared memory, and each thread
/// adds them to its sums, one fused multiply-add a rank, q ascending. The scale goes to the left factor, once an element.
template <class S, bool transposed>
struct AddLowRankInBlock {
  static constexpr int kRanks = 16, kTile = mma_product_detail::kTile, kPitch = kTile + 4;
  Biased<S> biased;
  LowRank<transposed> adapter;

  /// Stores ranks q0 .. q0 + kRanks - 1 of a row of r as a column of the tile; zeros outside.
  __device__ static void stage(float* tile, const float* factor, bool inside, int q0, int r, bool aligned,
                               float scale) {
#pragma unroll
    for (int q = 0; q < kRanks; q += 4) {
      const int valid = inside ? r - q0 - q : 0;
      const float* const from = factor + q0 + q;
      const float4 v = aligned && valid >= 4 ? *reinterpret_cast<const float4*>(from)
                                             : make_float4(valid > 0 ? from[0] : 0.0f, valid > 1 ? from[1] : 0.0f,
                                                           valid > 2 ? from[2] : 0.0f, valid > 3 ? from[3] : 0.0f);
      tile[q * kPitch] = scale * v.x;
      tile[(q + 1) * kPitch] = scale * v.y;
      tile[(q + 2) * kPitch] = scale * v.z;
      tile[(q + 3) * kPitch] = scale * v.w;
    }
  }

  template <class Sums>
  __device__ void add_to_block(const mma_product_detail::OutputBlock& block, Sums& sums) const {
    using Two = mma_product_detail::Word<float, 2>;
    float* const left = block.shared;                     // [q][row]
    float* const right = block.shared + kRanks * kPitch;  // [q][column]
    const int own = static_cast<int>(threadIdx.x);        // a row of the left tile, a column of the right one
    const int row = block.row0 + own, column = block.column0 + own;
    const bool left_aligned = rows_start_at(adapter.left, adapter.left_ld, 16);
    const bool right_aligned = rows_start_at(adapter.right, adapter.right_ld, 16);
    __pipeline_wait_prior(0);
    for (int q0 = 0; q0 < adapter.r; q0 += kRanks) {
      __syncthreads();  // all threads have read what these tiles overwrite
      stage(left + own, adapter.left + row * adapter.left_ld, row < block.m, q0, adapter.r, left_aligned,
            adapter.scale);
      if constexpr (transposed) {
        stage(right + own, adapter.right + column * adapter.right_ld, column < block.n, q0, adapter.r, right_aligned,
              1.0f);
      } else {
#pragma unroll
        for (int q = 0; q < kRanks; ++q)
          right[q * kPitch + own] = q0 + q < adapter.r && column < block.n ? adapter.right_at(q0 + q, column) : 0.0f;
      }
      __syncthreads();
      if (!block.computes) continue;
#pragma unroll 4
      for (int q = 0; q < kRanks; ++q) {
        const float* const rows = left + q * kPitch + block.y + block.lane_row();
        const float* const columns = right + q * kPitch + block.x + block.lane_column();
        float factors[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) factors[i] = rows[8 * i];
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const Two two = *reinterpret_cast<const Two*>(columns + 8 * j);
#pragma unroll
          for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) sums[i][j][e] += factors[2 * i + e / 2] * two.at[e % 2];
        }
      }
    }
  }
  __device__ float operator()(float sum, int row, int column) const { return biased(sum, row, column); }
};

/// The products of a layer with an adapter, as both algorithms form them. Factors of the adapter and sums are float32;
/// matrices of S are widened on the way to shared memory, or multiplied as they are by tensor cores.
struct Naive16Lora {
  template <bool a_transposed, bool b_transposed, class SA, class SB>
  static void factor(const ProductOf<SA, float, SB>& p, float scale, Device& device) {
    naive16_with<a_transposed, b_transposed>(p, Affine{scale, nullptr, 0}, device);
  }
  template <bool transposed, class S>
  static void layer(const ProductOf<S>& p, const Biased<S>& biased, const LowRank<transposed>& adapter,
                    Device& device) {
    naive16_with<false, transposed>(p, AddLowRank<S, transposed>{biased, adapter}, device);
  }
};
struct MmaLora {
  template <bool a_transposed, bool b_transposed, class SA, class SB>
  static void factor(const ProductOf<SA, float, SB>& p, float scale, Device& device) {
    register_tiled_with<a_transposed, b_transposed>(p, Affine{scale, nullptr, 0}, device);
  }
  template <bool transposed, class S>
  static void layer(const ProductOf<S>& p, const Biased<S>& biased, const LowRank<transposed>& adapter,
                    Device& device) {
    mma_product_with<false, transposed>(p, AddLowRankInBlock<S, transposed>{biased, adapter}, device);
  }
};

/// The right factor of an adapter is transposed if that of the layer is: t · Bᵀ beside x · Wᵀ, g · A beside dy · W.
template <bool transposed>
LowRank<transposed> low_rank_of(const AffineProduct& x) {
  return {static_cast<int>(x.second_k()),
          x.second.scale,
          static_cast<const float*>(x.second.a.data()),
          static_cast<const float*>(x.second.b.data()),
          leading_dimension(x.second.a),
          leading_dimension(x.second.b)};
}

/// t = x · Aᵀ, then y = x · Wᵀ + bias + scale t · Bᵀ.
template <class Algorithm, class S>
void lora_product(const AffineProduct& x, Device& device) {
  if (x.m() == 0 || x.n() == 0) return;
  if (!x.has_second()) return Algorithm::template factor<false, true>(product_of<S, float, float>(x), x.scale, device);
  Algorithm::template layer<true>(product_of<S>(x), biased_of<S>(x), low_rank_of<true>(x), device);
}

/// g = scale dy · B, dx = dy · W + g · A, dA = gᵀ · x, dB = scale dyᵀ · t.
template <class Algorithm, class S>
void lora_backward_product(const AffineProduct& x, Device& device) {
  if (x.m() == 0 || x.n() == 0) return;
  if (x.has_second())
    return Algorithm::template layer<false>(product_of<S>(x), Biased<S>{nullptr}, low_rank_of<false>(x), device);
  if (!x.a_transposed) Algorithm::template factor<false, false>(product_of<S, float, float>(x), x.scale, device);
  else if (x.b.dtype() == DType::f32)
    Algorithm::template factor<true, false>(product_of<S, float, float>(x), x.scale, device);
  else Algorithm::template factor<true, false>(product_of<float, float, S>(x), x.scale, device);
}

/// Arithmetic of MmaLora. A and B of the adapter keep their 24 bits: inputs are float32, and tensor cores hold those in
/// 16 bits exactly. Their sums are truncated, and they align subnormal factors as the smallest normal number of S. The
/// adapter's own sums are to nearest, and within that.
template <class S>
constexpr Arithmetic lora_mma_arithmetic() {
  Arithmetic arithmetic = mma_arithmetic<S>();
  arithmetic.aligned = arithmetic.inputs;
  arithmetic.inputs = Format::f32;
  return arithmetic;
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
