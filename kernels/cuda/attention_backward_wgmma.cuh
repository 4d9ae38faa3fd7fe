// Gradients of attention in 16 bits on the tensor cores of compute capability 9.0. A block of one kernel keeps keys and
// values, and queries pass by; a block of the other keeps queries and upstream gradients, and keys pass by. One warp
// copies what passes, two warpgroups multiply. Weights and ds are left factors as they lie in registers.
//
// dq has a kernel of its own, which computes scores anew: seven products in place of five. Added up while queries pass,
// it would need atomic operations, in an order that varies, or a dq in memory for each tile of keys, which takes longer
// than two products.
#pragma once

#include <climits>

#include "kernels/cuda/attention_backward.cuh"
#include "kernels/cuda/attention_wgmma.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::backward_by_wgmma {

using namespace attention_backward;
using by_wgmma::exp2_flushed, by_wgmma::kGroupThreads, by_wgmma::packed_pair, by_wgmma::Passage;

/// A block keeps kOwnRows rows, 64 for each of kConsumers warpgroups; kTile rows pass at a time.
constexpr int kOwnRows = 128, kTile = 64, kBox = 64, kTerms = 16, kConsumers = 2;
constexpr int kGroupRows = kOwnRows / kConsumers, kThreads = (1 + kConsumers) * kGroupThreads;
static_assert(kGroupRows == 64 && kTile == kBox && kBox * 2 == hopper::kRowBytes);

/// kRows rows of kD elements in shared memory: columns of boxes of 64 rows by 64 elements.
template <int kRows, int kD>
struct Rows {
  static constexpr int kColumnBytes = kRows * hopper::kRowBytes, kBytes = kD / kBox * kColumnBytes;

  /// Starts the copy of the rows from `row` of head h of sequence b.
  __device__ static void copy(unsigned char* to, const hopper::TensorMap& map, hopper::Barrier& full, int row, int h,
                              int b) {
    for (int c = 0; c < kD; c += kBox)
      for (int r = 0; r < kRows; r += kBox)
        hopper::copy_box(to + c / kBox * kColumnBytes + r * hopper::kRowBytes, map, full, c, row + r, h, b);
  }
  /// Describes rows from `row` on as those of an operand, with kTerms columns from `column` as terms.
  __device__ static std::uint64_t rows(const unsigned char* from, int row, int column) {
    return hopper::descriptor(from + column / kBox * kColumnBytes + row * hopper::kRowBytes + column % kBox * 2, 0,
                              hopper::kSwizzleBytes);
  }
  /// Describes kTerms rows from `row` on as terms, with all columns as those of the operand.
  __device__ static std::uint64_t terms(const unsigned char* from, int row) {
    return hopper::descriptor(from + row * hopper::kRowBytes, kColumnBytes, hopper::kSwizzleBytes);
  }
  /// Loads what a lane has of 16 rows from `row` on and kTerms columns from `column` on as a left factor.
  __device__ static void load(unsigned (&factor)[4], const unsigned char* from, int row, int column) {
    const int lane = static_cast<int>(threadIdx.x) % 32, r = row + lane % 16, c = column + lane / 16 * 8;
    mma_detail::load_matrices<false>(
        factor, from + c / kBox * kColumnBytes + r * hopper::kRowBytes + ((c % kBox * 2) ^ (r % 8 * 16)));
  }
};

/// Rounds 64x64 products to left factors.
template <class S>
__device__ inline void pack(unsigned (&factors)[kTile / kTerms][4], const float (&products)[kTile / 2]) {
#pragma unroll
  for (int e = 0; e < kTile / 2; e += 2) factors[e / 8][e / 2 % 4] = packed_pair<S>(products[e], products[e + 1]);
}

/// sums by tiles of eight columns.
template <int count>
__device__ inline void by_tiles(const float (&sums)[count], float (&tiled)[count / 4][4]) {
#pragma unroll
  for (int e = 0; e < count; ++e) tiled[e / 4][e % 4] = sums[e];
}

/// A stage holds queries, their upstream gradients, and of each query `along` and `shift`: 32 in a row.
template <int kD>
struct KeysPlan {
  using Own = Rows<kOwnRows, kD>;
  using Passing = Rows<kTile, kD>;
  static constexpr int kStages = 3, kScalarsOfRow = hopper::kRowBytes / 4, kScalarRows = kTile / kScalarsOfRow;
  static constexpr int kCopiedBytes = 2 * Passing::kBytes + 2 * kScalarRows * hopper::kRowBytes;
  static constexpr int kStageBytes = 2 * Passing::kBytes + hopper::kSwizzleBytes;
  static constexpr std::size_t kBytes = 2 * Own::kBytes + kStages * kStageBytes + hopper::kSwizzleBytes;

  /// Returns scalars `at` and `at` + 1 of those from row `row` on.
  __device__ static float2 two(const unsigned char* scalars, int row, int at) {
    row += at / kScalarsOfRow;
    return *reinterpret_cast<const float2*>(scalars + row * hopper::kRowBytes +
                                            ((at % kScalarsOfRow * 4) ^ (row * 16)));
  }
};

/// dk and dv of kOwnRows keys. The queries of a head pass, then those of the next head of the group. Rows of scores are
/// keys.
template <class S, int kD>
__global__ void __launch_bounds__(kThreads, 1)
    attention_backward_wgmma_keys(AttentionBackward<S> p, const __grid_constant__ hopper::TensorMap q_map,
                                  const __grid_constant__ hopper::TensorMap k_map,
                                  const __grid_constant__ hopper::TensorMap v_map,
                                  const __grid_constant__ hopper::TensorMap dy_map,
                                  const __grid_constant__ hopper::TensorMap scalars_map) {
  using Plan = KeysPlan<kD>;
  using Own = typename Plan::Own;
  using Passing = typename Plan::Passing;
  ASSAY_SHARED(Passage<Plan::kStages>, passage, [1]);
  unsigned char *const keys = hopper::boxes_of_block(), *const values = keys + Own::kBytes;
  const auto queries = [&](int n) { return values + Own::kBytes + n % Plan::kStages * Plan::kStageBytes; };
  const auto upstream = [&](int n) { return queries(n) + Passing::kBytes; };
  const auto scalars = [&](int n) { return upstream(n) + Passing::kBytes; };
  const Attention<S>& a = p.forward;
  const int b = static_cast<int>(blockIdx.z), g = static_cast<int>(blockIdx.y), s = static_cast<int>(a.s),
            group = static_cast<int>(a.group), length = a.lengths[b], start = a.starts[b];
  const int block_key = static_cast<int>(blockIdx.x) * kOwnRows;
  const auto first_query = [&](int key) { return key >= length ? INT_MAX : a.causal ? max(key - start, 0) : 0; };
  const int first_row = first_query(block_key) / kTile * kTile;
  // A warpgroup whose keys no query sees takes no part.
  const int consumers = first_query(block_key + kGroupRows) < s ? kConsumers : 1;

  if (threadIdx.x == 0) passage[0].initialize(consumers);
  __syncthreads();

  if (threadIdx.x < kGroupThreads) {
    hopper::release_registers<24>();
    if (threadIdx.x > 0 || first_row >= s) return;
    hopper::arrive_expecting(passage[0].own, 2 * Own::kBytes);
    Own::copy(keys, k_map, passage[0].own, block_key, g, b);
    Own::copy(values, v_map, passage[0].own, block_key, g, b);
    const Index heads = a.kv_heads * a.group, rows = a.batch * heads * p.pitch;
    int n = 0;
    for (int h = g * group; h < (g + 1) * group; ++h)
      for (int row = first_row; row < s; row += kTile, ++n) {
        const Index number = (b * heads + h) * p.pitch + row;
        hopper::Barrier& full = passage[0].begin(n, Plan::kCopiedBytes);
        Passing::copy(queries(n), q_map, full, row, h, b);
        Passing::copy(upstream(n), dy_map, full, row, h, b);
        hopper::copy_box(scalars(n), scalars_map, full, 0, static_cast<int>(number / Plan::kScalarsOfRow));
        hopper::copy_box(scalars(n) + Plan::kScalarRows * hopper::kRowBytes, scalars_map, full, 0,
                         static_cast<int>((rows + number) / Plan::kScalarsOfRow));
      }
    return;
  }

  hopper::take_registers<240>();
  // As one lane has it, so that the compiler knows it to be the same for a warp.
  const int consumer = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / kGroupThreads - 1, 0);
  const int y = consumer * kGroupRows;
  const int own_key = block_key + (static_cast<int>(threadIdx.x) - kGroupThreads) / 32 * 16;
  // Queries from here on see all keys of the warpgroup.
  const int all_seen = first_query(block_key + y + kGroupRows - 1);
  const float scale = a.scale * kLog2E;
  float of_keys[kD / 2] = {}, of_values[kD / 2] = {}, weights[kTile / 2], ds[kTile / 2];
  unsigned weight_factors[kTile / kTerms][4], ds_factors[kTile / kTerms][4];

  const auto begin_scores = [&](int n) {
#pragma unroll
    for (int c = 0; c < kD; c += kTerms)
      hopper::multiply<S, false, false>(weights, Own::rows(keys, y, c), Passing::rows(queries(n), 0, c), c > 0);
    hopper::commit_products();
  };
  const auto begin_ds = [&](int n) {
#pragma unroll
    for (int c = 0; c < kD; c += kTerms)
      hopper::multiply<S, false, false>(ds, Own::rows(values, y, c), Passing::rows(upstream(n), 0, c), c > 0);
    hopper::commit_products();
  };
  const auto add_to_values = [&](int n) {
#pragma unroll
    for (int i = 0; i < kTile; i += kTerms)
      hopper::multiply<S, true>(of_values, weight_factors[i / kTerms], Passing::terms(upstream(n), i), true);
    hopper::commit_products();
  };
  const auto add_to_keys = [&](int n) {
#pragma unroll
    for (int i = 0; i < kTile; i += kTerms)
      hopper::multiply<S, true>(of_keys, ds_factors[i / kTerms], Passing::terms(queries(n), i), true);
    hopper::commit_products();
  };
  // Scores become weights in place.
  const auto weigh = [&](int n, int row) {
    if (row < all_seen) {
      const int first[2] = {first_query(own_key + output_row(0)), first_query(own_key + output_row(2))};
#pragma unroll
      for (int e = 0; e < kTile / 2; ++e)
        if (e / 4 * 8 + e % 2 < first[e / 2 % 2] - row - output_column(0)) weights[e] = -INFINITY;
    }
#pragma unroll
    for (int e = 0; e < kTile / 2; e += 4) {
      const float2 shift = Plan::two(scalars(n), Plan::kScalarRows, e / 4 * 8 + output_column(0));
#pragma unroll
      for (int half = e; half < e + 4; half += 2) {
        weights[half] = exp2_flushed(fmaf(weights[half], scale, -shift.x));
        weights[half + 1] = exp2_flushed(fmaf(weights[half + 1], scale, -shift.y));
      }
    }
  };
  const auto finish_ds = [&](int n) {
#pragma unroll
    for (int e = 0; e < kTile / 2; e += 4) {
      const float2 along = Plan::two(scalars(n), 0, e / 4 * 8 + output_column(0));
#pragma unroll
      for (int half = e; half < e + 4; half += 2) {
        ds[half] = weights[half] * (ds[half] - along.x);
        ds[half + 1] = weights[half + 1] * (ds[half + 1] - along.y);
      }
    }
  };
  // Products with weights run while ds is computed, those with ds before the next scores.
  if (first_row < s && consumer < consumers) {
    hopper::wait(passage[0].own, 0);
    int n = 0;
    for (int member = 0; member < group; ++member)
      for (int row = first_row; row < s; row += kTile, ++n) {
        passage[0].await(n);
        hopper::fence_products(weights);
        begin_scores(n);
        hopper::wait_products<1>();  // those of the previous tile
        if (n > 0) passage[0].release(n - 1);
        hopper::fence_products(ds);
        begin_ds(n);
        hopper::complete_products<1>(weights);
        weigh(n, row);
        pack<S>(weight_factors, weights);
        hopper::fence_products(weight_factors, of_values);
        add_to_values(n);
        hopper::complete_products<1>(ds);
        finish_ds(n);
        pack<S>(ds_factors, ds);
        hopper::fence_products(ds_factors, of_keys);
        add_to_keys(n);
      }
    hopper::complete_products(of_keys);
    hopper::complete_products(of_values);
  }

  float tiled_keys[kD / 8][4], tiled_values[kD / 8][4];
  by_tiles(of_keys, tiled_keys);
  by_tiles(of_values, tiled_values);
  // A NaN or Inf of an upstream gradient, which dv takes in with a weight of zero, is in ds and so in dk, too.
  const std::uint64_t nonfinite_mask = nonfinite_rows(tiled_keys, {0.0f, 0.0f});
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = output_row(2 * half), j = own_key + r;
    if (j >= a.t || is_nonfinite_row(nonfinite_mask, r)) continue;
    store_outputs(p.dk.at(b, j, g), tiled_keys, half, a.scale, a.d);
    store_outputs(p.dv.at(b, j, g), tiled_values, half, 1.0f, a.d);
  }
  for (int r = 0; r < 16; ++r)
    if (is_nonfinite_row(nonfinite_mask, r) && own_key + r < a.t) key_gradients(p, b, g, own_key + r, 0, a.d);
}

/// A stage holds keys and values.
template <int kD>
struct QueriesPlan {
  using Own = Rows<kOwnRows, kD>;
  using Passing = Rows<kTile, kD>;
  static constexpr int kStages = 4, kStageBytes = 2 * Passing::kBytes;
  static constexpr std::size_t kBytes = 2 * Own::kBytes + kStages * kStageBytes + hopper::kSwizzleBytes;
};

/// dq of kOwnRows queries of one head. Rows of scores are queries; own rows are left factors in registers.
template <class S, int kD>
__global__ void __launch_bounds__(kThreads, 1)
    attention_backward_wgmma_queries(AttentionBackward<S> p, const __grid_constant__ hopper::TensorMap q_map,
                                     const __grid_constant__ hopper::TensorMap k_map,
                                     const __grid_constant__ hopper::TensorMap v_map,
                                     const __grid_constant__ hopper::TensorMap dy_map) {
  using Plan = QueriesPlan<kD>;
  using Own = typename Plan::Own;
  using Passing = typename Plan::Passing;
  ASSAY_SHARED(Passage<Plan::kStages>, passage, [1]);
  unsigned char *const queries = hopper::boxes_of_block(), *const upstream = queries + Own::kBytes;
  const auto keys = [&](int n) { return upstream + Own::kBytes + n % Plan::kStages * Plan::kStageBytes; };
  const auto values = [&](int n) { return keys(n) + Passing::kBytes; };
  const Attention<S>& a = p.forward;
  const int b = static_cast<int>(blockIdx.z), h = static_cast<int>(blockIdx.y), s = static_cast<int>(a.s);
  // Later blocks see more keys: start them first.
  const int block_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kOwnRows;
  const auto keys_of = [&](int row) {
    return row < s ? static_cast<int>(keys_seen(a.causal, a.lengths[b], a.starts[b], row)) : 0;
  };
  const int tiles = (keys_of(min(s, block_row + kOwnRows) - 1) + kTile - 1) / kTile;
  const int consumers = block_row + kGroupRows < s ? kConsumers : 1;

  if (threadIdx.x == 0) passage[0].initialize(consumers);
  __syncthreads();

  if (threadIdx.x < kGroupThreads) {
    hopper::release_registers<24>();
    if (threadIdx.x > 0 || tiles == 0) return;
    hopper::arrive_expecting(passage[0].own, 2 * Own::kBytes);
    Own::copy(queries, q_map, passage[0].own, block_row, h, b);
    Own::copy(upstream, dy_map, passage[0].own, block_row, h, b);
    const int g = h / static_cast<int>(a.group);
    for (int n = 0; n < tiles; ++n) {
      hopper::Barrier& full = passage[0].begin(n, Plan::kStageBytes);
      Passing::copy(keys(n), k_map, full, n * kTile, g, b);
      Passing::copy(values(n), v_map, full, n * kTile, g, b);
    }
    return;
  }

  hopper::take_registers<240>();
  const int consumer = static_cast<int>(threadIdx.x) / kGroupThreads - 1, y = consumer * kGroupRows;
  const int own_y = (static_cast<int>(threadIdx.x) - kGroupThreads) / 32 * 16, own_row = block_row + own_y;
  int seen[2];
  float along[2], shift[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = own_row + output_row(2 * half);
    const Index number = (b * a.kv_heads * a.group + h) * p.pitch + row;
    seen[half] = keys_of(row);
    along[half] = row < s ? p.along[number] : 0.0f;
    shift[half] = row < s ? p.shift[number] : INFINITY;
  }
  // All rows of the warpgroup see the keys before this one.
  const int least = block_row + y + kGroupRows <= s ? keys_of(block_row + y) : 0;
  const float scale = a.scale * kLog2E;
  float sums[kD / 2] = {}, weights[kTile / 2], ds[kTile / 2];
  // Own rows of 64 elements stay in shared memory: ptxas 13.0 gives their registers to ds_factors as well.
  constexpr bool kInRegisters = kD > 64;
  unsigned query_factors[kD / kTerms][4], upstream_factors[kD / kTerms][4], ds_factors[kTile / kTerms][4];

  const auto begin = [&](float(&products)[kTile / 2], const unsigned(&factors)[kD / kTerms][4],
                         const unsigned char* own, const unsigned char* passing) {
#pragma unroll
    for (int c = 0; c < kD; c += kTerms) {
      const std::uint64_t right = Passing::rows(passing, 0, c);
      if constexpr (kInRegisters) hopper::multiply<S, false>(products, factors[c / kTerms], right, c > 0);
      else hopper::multiply<S, false, false>(products, Own::rows(own, y, c), right, c > 0);
    }
    hopper::commit_products();
  };
  const auto add_to_sums = [&](int n) {
#pragma unroll
    for (int j = 0; j < kTile; j += kTerms)
      hopper::multiply<S, true>(sums, ds_factors[j / kTerms], Passing::terms(keys(n), j), true);
    hopper::commit_products();
  };
  // Scores become weights in place.
  const auto weigh = [&](int n) {
    if (least < (n + 1) * kTile) {
#pragma unroll
      for (int e = 0; e < kTile / 2; ++e)
        if (e / 4 * 8 + e % 2 >= seen[e / 2 % 2] - n * kTile - output_column(0)) weights[e] = -INFINITY;
    }
#pragma unroll
    for (int e = 0; e < kTile / 2; ++e) weights[e] = exp2_flushed(fmaf(weights[e], scale, -shift[e / 2 % 2]));
  };
  if (tiles > 0 && consumer < consumers) {
    hopper::wait(passage[0].own, 0);
#pragma unroll
    for (int c = 0; kInRegisters && c < kD; c += kTerms) {
      Own::load(query_factors[c / kTerms], queries, own_y, c);
      Own::load(upstream_factors[c / kTerms], upstream, own_y, c);
    }
    for (int n = 0; n < tiles; ++n) {
      passage[0].await(n);
      hopper::fence_products(query_factors, weights);
      begin(weights, query_factors, queries, keys(n));
      hopper::wait_products<1>();  // those of the previous tile
      if (n > 0) passage[0].release(n - 1);
      hopper::fence_products(upstream_factors, ds);
      begin(ds, upstream_factors, upstream, values(n));
      hopper::complete_products<1>(weights);
      weigh(n);
      hopper::complete_products(ds);
#pragma unroll
      for (int e = 0; e < kTile / 2; ++e) ds[e] = weights[e] * (ds[e] - along[e / 2 % 2]);
      pack<S>(ds_factors, ds);
      hopper::fence_products(ds_factors, sums);
      add_to_sums(n);
    }
    hopper::complete_products(sums);
  }

  float tiled[kD / 8][4];
  by_tiles(sums, tiled);
  const std::uint64_t nonfinite_mask = nonfinite_rows(tiled, {0.0f, 0.0f});
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = output_row(2 * half), row = own_row + r;
    if (row < s && !is_nonfinite_row(nonfinite_mask, r)) store_outputs(p.dq.at(b, row, h), tiled, half, a.scale, a.d);
  }
  for (int r = 0; r < 16; ++r)
    if (is_nonfinite_row(nonfinite_mask, r) && own_row + r < s)
      query_gradient(p, b, h / a.group, (own_row + r) * a.group + h % a.group);
}

/// Computes AttentionBackward<S>, whose pitch is a multiple of kTile and whose scratch is filled, for d up to kD and rows
/// that refuse_heads takes. Products are formed as mma_arithmetic says; weights are 2^(scale' score - shift) with scale'
/// = scale log2 e in one rounding, which are zero below 2^-126. Reads keys and values s/128 times per head, queries and
/// upstream gradients t/128 times. Source: Shah et al., FlashAttention-3, arXiv:2407.08608, section 3 and appendix B.1;
/// Dao, FlashAttention-2, arXiv:2307.08691, algorithm 2.
template <class S, int kD>
void launch_passes(const AttentionBackward<S>& p, Device& device) {
  const Attention<S>& a = p.forward;
  const Index heads = a.kv_heads * a.group;
  const auto map_of = [&](const HeadRows<const S>& rows, Index positions, Index of_heads) {
    return by_wgmma::map_of_heads(rows, a.batch, positions, of_heads, a.d, kBox, device);
  };
  const auto q = map_of(a.q, a.s, heads), k = map_of(a.k, a.t, a.kv_heads), v = map_of(a.v, a.t, a.kv_heads),
             dy = map_of(p.dy, a.s, heads);
  const auto grid = [&](Index rows, Index of_heads) {
    return dim3(blocks_for(rows, kOwnRows), static_cast<unsigned>(of_heads), static_cast<unsigned>(a.batch));
  };
  if (a.s > 0)
    hopper::launch_asynchronous(&attention_backward_wgmma_queries<S, kD>,
                                {grid(a.s, heads), dim3(kThreads), QueriesPlan<kD>::kBytes}, device, p, q, k, v, dy);
  if (a.t > 0) {
    using Plan = KeysPlan<kD>;
    // Copied as pairs of 16-bit elements.
    const auto scalars =
        hopper::tensor_map(reinterpret_cast<const S*>(p.along), 2 * a.batch * heads * p.pitch / Plan::kScalarsOfRow,
                           Index{kBox}, Index{kBox}, Plan::kScalarRows, device);
    hopper::launch_asynchronous(&attention_backward_wgmma_keys<S, kD>,
                                {grid(a.t, a.kv_heads), dim3(kThreads), Plan::kBytes}, device, p, q, k, v, dy, scalars);
  }
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE::backward_by_wgmma
