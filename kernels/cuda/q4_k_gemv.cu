// y = W·x for W in Q4_K super-blocks with CUDA.
#include "kernels/cuda/q4_k.cuh"
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
  bool aligned_blocks, aligned_x;  ///< to 16 bytes
};

constexpr int kThreads = 1024, kWarps = kThreads / 32;
constexpr int kShares = 2;  ///< warps that share rows, each with its own super-blocks
constexpr int kRowWarps = kWarps / kShares;
constexpr int kTileBlocks = 64;   ///< super-blocks of x in shared memory at a time
constexpr int kBlocksOfWarp = 8;  ///< super-blocks per warp at a time, four lanes each

/// x of one tile, zeros past k, and the sums of its sub-blocks. `place` swizzles groups of four values so that the
/// eight lanes that read together, of two adjacent super-blocks and four groups of 64 values, access different banks.
struct Tile {
  float4* x;    ///< kTileBlocks * 64; scaled by kUp if all of the tile is usual
  float* sums;  ///< kTileBlocks * 8
};
constexpr int kTileFours = kTileBlocks * 64, kTileSums = kTileBlocks * 8;
constexpr std::size_t kTileBytes = kTileFours * sizeof(float4) + kTileSums * sizeof(float);
/// Scales x so that its product with a code read as a subnormal is normal: 2^-133 2^96 |x| >= 2^-117 for usual x.
constexpr float kUp = 0x1p96f, kLargestUsual = 0x1p31f, kSmallestUsual = 0x1p-80f;

__device__ inline int place(int f) { return f ^ (f >> 4 & 7); }

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

/// Loads a tile of x by all threads of the block, in whole warps; contains a barrier, and the caller adds one after.
/// Returns true if x is usual.
__device__ inline bool stage(const Q4kGemv& a, Index first, const Tile& tile) {
  constexpr int kOwn = kTileFours / kThreads;
  float4 own[kOwn];
  Range range;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const Index p = first * q4_k::kValues + 4 * (static_cast<int>(threadIdx.x) + i * kThreads);
    own[i] = p < a.k ? load4(a.x, p, a.k, a.aligned_x) : make_float4(0, 0, 0, 0);
    range.include(own[i].x), range.include(own[i].y), range.include(own[i].z), range.include(own[i].w);
  }
  const bool usual = __syncthreads_or(!range.usual()) == 0;
  const float up = usual ? kUp : 1.0f;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int f = static_cast<int>(threadIdx.x) + i * kThreads;
    const float4 v = own[i];
    float sum = (v.x + v.y) + (v.z + v.w);
#pragma unroll
    for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
    tile.x[place(f)] = make_float4(v.x * up, v.y * up, v.z * up, v.w * up);
    if (f % 8 == 0) tile.sums[f / 8] = sum;
  }
  return usual;
}

/// A lane's part of a super-block: the header, and the 32 bytes of one group of 64 codes.
struct LanePart {
  Q4kHeader header;
  unsigned word[8];
};
__device__ inline LanePart load_lot(const std::uint8_t* block, int group, bool aligned) {
  const std::uint8_t* const codes = block + q4_k::kCodes + 32 * group;
  // Reads four words each.
  const Q4kHeader first = q4k_header(codes, aligned), second = q4k_header(codes + 16, aligned);
  return {
      q4k_header(block, aligned),
      {first.halves, first.scales, first.minima, first.rest, second.halves, second.scales, second.minima, second.rest}};
}

/// Returns byte t of four as the third byte of a float: a subnormal, 2^-133 times the number. This needs no conversion.
__device__ inline float tiny_number(unsigned bytes, int t) {
  return __uint_as_float(__byte_perm(bytes, 0, 0x4044U + (static_cast<unsigned>(t) << 8)));
}
/// sum += subnormal codes times x.
__device__ inline void take(float& sum, unsigned bytes, const float4& x) {
  sum = __fmaf_rn(tiny_number(bytes, 0), x.x, sum);
  sum = __fmaf_rn(tiny_number(bytes, 1), x.y, sum);
  sum = __fmaf_rn(tiny_number(bytes, 2), x.z, sum);
  sum = __fmaf_rn(tiny_number(bytes, 3), x.w, sum);
}
/// sum += w x for the first `left` of four values, which are in the row.
__device__ inline float take_some(float sum, const Q4kLine& line, unsigned codes, const float4& x, Index left) {
  const float values[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int t = 0; t < 4; ++t)
    if (t < left) sum = __fmaf_rn(__fmaf_rn(line.step, q4k_number(codes, t), -line.minimum), values[t], sum);
  return sum;
}

/// Adds a lane's products over its 64 values (32 low nibbles and the 32 high ones of the same bytes) for each of
/// `owned` rows. For usual x: codes times x first, then the step, and the minimum times the sum of x. Otherwise, and
/// where the row ends in the block: value by value.
template <int owned>
__device__ inline void take_lots(float (&sum)[owned][2], const LanePart (&lot)[owned], const Tile& tile, bool usual,
                                 int n, int group, int key, Index left) {
  const float4* const x = tile.x + n * 64 + 16 * group;
  Q4kLine lines[owned][2];
#pragma unroll
  for (int r = 0; r < owned; ++r) q4k_lines(lot[r].header, group, lines[r]);
  if (left >= q4_k::kValues && usual) {
    float low[owned] = {}, high[owned] = {};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float4 first = x[j ^ key], second = x[8 + (j ^ key)];
#pragma unroll
      for (int r = 0; r < owned; ++r) {
        take(low[r], lot[r].word[j] & 0x0f0f0f0fU, first);
        take(high[r], lot[r].word[j] & 0xf0f0f0f0U, second);  // 16 times the code
      }
    }
    const float* const sums = tile.sums + 8 * n + 2 * group;
#pragma unroll
    for (int r = 0; r < owned; ++r) {
      sum[r][0] += __fmaf_rn(low[r] * 0x1p37f, lines[r][0].step, -lines[r][0].minimum * sums[0]);
      sum[r][1] += __fmaf_rn(high[r] * 0x1p33f, lines[r][1].step, -lines[r][1].minimum * sums[1]);
    }
    return;
  }
  const float down = usual ? 1 / kUp : 1.0f;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const Index behind = left - 64 * group - 4 * j;
    float4 first = x[j ^ key], second = x[8 + (j ^ key)];
    first = make_float4(first.x * down, first.y * down, first.z * down, first.w * down);
    second = make_float4(second.x * down, second.y * down, second.z * down, second.w * down);
#pragma unroll
    for (int r = 0; r < owned; ++r) {
      sum[r][0] = take_some(sum[r][0], lines[r][0], lot[r].word[j] & 0x0f0f0f0fU, first, behind);
      sum[r][1] = take_some(sum[r][1], lines[r][1], lot[r].word[j] >> 4 & 0x0f0f0f0fU, second, behind - 32);
    }
  }
}

/// Two warps sum `owned` rows, alternating by eight super-blocks: four lanes a super-block, 32 bytes of codes each;
/// then a tree over the lanes, and the two sums in order. The warps of a block share a tile of x in shared memory, so
/// that all of them must reach every barrier.
template <int owned>
__global__ void __launch_bounds__(kThreads) q4k_gemv_kernel(Q4kGemv a) {
  float4* const x = dynamic_shared<float4>();
  const Tile tile{x, reinterpret_cast<float*>(x + kTileFours)};
  ASSAY_SHARED(float, sums, [kShares][kRowWarps * owned]);
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane % 4, key = lane % 8;
  const int row_warp = static_cast<int>(threadIdx.x) / 32 % kRowWarps,
            share = static_cast<int>(threadIdx.x) / 32 / kRowWarps;
  const Index block_row = Index{blockIdx.x} * (kRowWarps * owned), first_row = block_row + row_warp * owned;
  const Index count = q4_k::blocks_of(a.k);
  float sum[owned][2] = {};
  for (Index first = 0; first < count; first += kTileBlocks) {
    // The barrier inside stage() follows the last read of the previous tile.
    const bool usual = stage(a, first, tile);
    __syncthreads();
    const int here = static_cast<int>(min(Index{kTileBlocks}, count - first));
    for (int n = share * kBlocksOfWarp + lane / 4; n < here; n += kShares * kBlocksOfWarp) {
      LanePart lot[owned];
#pragma unroll
      for (int r = 0; r < owned; ++r)
        lot[r] = load_lot(q4k_block(a.blocks, min(first_row + r, a.rows - 1), first + n), group, a.aligned_blocks);
      take_lots<owned>(sum, lot, tile, usual, n, group, key, a.k - (first + n) * q4_k::kValues);
    }
  }
#pragma unroll
  for (int r = 0; r < owned; ++r) {
    const float total = reduce_row<32, Plus>(sum[r][0] + sum[r][1], nullptr);
    if (lane == 0) sums[share][row_warp * owned + r] = total;
  }
  __syncthreads();
  const Index row = block_row + threadIdx.x;
  if (threadIdx.x < kRowWarps * owned && row < a.rows) a.y[row] = sums[0][threadIdx.x] + sums[1][threadIdx.x];
}

/// blocks (rows, ceil(k/256)*144): bytes, rows at multiples of 4; x (k), y (rows): float32. 0.5625 bytes a weight.
void run(const ops::Q4KGemvArgs& args, Device& device) {
  if (args.rows == 0) return;
  const Q4kRows blocks = q4k_rows(args.blocks);
  const Q4kGemv a{
      args.rows, args.k, blocks, args.x.data(), args.y.data(), q4k_aligned(blocks), rows_aligned(args.x.data(), 0)};
  constexpr int kOwned = 2;
  const dim3 grid(blocks_for(a.rows, kRowWarps * kOwned)), block(kThreads);
  launch(&q4k_gemv_kernel<kOwned>, {grid, block, kTileBytes}, device, a);
}

std::optional<std::string> refuse(const ops::Q4KGemvArgs& args) { return refuse_bytes(args.blocks.data()); }

const KernelRegistration warp_per_two_rows{
    {.id = "q4_k_gemv/" ASSAY_CUDA_NAME "/warp_per_two_rows",
     .arithmetic = {.functions = FunctionLibrary::cuda},
     .summary = "a warp sums two rows, 64 codes a lane at a time; x in shared memory, 8192 values at a time",
     .run = &run_typed<ops::Q4KGemvArgs, &run>,
     .refuse = &refuse_typed<ops::Q4KGemvArgs, &refuse>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_gemv
