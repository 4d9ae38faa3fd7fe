// y = W·x for W in Q4_K super-blocks.
#pragma once

#include "kernels/cuda/q4_k.cuh"
#include "kernels/cuda/rows.cuh"
#include "ops/q4_k_gemv.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// y[i] = sum_p w[i,p] x[p]. Offsets take 64 bits. Error at most k·u·sum_p |w||x| in every order.
struct Q4kGemv {
  Index rows, k;
  Q4kRows blocks;
  const float* x;
  float* y;
  bool aligned_blocks, aligned_x;  ///< to 16 bytes
};

namespace q4k_gemv_detail {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kTileBlocks = 32;  ///< super-blocks of x in shared memory at a time
constexpr int kBlocksOfWarp = 8;  ///< super-blocks that a warp takes at a time, four lanes each

/// x of one tile, zeros behind k. Four values lie where the eight lanes that read together find theirs in different banks:
/// lanes of two super-blocks, each of them 64 values from its neighbour.
inline __device__ void stage(const Q4kGemv& a, Index first, float4* tile) {
  for (int f = static_cast<int>(threadIdx.x); f < kTileBlocks * 64; f += kThreads) {
    const Index p = first * q4_k::kValues + 4 * f;
    tile[f ^ (f >> 4 & 7)] = p < a.k ? load4(a.x, p, a.k, a.aligned_x) : make_float4(0, 0, 0, 0);
  }
}

/// What a lane reads of a super-block: the header, and the 32 bytes of one group of 64 codes.
struct Lot {
  Q4kHeader header;
  unsigned word[8];
};

__device__ inline Lot load_lot(const std::uint8_t* block, int group, bool aligned) {
  Lot lot{q4k_header(block, aligned), {}};
  const std::uint8_t* const codes = block + q4_k::kCodes + 32 * group;
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const Q4kHeader four = q4k_header(codes + 16 * n, aligned);  // four words like any
    lot.word[4 * n] = four.halves, lot.word[4 * n + 1] = four.scales;
    lot.word[4 * n + 2] = four.minima, lot.word[4 * n + 3] = four.rest;
  }
  return lot;
}

/// Byte t of four as the third of a float: 2^-133 times its number, below the normal floats. A step that is 2^133 times as
/// large makes the same product of it, exactly, and no conversion is needed.
__device__ inline float tiny_number(unsigned bytes, int t) {
  return __uint_as_float(__byte_perm(bytes, 0, 0x4044U + (static_cast<unsigned>(t) << 8)));
}
/// Steps below this can be so scaled.
constexpr float kSmallStep = 0x1p-6f;

/// sum += w x for four values in whose byte lies the code, or 16 times it: step has the factor.
__device__ inline float take(float sum, float step, float minimum, unsigned bytes, const float4& x) {
  const float values[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int t = 0; t < 4; ++t) sum = __fmaf_rn(__fmaf_rn(step, tiny_number(bytes, t), -minimum), values[t], sum);
  return sum;
}
/// The same with steps of any size, of the `left` values that are in the row.
__device__ inline float take_some(float sum, const Q4kLine& line, unsigned codes, const float4& x, Index left) {
  const float values[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int t = 0; t < 4; ++t)
    if (t < left) sum = __fmaf_rn(__fmaf_rn(line.step, q4k_number(codes, t), -line.minimum), values[t], sum);
  return sum;
}

/// What a lane adds of its 64 values: 32 low nibbles and the 32 high ones of the same bytes. `left` counts from the first of
/// the super-block. Both ways round the same numbers in the same order.
template <Q4kFault fault>
__device__ inline void take_lot(float (&sum)[2], const Lot& lot, const float4* x, int group, int key, Index left) {
  Q4kLine lines[2];
  q4k_lines<fault>(lot.header, group, lines);
  if (left >= q4_k::kValues && fabsf(lines[0].step) < kSmallStep && fabsf(lines[1].step) < kSmallStep) {
    const float low = lines[0].step * 0x1p100f * 0x1p33f, high = lines[1].step * 0x1p100f * 0x1p29f;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      sum[0] = take(sum[0], low, lines[0].minimum, lot.word[j] & 0x0f0f0f0fU, x[j ^ key]);
      sum[1] = take(sum[1], high, lines[1].minimum, lot.word[j] & 0xf0f0f0f0U, x[8 + (j ^ key)]);
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const Index behind = left - 64 * group - 4 * j;
    sum[0] = take_some(sum[0], lines[0], lot.word[j] & 0x0f0f0f0fU, x[j ^ key], behind);
    sum[1] = take_some(sum[1], lines[1], lot.word[j] >> 4 & 0x0f0f0f0fU, x[8 + (j ^ key)], behind - 32);
  }
}

}  // namespace q4k_gemv_detail

/// A warp sums `owned` rows: four lanes a super-block, 32 bytes of codes each, of which the next are on their way while
/// these are used; then a tree over the lanes. The warps of a block share x, a tile of which stands in shared memory at a
/// time; all of them come to every barrier.
template <int owned, Q4kFault fault>
__global__ void __launch_bounds__(q4k_gemv_detail::kThreads) q4k_gemv_kernel(Q4kGemv a) {
  using namespace q4k_gemv_detail;
  ASSAY_SHARED(float4, tile, [kTileBlocks * 64]);
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane % 4, key = lane % 8;
  const Index first_row = (Index{blockIdx.x} * kWarps + threadIdx.x / 32) * owned;
  const Index count = fault == Q4kFault::last_block_dropped ? a.k / q4_k::kValues : q4_k::blocks_of(a.k);
  float sum[owned][2] = {};
  Lot next[owned];
  const auto load_next = [&](Index n) {
#pragma unroll
    for (int r = 0; r < owned; ++r) {
      const Index row = min(first_row + r, a.rows - 1);
      next[r] = load_lot(q4k_block<fault>(a.blocks, row, a.k, min(n, count - 1)), group, a.aligned_blocks);
    }
  };
  if (count > 0) load_next(lane / 4);
  for (Index first = 0; first < count; first += kTileBlocks) {
    __syncthreads();  // the tile before has been read
    stage(a, first, tile);
    if constexpr (fault != Q4kFault::no_barrier) __syncthreads();
    const int here = static_cast<int>(min(Index{kTileBlocks}, count - first));
    for (int i = 0; i < here; i += kBlocksOfWarp) {
      const int n = i + lane / 4;
      Lot lot[owned];
#pragma unroll
      for (int r = 0; r < owned; ++r) lot[r] = next[r];
      load_next(first + n + kBlocksOfWarp);
      if (n >= here) continue;
      const Index left = a.k - (first + n) * q4_k::kValues;
#pragma unroll
      for (int r = 0; r < owned; ++r) take_lot<fault>(sum[r], lot[r], tile + n * 64 + 16 * group, group, key, left);
    }
  }
#pragma unroll
  for (int r = 0; r < owned; ++r) {
    constexpr auto kReduce = fault == Q4kFault::half_the_lanes_lost ? ReduceFault::half_the_lanes_lost : ReduceFault::none;
    const float total = reduce_row<32, Plus, kReduce>(sum[r][0] + sum[r][1], nullptr);
    const bool own = first_row + r < (fault == Q4kFault::first_row_only ? 1 : a.rows);
    if (lane == 0 && own) a.y[first_row + r] = total;
  }
}

/// blocks (rows, ceil(k/256)*144): bytes, rows at multiples of 4; x (k), y (rows): float32. 0.5625 bytes a weight.
template <Q4kFault fault = Q4kFault::none>
void q4k_gemv(const ops::Q4KGemvArgs& args, Device& device) {
  if (args.rows == 0) return;
  const Q4kRows blocks = q4k_rows(args.blocks);
  const Q4kGemv a{args.rows,    args.k,
                  blocks,       args.x.data(),
                  args.y.data(), fault == Q4kFault::alignment_unchecked || q4k_aligned(blocks),
                  rows_aligned(args.x.data(), 0)};
  constexpr int kOwned = 2;
  const dim3 grid(blocks_for(a.rows, q4k_gemv_detail::kWarps * kOwned)), block(q4k_gemv_detail::kThreads);
  launch(&q4k_gemv_kernel<kOwned, fault>, {grid, block}, device, a);
}

template <void (*run)(const ops::Q4KGemvArgs&, Device&)>
Kernel q4k_gemv_row(std::string_view id, std::string_view source, std::string_view summary) {
  return {.op = "q4_k_gemv",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda},
          .source = source,
          .summary = summary,
          .run = &run_typed<ops::Q4KGemvArgs, run>,
          .refuse = [](const Call& call) { return refuse_bytes(ops::Q4KGemvArgs::unpack(call).blocks.data()); }};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
