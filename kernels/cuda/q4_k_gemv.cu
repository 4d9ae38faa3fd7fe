// y = W·x for W in Q4_K super-blocks with CUDA.
#include <cuda_pipeline.h>

#include "kernels/cuda/q4_k.cuh"
#include "kernels/cuda/q4_k_gemv_digits.cuh"
#include "kernels/cuda/rows.cuh"
#include "ops/q4_k_gemv.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_gemv {
namespace {

/// y[i] = sum_p w[i,p] x[p]. Offsets take 64 bits. Error at most k·u·sum_p |w||x| in any order.
struct Q4kGemv {
  Index rows, k;
  Q4kRows blocks;
  const float* x;
  float* y;
  bool aligned_x;               ///< to 16 bytes
  int shares = 1, streams = 1;  ///< warps that share a row, each with its own super-blocks; rows at a time
  int rows_of_block;
};

constexpr int kWarps = 8;                                               ///< per block, at most
constexpr int kLotBlocks = 8;                                           ///< super-blocks of a lot, four lanes each
constexpr int kLotBytes = kLotBlocks * static_cast<int>(q4_k::kBytes);  ///< of one row
constexpr int kLotFours = kLotBlocks * 64, kLotSums = kLotBlocks * 8;   ///< of x
constexpr int kPair = 2, kStages = 3;          ///< rows of a warp at a time; pairs of lots in flight
constexpr int kBlocks = 264, kMostRows = 512;  ///< blocks that occupy an H200, two a multiprocessor; rows of a block

/// x of all shares, zeros past k, and the sums of its sub-blocks. `place` swizzles groups of four values so that the
/// eight lanes that read together, of two adjacent super-blocks and four groups of 64 values, access different banks.
struct Tile {
  float4* x;
  float* sums;
};
__device__ inline int place(int f) { return f ^ (f >> 4 & 7); }

/// A code is read in place, as a float: 2^-149 times the number in its bits, which are below the 25th. x is scaled so
/// that the product is normal: 15 2^-46 |x|, at least 2^-126, for usual x.
constexpr float kUp = 0x1p103f, kDown = 0x1p46f, kLargestUsual = 0x1p24f, kSmallestUsual = 0x1p-80f;

/// Range of |x| as bits; usual() is false if some x is NaN, too large or too small. Zeros do not count for `least`.
struct Range {
  unsigned most = 0, least = 0xffffffffU;

  __device__ void include(float x) {
    const unsigned bits = __float_as_uint(x) & 0x7fffffffU;
    most = max(most, bits);
    least = min(least, bits - 1);  // wraps to the largest value for 0
  }
  __device__ bool usual() const {
    return most < __float_as_uint(kLargestUsual) && least >= __float_as_uint(kSmallestUsual) - 1;
  }
};

/// Loads the x of `shares` lots, from super-block `first` on, by all threads of the block, and ends with a barrier.
/// Returns true if x is usual.
__device__ inline bool stage(const Q4kGemv& a, Index first, const Tile& tile) {
  constexpr int kInFlight = 8;
  const int fours = a.shares * kLotFours, threads = static_cast<int>(blockDim.x);
  const float* const x = a.x + first * q4_k::kValues;
  const Index left = a.k - first * q4_k::kValues;
  const bool whole = a.aligned_x && left >= Index{4} * fours;
  Range range;
#pragma unroll 1
  for (int begin = static_cast<int>(threadIdx.x); begin < fours; begin += kInFlight * threads) {
    float4 own[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int f = begin + i * threads;
      own[i] = make_float4(0, 0, 0, 0);
      if (whole && f < fours) own[i] = reinterpret_cast<const float4*>(x)[f];
    }
    if (!whole)
#pragma unroll
      for (int i = 0; i < kInFlight; ++i)
        if (const Index p = Index{4} * (begin + i * threads); p < left) own[i] = load4(x, p, left, a.aligned_x);
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const float4 v = own[i];
      const int f = begin + i * threads;
      range.include(v.x), range.include(v.y), range.include(v.z), range.include(v.w);
      float sum = (v.x + v.y) + (v.z + v.w);
#pragma unroll
      for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
      if (f < fours) tile.x[place(f)] = v;
      if (f < fours && f % 8 == 0) tile.sums[f / 8] = sum;
    }
  }
  return __syncthreads_or(!range.usual()) == 0;
}

/// Starts a lane's copies of a lot of `bytes`, of which it has every 32nd word; `aligned`: to 16 bytes.
template <bool aligned>
__device__ inline void copy_lot(std::uint8_t* to, const std::uint8_t* from, int bytes, int lane) {
  constexpr int kWord = aligned ? 16 : 4;
#pragma unroll
  for (int i = 0; i < (kLotBytes / kWord + 31) / 32; ++i)
    if (const int at = kWord * (lane + 32 * i); at < bytes) __pipeline_memcpy_async(to + at, from + at, kWord);
}

/// A lane's 64 values of x: 32 for low nibbles, and 32 for the high ones of the same bytes; and their sums.
struct LaneX {
  float4 low[8], high[8];
  float sums[2];
};
/// Scales x by the inverse of what each code's place in its word multiplies it by.
__device__ inline LaneX load_x(const Tile& tile, int n, int group, int key, bool usual) {
  const float4* const x = tile.x + n * 64 + 16 * group;
  const float up = usual ? kUp : 0.0f;
  LaneX own;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float4 low = x[j ^ key], high = x[8 + (j ^ key)];
    own.low[j] = make_float4(low.x * up, low.y * (up * 0x1p-8f), low.z * (up * 0x1p-16f), low.w * (up * 0x1p-16f));
    own.high[j] = make_float4(high.x * (up * 0x1p-4f), high.y * (up * 0x1p-12f), high.z * (up * 0x1p-20f),
                              high.w * (up * 0x1p-20f));
  }
  own.sums[0] = tile.sums[8 * n + 2 * group], own.sums[1] = tile.sums[8 * n + 2 * group + 1];
  return own;
}

/// sum += codes times x, for the low nibbles (shift 0) or the high ones (4) of four bytes.
template <int shift>
__device__ inline float take(float sum, unsigned bytes, const float4& x) {
  sum = __fmaf_rn(__uint_as_float(bytes & 0xfU << shift), x.x, sum);
  sum = __fmaf_rn(__uint_as_float(bytes & 0xf00U << shift), x.y, sum);
  sum = __fmaf_rn(__uint_as_float(bytes & 0xf0000U << shift), x.z, sum);
  return __fmaf_rn(__uint_as_float(bytes >> 8 & 0xf0000U << shift), x.w, sum);
}
/// Returns sum + w x for the first `left` of four values, which are in the row.
__device__ inline float take_some(float sum, const Q4kLine& line, unsigned codes, const float4& x, Index left) {
  const float values[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int t = 0; t < 4; ++t)
    if (t < left) sum = __fmaf_rn(__fmaf_rn(line.step, q4k_number(codes, t), -line.minimum), values[t], sum);
  return sum;
}

/// Returns the sum of a lane's products over its 64 values: codes times x first, then the step, and the minimum times
/// the sum of x. For usual x.
__device__ inline float lane_sum(const std::uint8_t* block, int group, const LaneX& x) {
  const std::uint8_t* const codes = block + q4_k::kCodes + 32 * group;
  // Reads four words each.
  const Q4kHeader first = q4k_header(codes, true), second = q4k_header(codes + 16, true);
  const unsigned word[8] = {first.halves,  first.scales,  first.minima,  first.rest,
                            second.halves, second.scales, second.minima, second.rest};
  Q4kLine lines[2];
  q4k_lines(q4k_header(block, true), group, lines);
  float low[2] = {}, high[2] = {};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    low[j % 2] = take<0>(low[j % 2], word[j], x.low[j]);
    high[j % 2] = take<4>(high[j % 2], word[j], x.high[j]);
  }
  return __fmaf_rn((low[0] + low[1]) * kDown, lines[0].step, -lines[0].minimum * x.sums[0]) +
         __fmaf_rn((high[0] + high[1]) * kDown, lines[1].step, -lines[1].minimum * x.sums[1]);
}
/// The same value by value, for any x, where only `left` values from the super-block on are in the row.
__device__ inline float lane_sum_of_some(const std::uint8_t* block, int group, const Tile& tile, int n, int key,
                                         Index left) {
  const float4* const x = tile.x + n * 64 + 16 * group;
  const auto* const words = reinterpret_cast<const unsigned*>(block + q4_k::kCodes + 32 * group);
  Q4kLine lines[2];
  q4k_lines(q4k_header(block, true), group, lines);
  float sum[2] = {};
#pragma unroll 1
  for (int j = 0; j < 8; ++j) {
    const Index behind = left - 64 * group - 4 * j;
    sum[0] = take_some(sum[0], lines[0], words[j] & 0x0f0f0f0fU, x[j ^ key], behind);
    sum[1] = take_some(sum[1], lines[1], words[j] >> 4 & 0x0f0f0f0fU, x[8 + (j ^ key)], behind - 32);
  }
  return sum[0] + sum[1];
}

/// Returns the sum over the lanes of the first value, in the lower lanes, and of the second, in the upper ones: a tree
/// of the same bits in either.
__device__ inline float sum_pair(const float (&own)[kPair], int lane) {
  float sum = (lane < 16 ? own[0] : own[1]) + __shfl_xor_sync(0xffffffffU, lane < 16 ? own[1] : own[0], 16);
#pragma unroll
  for (int step = 8; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
  return sum;
}

/// `shares` warps sum a row, eight super-blocks each, four lanes a super-block, whose x stays in registers for all rows
/// of the block; then a tree over the lanes, and the shares in order. Each warp copies its lots into a ring of shared
/// memory, from before the previous kernel of the stream has ended: no kernel that lets the next one begin writes
/// super-blocks.
template <bool aligned>
__global__ void __launch_bounds__(32 * kWarps, 2) q4k_gemv_kernel(Q4kGemv a) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane % 4, key = lane % 8;
  const int warp = static_cast<int>(threadIdx.x) / 32, share = warp % a.shares, stream = warp / a.shares;
  float4* const fours = dynamic_shared<float4>();
  const Tile tile{fours, reinterpret_cast<float*>(fours + a.shares * kLotFours)};
  float* const parts = tile.sums + a.shares * kLotSums;
  std::uint8_t* const ring = reinterpret_cast<std::uint8_t*>(parts + (a.shares * a.rows_of_block + 3) / 4 * 4) +
                             warp * (kStages * kPair * kLotBytes);
  const Index block_row = Index{blockIdx.x} * a.rows_of_block;
  const int rows = static_cast<int>(min(Index{a.rows_of_block}, a.rows - block_row));
  const Index count = q4_k::blocks_of(a.k);
  let_next_begin();
  for (Index first = 0; first < count; first += a.shares * kLotBlocks) {
    const Index own = first + share * kLotBlocks;
    const int here = static_cast<int>(max(Index{0}, min(Index{kLotBlocks}, count - own)));
    const std::uint8_t* from = q4k_block(a.blocks, block_row + stream, own);  // of the next lot
    int next = stream;
    const auto copy = [&](int slot) {
#pragma unroll
      for (int r = 0; r < kPair; ++r, next += a.streams, from += a.streams * a.blocks.ld)
        if (next < rows)
          copy_lot<aligned>(ring + (slot * kPair + r) * kLotBytes, from, here * static_cast<int>(q4_k::kBytes), lane);
      __pipeline_commit();
    };
    for (int i = 0; i < kStages - 1; ++i) copy(i);
    if (first == 0) await_previous();
    else __syncthreads();  // after the last read of the previous tile
    const bool usual = stage(a, first, tile);
    const int n = share * kLotBlocks + lane / 4;
    const Index left = lane / 4 < here ? a.k - (own + lane / 4) * q4_k::kValues : 0;
    const LaneX x = load_x(tile, n, group, key, usual);
    int slot = 0;
    for (int row = stream; row < rows; row += kPair * a.streams) {
      __pipeline_wait_prior(kStages - 2);
      __syncwarp();  // the lots are there, and those before them have been read
      copy(slot == 0 ? kStages - 1 : slot - 1);
      const std::uint8_t* const block = ring + slot * (kPair * kLotBytes) + lane / 4 * q4_k::kBytes;
      float sum[kPair] = {};  // of no use past the last row
      if (left >= q4_k::kValues && usual) {
#pragma unroll
        for (int r = 0; r < kPair; ++r) sum[r] = lane_sum(block + r * kLotBytes, group, x);
      } else if (left > 0) {
#pragma unroll 1
        for (int r = 0; r < kPair; ++r)
          (r == 0 ? sum[0] : sum[1]) = lane_sum_of_some(block + r * kLotBytes, group, tile, n, key, left);
      }
      const float total = sum_pair(sum, lane);
      const int own_row = row + lane / 16 * a.streams;
      if (lane % 16 == 0 && own_row < rows) {
        float& part = parts[share * a.rows_of_block + own_row];
        part = first == 0 ? total : part + total;
      }
      slot = slot + 1 < kStages ? slot + 1 : 0;
    }
    __syncwarp();
  }
  if (count == 0) await_previous();
  __syncthreads();
  for (int row = static_cast<int>(threadIdx.x); row < rows; row += static_cast<int>(blockDim.x)) {
    float total = 0.0f;
    if (count > 0) total = parts[row];
    for (int s = 1; s < a.shares && count > 0; ++s) total += parts[s * a.rows_of_block + row];
    a.y[block_row + row] = total;
  }
}

/// blocks (rows, ceil(k/256)*144): bytes, rows at multiples of 4; x (k), y (rows): float32. 0.5625 bytes a weight.
void run(const ops::Q4KGemvArgs& args, Device& device) {
  if (args.rows == 0) return;
  const Q4kRows blocks = q4k_rows(args.blocks);
  const Index lots = std::max<Index>(1, (q4_k::blocks_of(args.k) + kLotBlocks - 1) / kLotBlocks);
  const int rows = static_cast<int>(std::min<Index>(kMostRows, (args.rows + kBlocks - 1) / kBlocks));
  Q4kGemv a{.rows = args.rows,
            .k = args.k,
            .blocks = blocks,
            .x = args.x.data(),
            .y = args.y.data(),
            .aligned_x = rows_aligned(args.x.data(), 0),
            .rows_of_block = rows};
  int warps = kWarps;
  const auto shared_bytes = [&] {
    a.shares = static_cast<int>(std::min<Index>(warps, lots)), a.streams = warps / a.shares;
    const int floats = a.shares * (4 * kLotFours + kLotSums) + (a.shares * rows + 3) / 4 * 4;
    return sizeof(float) * static_cast<std::size_t>(floats) +
           static_cast<std::size_t>(a.shares * a.streams * kStages * kPair * kLotBytes);
  };
  while (warps > 1 && shared_bytes() > most_shared_bytes(device)) --warps;
  const std::size_t bytes = shared_bytes();
  launch_overlapping(q4k_aligned(blocks) ? &q4k_gemv_kernel<true> : &q4k_gemv_kernel<false>,
                     {dim3(blocks_for(a.rows, rows)), dim3(static_cast<unsigned>(32 * a.shares * a.streams)), bytes},
                     device, a);
}

std::optional<std::string> refuse(const ops::Q4KGemvArgs& args) { return refuse_bytes(args.blocks.data()); }

const KernelRegistration warp_per_lot{
    {.id = "q4_k_gemv/" ASSAY_CUDA_NAME "/warp_per_two_rows",
     .arithmetic = {.functions = FunctionLibrary::cuda},
     .summary =
         "warps keep 2048 values of x each in registers for all rows of a block; rows through rings of shared memory",
     .run = &run_typed<ops::Q4KGemvArgs, &run>,
     .refuse = &refuse_typed<ops::Q4KGemvArgs, &refuse>}};
const KernelRegistration digits{
    {.id = "q4_k_gemv/" ASSAY_CUDA_NAME "/digits",
     .arithmetic = {.functions = FunctionLibrary::cuda},
     .summary =
         "8-bit integer tensor cores (mma.sync m16n8k32): codes times eight digits of x in fixed point, exactly; "
         "warps keep 256 values of x each in registers for all rows of a block; rows through rings of shared memory",
     .run = &run_typed<ops::Q4KGemvArgs, &by_digits::run>,
     .refuse = &refuse_typed<ops::Q4KGemvArgs, &refuse>,
     .priority = 1}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_gemv
