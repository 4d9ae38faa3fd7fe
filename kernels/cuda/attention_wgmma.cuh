// Attention in 16 bits on the tensor cores of compute capability 9.0: one warp copies keys and values, two warpgroups
// attend 64 queries each. The products of a tile run while the softmax of the next is computed.
#pragma once

#include <array>

#include "kernels/cuda/attention_mma.cuh"
#include "kernels/cuda/attention_query.cuh"
#include "kernels/cuda/hopper.cuh"
#include "runtime/limits.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::by_wgmma {

using attention_query::attend_query, attention_query::seen_by;

constexpr int kGroupThreads = 128;

/// Shared memory holds the queries of a block, then kStages tiles of keys and as many of values. A tile is kD / kBox
/// boxes of 128 rows by kBox columns.
template <int kD>
struct Plan {
  static constexpr int kRows = 128, kKeys = 128, kStages = 2, kBox = 64, kTerms = 16;
  static constexpr int kConsumers = 2, kThreads = (1 + kConsumers) * kGroupThreads;
  static constexpr int kGroupRows = kRows / kConsumers, kConsumerWarps = kConsumers * kGroupThreads / 32;
  static constexpr int kBoxBytes = 128 * hopper::kRowBytes, kTileBytes = kD / kBox * kBoxBytes;
  static constexpr std::size_t kBytes = (1 + 2 * kStages) * kTileBytes + hopper::kSwizzleBytes;
  static_assert(kRows == 128 && kKeys == 128 && kBox * 2 == hopper::kRowBytes && kD % kBox == 0);

  /// Starts the copy of 128 rows from `row` of head h of sequence b.
  __device__ static void copy(unsigned char* tile, const hopper::TensorMap& map, hopper::Barrier& full, int row, int h,
                              int b) {
    hopper::arrive_expecting(full, kTileBytes);
    for (int c = 0; c < kD; c += kBox) hopper::copy_box(tile + c / kBox * kBoxBytes, map, full, c, row, h, b);
  }
  /// Describes rows from `row` on as those of an operand, with kTerms columns from `column` as terms.
  __device__ static std::uint64_t rows(const unsigned char* tile, int row, int column) {
    return hopper::descriptor(tile + column / kBox * kBoxBytes + row * hopper::kRowBytes + column % kBox * 2, 0,
                              hopper::kSwizzleBytes);
  }
  /// Describes kTerms rows from `row` on as terms, with all columns as those of the operand.
  __device__ static std::uint64_t terms(const unsigned char* tile, int row) {
    return hopper::descriptor(tile + row * hopper::kRowBytes, kBoxBytes, hopper::kSwizzleBytes);
  }
};

/// 2^x; zero below 2^-126.
__device__ inline float exp2_flushed(float x) {
#if defined(__CUDACC__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  const float y = exp2f(x);
  return y < FLT_MIN ? 0.0f : y;
#endif
}

/// Barriers of a block: stage n % kStages is full once the bytes of tile n have arrived, and empty once all warps of the
/// warpgroups with own rows have used them.
template <int kStages>
struct Passage {
  hopper::Barrier own, full[kStages], empty[kStages];

  __device__ void initialize(int consumers) {
    hopper::initialize(own, 1);
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::initialize(full[stage], 1);
      hopper::initialize(empty[stage], static_cast<unsigned>(consumers * kGroupThreads / 32));
    }
    hopper::fence_proxy_async();
  }
  /// Waits until tile n may be copied. Returns the barrier for its bytes.
  __device__ hopper::Barrier& begin(int n, unsigned bytes) {
    hopper::wait(empty[n % kStages], static_cast<unsigned>(n / kStages + 1) % 2);
    hopper::arrive_expecting(full[n % kStages], bytes);
    return full[n % kStages];
  }
  __device__ void await(int n) { hopper::wait(full[n % kStages], static_cast<unsigned>(n / kStages) % 2); }
  __device__ void release(int n) {
    if (threadIdx.x % 32 == 0) hopper::arrive(empty[n % kStages]);
  }
};

/// Two numbers, rounded to nearest, in one register.
template <class S>
__device__ inline unsigned packed_pair(float low, float high) {
#if defined(__CUDACC__)
  unsigned two;
  if constexpr (std::is_same_v<S, Half>) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
  else asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
  return two;
#else
  return mma_detail::packed<S>(low, high);
#endif
}

/// Puts -INFINITY in place of scores of keys, the first of which is first_key, that the two rows of a lane do not see.
template <int count>
__device__ inline void hide_keys(float (&scores)[count], const int (&seen)[2], int first_key) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int own = seen[half] - first_key - output_column(0);
#pragma unroll
    for (int n = 0; n < count / 4; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (8 * n + e >= own) scores[4 * n + 2 * half + e] = -INFINITY;
  }
}

/// The softmax of two rows of a lane, eight apart, whose scores come in tiles. `flushes`: weights below 2^-126 are zero.
template <bool flushes>
struct Softmax {
  float scale;  ///< times log2 e
  float largest[2] = {-INFINITY, -INFINITY}, total[2] = {}, factor[2] = {};

  /// Scores become weights in place; `factor` is for the sums of earlier tiles.
  template <int count>
  __device__ void weigh(float (&scores)[count]) {
    const auto power = [](float x) { return flushes ? exp2_flushed(x) : exp2f(x); };
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float grown = largest[half];
#pragma unroll
      for (int n = 0; n < count / 4; ++n)
        grown = fmaxf(grown, fmaxf(scores[4 * n + 2 * half], scores[4 * n + 2 * half + 1]));
      grown = across_row<Larger>(grown);
      const float shift = grown == -INFINITY ? 0.0f : grown * scale;
      factor[half] = power(fmaf(largest[half], scale, -shift));
      largest[half] = grown;
      total[half] *= factor[half];
#pragma unroll
      for (int n = 0; n < count / 4; ++n)
#pragma unroll
        for (int e = 4 * n + 2 * half; e < 4 * n + 2 * half + 2; ++e) {
          scores[e] = power(fmaf(scores[e], scale, -shift));
          total[half] += scores[e];
        }
    }
  }
  template <int count>
  __device__ void rescale(float (&sums)[count]) const {
#pragma unroll
    for (int e = 0; e < count; ++e) sums[e] *= factor[e / 2 % 2];
  }
  /// Stores outputs and logsumexp of the 16 rows of a warp from row0 on. Rows with NaN or Inf are computed one by one.
  template <class S, int count>
  __device__ void store(const Attention<S>& a, int b, int h, int row0, const float (&sums)[count]) {
    const int s = static_cast<int>(a.s);
    bool nothing[2];
    float tiled[count / 4][4], divisor[2];
#pragma unroll
    for (int e = 0; e < count; ++e) tiled[e / 4][e % 4] = sums[e];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      total[half] = across_row<Plus>(total[half]);
      nothing[half] = largest[half] == -INFINITY && total[half] == 0.0f;
      divisor[half] = nothing[half] ? 0.0f : 1.0f / total[half];
    }
    const std::uint64_t nonfinite_mask = nonfinite_rows(tiled, divisor);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = output_row(2 * half), row = row0 + r;
      if (row >= s || is_nonfinite_row(nonfinite_mask, r)) continue;
      store_outputs(a.y.at(b, row, h), tiled, half, divisor[half], a.d);
      if (threadIdx.x % 4 == 0)
        *a.logsumexp.at(b, row, h) = nothing[half] ? -INFINITY : (largest[half] * scale + log2f(total[half])) * kLn2;
    }
    for (int r = 0; r < 16; ++r)
      if (is_nonfinite_row(nonfinite_mask, r) && row0 + r < s) attend_query(a, b, h, row0 + r);
  }
};

/// Rows of a block are queries of one head. Stage s of keys (values) is full once its bytes have arrived, and empty once
/// all warps of the consumers have multiplied it. The first thread of the block copies; its warpgroup's registers go to
/// the others.
template <class S, int kD>
__global__ void __launch_bounds__(Plan<kD>::kThreads, 1)
    attention_wgmma(Attention<S> a, const __grid_constant__ hopper::TensorMap q_map,
                    const __grid_constant__ hopper::TensorMap k_map, const __grid_constant__ hopper::TensorMap v_map) {
  using Tiles = Plan<kD>;
  constexpr int kKeys = Tiles::kKeys, kStages = Tiles::kStages;
  ASSAY_SHARED(hopper::Barrier, q_full, [1]);
  ASSAY_SHARED(hopper::Barrier, k_full, [kStages]);
  ASSAY_SHARED(hopper::Barrier, v_full, [kStages]);
  ASSAY_SHARED(hopper::Barrier, k_empty, [kStages]);
  ASSAY_SHARED(hopper::Barrier, v_empty, [kStages]);
  unsigned char* const queries = hopper::boxes_of_block();
  const auto keys = [&](int tile) { return queries + (1 + tile % kStages) * Tiles::kTileBytes; };
  const auto values = [&](int tile) { return queries + (1 + kStages + tile % kStages) * Tiles::kTileBytes; };
  const int s = static_cast<int>(a.s), b = static_cast<int>(blockIdx.z), h = static_cast<int>(blockIdx.y);
  // Later blocks see more keys: start them first.
  const int block_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * Tiles::kRows;
  const auto keys_of = [&](int row) { return row < s ? static_cast<int>(seen_by(a, b, row)) : 0; };
  const int most = keys_of(min(s, block_row + Tiles::kRows) - 1), tiles = (most + kKeys - 1) / kKeys;

  if (threadIdx.x == 0) {
    hopper::initialize(q_full[0], 1);
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::initialize(k_full[stage], 1);
      hopper::initialize(v_full[stage], 1);
      hopper::initialize(k_empty[stage], Tiles::kConsumerWarps);
      hopper::initialize(v_empty[stage], Tiles::kConsumerWarps);
    }
    hopper::fence_proxy_async();
  }
  __syncthreads();

  if (threadIdx.x < kGroupThreads) {
    hopper::release_registers<24>();
    if (threadIdx.x > 0 || tiles == 0) return;
    const int g = h / static_cast<int>(a.group);
    Tiles::copy(queries, q_map, q_full[0], block_row, h, b);
    const auto copy = [&](int tile, unsigned char* to, const hopper::TensorMap& map, hopper::Barrier* full,
                          hopper::Barrier* empty) {
      hopper::wait(empty[tile % kStages], static_cast<unsigned>(tile / kStages + 1) % 2);
      Tiles::copy(to, map, full[tile % kStages], tile * kKeys, g, b);
    };
    // In the order of use.
    for (int tile = 0; tile <= tiles; ++tile) {
      if (tile < tiles) copy(tile, keys(tile), k_map, k_full, k_empty);
      if (tile > 0) copy(tile - 1, values(tile - 1), v_map, v_full, v_empty);
    }
    return;
  }

  hopper::take_registers<240>();
  const int consumer = static_cast<int>(threadIdx.x) / kGroupThreads - 1, y = consumer * Tiles::kGroupRows;
  const int warp = static_cast<int>(threadIdx.x) % kGroupThreads / 32;
  const bool releases = threadIdx.x % 32 == 0;
  const int row0 = block_row + y + 16 * warp;
  const int seen[2] = {keys_of(row0 + output_row(0)), keys_of(row0 + output_row(2))};
  // Tiles that all rows of the warpgroup see need no mask.
  const int least = block_row + y + Tiles::kGroupRows <= s ? keys_of(block_row + y) : 0;
  Softmax<true> softmax{a.scale * kLog2E};
  float sums[kD / 2] = {}, scores[kKeys / 2];
  unsigned weights[kKeys / Tiles::kTerms][4];

  const auto await = [](hopper::Barrier* full, int tile) {
    hopper::wait(full[tile % kStages], static_cast<unsigned>(tile / kStages) % 2);
  };
  const auto begin_scores = [&](int tile) {
#pragma unroll
    for (int c = 0; c < kD; c += Tiles::kTerms)
      hopper::multiply<S, false, false>(scores, Tiles::rows(queries, y, c), Tiles::rows(keys(tile), 0, c), c > 0);
    hopper::commit_products();
  };
  const auto begin_sums = [&](int tile) {
#pragma unroll
    for (int j = 0; j < kKeys; j += Tiles::kTerms)
      hopper::multiply<S, true>(sums, weights[j / Tiles::kTerms], Tiles::terms(values(tile), j), tile + j > 0);
    hopper::commit_products();
  };
  // Scores become weights in place.
  const auto weigh = [&](int tile) {
    if (least < (tile + 1) * kKeys) hide_keys(scores, seen, tile * kKeys);
    softmax.weigh(scores);
  };
  const auto pack = [&] {
#pragma unroll
    for (int e = 0; e < kKeys / 2; e += 2) weights[e / 8][e / 2 % 4] = packed_pair<S>(scores[e], scores[e + 1]);
  };
  const auto rescale = [&] { softmax.rescale(sums); };

  if (tiles > 0) {
    // The warpgroups issue products in turn: one computes a softmax while the other multiplies.
    constexpr unsigned kTurn = 1, kConsumerThreads = Tiles::kConsumers * kGroupThreads;
    const auto own_turn = kTurn + static_cast<unsigned>(consumer),
               others_turn = kTurn + 1 - static_cast<unsigned>(consumer);
    hopper::wait(q_full[0], 0);
    await(k_full, 0);
    hopper::fence_products(scores);
    begin_scores(0);
    hopper::complete_products(scores);
    if (releases) hopper::arrive(k_empty[0]);
    weigh(0);
    pack();
    if (consumer == 1 && tiles > 1) hopper::arrive_at_named_barrier(others_turn, kConsumerThreads);
    for (int tile = 1; tile < tiles; ++tile) {
      await(v_full, tile - 1);
      await(k_full, tile);
      hopper::named_barrier(own_turn, kConsumerThreads);
      hopper::fence_products(scores, sums, weights);
      begin_scores(tile);
      begin_sums(tile - 1);
      if (consumer == 0 || tile + 1 < tiles) hopper::arrive_at_named_barrier(others_turn, kConsumerThreads);
      hopper::complete_products<1>(scores);
      if (releases) hopper::arrive(k_empty[tile % kStages]);
      weigh(tile);
      hopper::complete_products(sums);
      if (releases) hopper::arrive(v_empty[(tile - 1) % kStages]);
      rescale();
      pack();
    }
    await(v_full, tiles - 1);
    hopper::fence_products(sums, weights);
    begin_sums(tiles - 1);
    hopper::complete_products(sums);
  }

  softmax.store(a, b, h, row0, sums);
}

/// The steps of the rows' axes behind d. An axis of extent 1 has step 0, which no tensor map takes.
template <class S>
std::array<Index, 3> steps_of(const HeadRows<const S>& rows, Index d) {
  const auto step = [&](Index of) { return of > 0 ? of : d; };
  return {step(rows.per_position), step(rows.per_head), step(rows.per_batch)};
}

/// Describes the rows in boxes of `box_rows` positions.
template <class S>
hopper::TensorMap map_of_heads(const HeadRows<const S>& rows, Index batch, Index positions, Index heads, Index d,
                               unsigned box_rows, Device& device) {
  const auto [per_position, per_head, per_batch] = steps_of(rows, d);
  return hopper::tensor_map<S, 4>(rows.data, {d, positions, heads, batch}, {per_position, per_head, per_batch},
                                  box_rows, device);
}

/// Returns why no boxes can be taken of these rows.
template <class S>
std::optional<std::string> refuse_heads(const std::string& tensor, const HeadRows<const S>& rows, Index d) {
  for (const Index step : steps_of(rows, d))
    if (auto why = hopper::refuse_boxes(tensor, rows.data, step)) return why;
  return std::nullopt;
}

template <class S, int kD>
void launch_blocks(const Attention<S>& a, Device& device) {
  using Tiles = Plan<kD>;
  const Index heads = a.kv_heads * a.group;
  hopper::launch_asynchronous(
      &attention_wgmma<S, kD>,
      {dim3(blocks_for(a.s, Tiles::kRows), static_cast<unsigned>(heads), static_cast<unsigned>(a.batch)),
       dim3(Tiles::kThreads), Tiles::kBytes},
      device, a, map_of_heads(a.q, a.batch, a.s, heads, a.d, Tiles::kRows, device),
      map_of_heads(a.k, a.batch, a.t, a.kv_heads, a.d, Tiles::kKeys, device),
      map_of_heads(a.v, a.batch, a.t, a.kv_heads, a.d, Tiles::kKeys, device));
}

inline constexpr Index kLargestD = 128;

/// Returns why the kernel takes no such tensors.
template <class S>
std::optional<std::string> refuse(const Attention<S>& a) {
  if (a.d > kLargestD) return "d = " + std::to_string(a.d) + " is more than " + std::to_string(kLargestD);
  if (auto why = refuse_heads("q", a.q, a.d)) return why;
  if (auto why = refuse_heads("k", a.k, a.d)) return why;
  return refuse_heads("v", a.v, a.d);
}

/// Computes Attention<S>. Products are formed as mma_arithmetic says; weights are 2^(scale' score - scale' maximum) with
/// scale' = scale log2 e in one rounding, which are zero below 2^-126. Reads keys and values s/128 times per head.
/// Throws Unavailable if refuse does or the device has not compute capability 9.0. Source: Shah et al.,
/// FlashAttention-3, arXiv:2407.08608, algorithm 2 and section 3.1.
template <class S>
void run(const Attention<S>& a, Device& device) {
  hopper::need_hopper("attention_wgmma", device);
  if (auto why = refuse(a)) throw Unavailable("attention_wgmma", *why);
  if (a.batch == 0 || a.s == 0) return;
  if (a.d <= 64) launch_blocks<S, 64>(a, device);
  else launch_blocks<S, 128>(a, device);
}

/// Cases without gaps whose rows are whole boxes of 16 bytes; d is the dim at `at`.
template <int at>
const Limits& heads_of_whole_boxes() {
  static const Limits limits = [] {
    Limits made;
    made.refuse = [](std::span<const Index> dims, std::span<const double>) -> std::optional<std::string> {
      if (dims[at] % 8 == 0 && dims[at] <= kLargestD) return std::nullopt;
      return "d must be a multiple of eight if no gaps are between rows, and at most " + std::to_string(kLargestD);
    };
    made.repair = [](std::vector<Index>& dims, std::vector<double>&, std::uint64_t) {
      dims[at] = std::clamp<Index>(dims[at] / 8 * 8, 8, kLargestD);
      return true;
    };
    made.dense = made.aligned = true;  // most drawn gaps and offsets are no multiples of 16 bytes
    return made;
  }();
  return limits;
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE::by_wgmma
