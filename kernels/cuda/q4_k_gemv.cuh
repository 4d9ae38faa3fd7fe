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

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kTileBlocks = 16;  ///< super-blocks of x in shared memory at a time

/// Where 4 values of x, the f-th of their super-block, lie in shared memory: the eight lanes of a super-block read 16 bytes
/// each from different banks.
__device__ inline int place(int f) { return f ^ (f >> 4 & 3); }

/// Elements of x of one tile, zeros behind k.
template <Q4kFault fault>
__device__ inline void stage(const Q4kGemv& a, Index first, float4* tile) {
  for (int f = static_cast<int>(threadIdx.x); f < kTileBlocks * 64; f += kThreads) {
    const Index p = first * q4_k::kValues + 4 * f;
    tile[f / 64 * 64 + place(f % 64)] = p < a.k ? load4(a.x, p, a.k, a.aligned_x) : make_float4(0, 0, 0, 0);
  }
}

struct Codes {
  unsigned word[4];
};
__device__ inline Codes load_codes(const std::uint8_t* at, bool aligned) {
  if (aligned) {
    const uint4 v = *reinterpret_cast<const uint4*>(at);
    return {{v.x, v.y, v.z, v.w}};
  }
  const auto* const words = reinterpret_cast<const unsigned*>(at);
  return {{words[0], words[1], words[2], words[3]}};
}

/// sum += w x for four values, of which `left` are in the row.
template <bool whole>
__device__ inline float take(float sum, const Q4kLine& line, unsigned codes, const float4& x, Index left) {
  const float values[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int t = 0; t < 4; ++t)
    if (whole || t < left) sum = __fmaf_rn(__fmaf_rn(line.step, q4k_number(codes, t), -line.minimum), values[t], sum);
  return sum;
}

/// What a lane adds of its 32 values of one super-block: 16 low nibbles and the 16 high ones of the same bytes.
template <bool whole, Q4kFault fault>
__device__ inline void take_lane(float (&sum)[2], const Q4kHeader& header, const Codes& codes, const float4* x, int part,
                                 Index left) {
  const int group = part / 2, first = 16 * group + 4 * (part % 2);
  const Q4kLine low = q4k_line<fault>(header, 2 * group), high = q4k_line<fault>(header, 2 * group + 1);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const unsigned word = codes.word[j];
    sum[0] = take<whole>(sum[0], low, word & 0x0f0f0f0fU, x[place(first + j)], left - 4 * (first + j));
    sum[1] = take<whole>(sum[1], high, word >> 4 & 0x0f0f0f0fU, x[place(first + 8 + j)], left - 4 * (first + 8 + j));
  }
}

}  // namespace q4k_gemv_detail

/// A warp sums `owned` rows: eight lanes a super-block, 16 bytes of codes each; then a tree over the lanes. The warps of a
/// block share x, a tile of which stands in shared memory at a time; all of them come to every barrier.
template <int owned, Q4kFault fault>
__global__ void __launch_bounds__(256) q4k_gemv_kernel(Q4kGemv a) {
  using namespace q4k_gemv_detail;
  ASSAY_SHARED(float4, tile, [kTileBlocks * 64]);
  const int lane = static_cast<int>(threadIdx.x) % 32, part = lane % 8;
  const Index first_row = (Index{blockIdx.x} * kWarps + threadIdx.x / 32) * owned;
  const Index count = fault == Q4kFault::last_block_dropped ? a.k / q4_k::kValues : q4_k::blocks_of(a.k);
  float sum[owned][2] = {};
  for (Index first = 0; first < count; first += kTileBlocks) {
    if constexpr (fault != Q4kFault::no_barrier) __syncthreads();  // the tile before has been read
    stage<fault>(a, first, tile);
    __syncthreads();
#pragma unroll 2
    for (int n = lane / 8; n < kTileBlocks; n += 4) {
      if (first + n >= count) break;
      const Index left = fault == Q4kFault::tail_unguarded ? q4_k::kValues : a.k - (first + n) * q4_k::kValues;
      const float4* const x = tile + n * 64;
      Q4kHeader header[owned];
      Codes codes[owned];
#pragma unroll
      for (int r = 0; r < owned; ++r) {
        const Index row = min(first_row + r, a.rows - 1);
        const std::uint8_t* const block = q4k_block<fault>(a.blocks, row, a.k, first + n);
        header[r] = q4k_header(block, a.aligned_blocks);
        codes[r] = load_codes(block + q4_k::kCodes + 16 * part, a.aligned_blocks);
      }
#pragma unroll
      for (int r = 0; r < owned; ++r) {
        if (left >= q4_k::kValues) take_lane<true, fault>(sum[r], header[r], codes[r], x, part, left);
        else take_lane<false, fault>(sum[r], header[r], codes[r], x, part, left);
      }
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
  launch(&q4k_gemv_kernel<kOwned, fault>, {dim3(blocks_for(a.rows, q4k_gemv_detail::kWarps * kOwned)), dim3(256)}, device, a);
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
