// Y = X·Wᵀ for W in Q4_K super-blocks with CUDA.
#include "ops/q4_k_matmul_nt.hpp"

#include <cuda_bf16.h>
#include <cuda_pipeline.h>

#include <cstring>

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/product.cuh"
#include "kernels/cuda/q4_k.cuh"
#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_matmul_nt {
namespace {

using ops::Q4KMatmulNtArgs;

constexpr unsigned kAllLanes = 0xffffffffU;
constexpr int kSubBlock = static_cast<int>(q4_k::kSubBlock), kBlockBytes = static_cast<int>(q4_k::kBytes);

/// Returns sum + the products of `count` values of a sub-block, from value `place` of a super-block on, with x, value by
/// value. Not inline: it would take registers of its callers, which hardly ever call it.
__device__ __attribute__((noinline)) float add_values(float sum, const float* x, const std::uint8_t* block, int place,
                                                      int count) {
  const Q4kLine line = q4k_line(q4k_header(block, false), place / kSubBlock);
  const std::uint8_t* const codes = block + q4_k::kCodes + place / 64 * 32;
  const int shift = place % 64 / 32 * 4;
#pragma unroll 1
  for (int t = 0; t < count; ++t) sum = __fmaf_rn(q4k_value(line, codes[t] >> shift & 15U), x[t], sum);
  return sum;
}
/// The same for row i of X and row j of W, from value `first` on.
__device__ inline float add_values(float sum, const Product& p, const Q4kRows& w, int i, int j, int first) {
  return add_values(sum, p.a + i * p.a_ld + first, q4k_block(w, j, first / q4_k::kValues),
                    first % static_cast<int>(q4_k::kValues), min(kSubBlock, p.k - first));
}

/// One output a thread.
__global__ void __launch_bounds__(256) naive_kernel(Product p, Q4kRows w) {
  const int i = static_cast<int>(blockIdx.y * 16 + threadIdx.y), j = static_cast<int>(blockIdx.x * 16 + threadIdx.x);
  if (i >= p.m || j >= p.n) return;
  float sum = 0.0f;
  for (int first = 0; first < p.k; first += kSubBlock) sum = add_values(sum, p, w, i, j, first);
  p.c[i * p.c_ld + j] = sum;
}

void naive(const Product& p, const Q4kRows& w, Device& device) {
  launch(&naive_kernel, {dim3(blocks_for(p.n, 16), blocks_for(p.m, 16)), dim3(16, 16)}, device, p, w);
}

// On tensor cores a sub-block is two steps of mma.m16n8k16: 16 rows of W, whose codes bf16 holds exactly, times 8 rows
// of X, each element the sum of three numbers in bf16. Lane l has rows l / 4 and l / 4 + 8 of W, and row l / 4 of X.
// Of a step it has values 4 c .. 4 c + 3, c = l % 4, in the order 0, 2, 1, 3: those of one word of codes. Its outputs
// are those of its rows of W with rows 2 c and 2 c + 1 of X.
//
// Error. Every product of a code and a part of x is exact. Summing the upper parts of 32 terms costs at most what
// summing the terms would; the two smaller parts cost 2^-7 of that, and adding them one rounding. A step and a minimum
// are multiplied and added in one rounding, where sums by sub-blocks (`apart` of the reference) have two. So the error
// is at most that of these sums in blocks of 4 that truncate, as declared.

/// |x| that is the sum of three normal numbers in bf16, and whose products do not overflow before they are scaled.
constexpr float kLargestUsual = 0x1p118f, kSmallestUsual = 0x1p-103f;

__device__ inline bool usual(float x) { return x == 0 || (fabsf(x) < kLargestUsual && fabsf(x) >= kSmallestUsual); }
__device__ inline bool usual(const float4& v) { return usual(v.x) && usual(v.y) && usual(v.z) && usual(v.w); }

/// Four elements of x as parts: x = sum of them, the largest first, each truncated.
struct Parts {
  uint2 of[3];
};
__device__ inline Parts parts_of(float4 v) {
  Parts parts;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const auto upper = [](float x) { return __float_as_uint(x) & 0xffff0000U; };
    const unsigned a = upper(v.x), b = upper(v.y), c = upper(v.z), d = upper(v.w);
    parts.of[i] = make_uint2(a >> 16 | c, b >> 16 | d);
    v.x -= __uint_as_float(a), v.y -= __uint_as_float(b), v.z -= __uint_as_float(c), v.w -= __uint_as_float(d);
  }
  return parts;
}

/// Returns codes in bits 0..3 and 16..19 as two numbers in bf16: 128 + q has q in its lowest bits.
__device__ inline unsigned numbers(unsigned codes) {
  const unsigned offset = (codes & 0x000f000fU) | 0x43004300U;
  __nv_bfloat162 two;
  memcpy(&two, &offset, sizeof two);
  two = __hsub2(two, __float2bfloat162_rn(128.0f));
  unsigned bits;
  memcpy(&bits, &two, sizeof bits);
  return bits;
}

/// A sub-block of a lane's two rows of W.
struct Codes {
  unsigned a[2][4];
  Q4kLine lines[2];

  /// Takes the nibbles at `shift`, 0 or 4, of a group's codes, 32 bytes a row.
  __device__ void load(const std::uint8_t* first, const std::uint8_t* second, int c, int shift) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      const unsigned p = reinterpret_cast<const unsigned*>(first)[4 * step + c] >> shift;
      const unsigned q = reinterpret_cast<const unsigned*>(second)[4 * step + c] >> shift;
      a[step][0] = numbers(p), a[step][1] = numbers(q);
      a[step][2] = numbers(p >> 8), a[step][3] = numbers(q >> 8);
    }
  }
};

/// A sub-block of 8 rows of X: a lane's parts of both steps, and the sums of rows 2 c and 2 c + 1.
struct Elements {
  Parts steps[2];
  float sums[2];
};

/// y += W·Xᵀ over a sub-block.
__device__ inline void multiply(float (&y)[4], const Codes& w, const Elements& x) {
  using mma_detail::multiply;
  float large[4] = {}, small[4] = {};
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    const auto part = [&](float(&sums)[4], int i) {
      const unsigned b[2] = {x.steps[step].of[i].x, x.steps[step].of[i].y};
      multiply<BFloat16>(sums, w.a[step], b);
    };
    part(small, 2), part(small, 1), part(large, 0);
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    y[e] = __fmaf_rn(w.lines[e / 2].step, large[e] + small[e], y[e]);
    y[e] = __fmaf_rn(-w.lines[e / 2].minimum, x.sums[e % 2], y[e]);
  }
}

/// The same for any x and all tiles of a warp: the rows of W from `row` on and the rows of X from `x_row` on, without
/// those past the last. One call for all outputs leaves the registers to the usual path.
template <int tiles, int x_tiles>
__device__ inline void multiply_values(float (&y)[tiles][x_tiles][4], const Product& p, const Q4kRows& w, int x_row,
                                       int row, int first) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
  for (int output = 0; output < 4 * tiles * x_tiles; ++output) {
    const int e = output % 4, i = x_row + output / 4 % x_tiles * 8 + lane % 4 * 2 + e % 2;
    const int j = row + output / (4 * x_tiles) * 16 + lane / 4 + e / 2 * 8;
    const float sum = i < p.m && j < p.n ? add_values(0.0f, p, w, i, j, first) : 0.0f;
#pragma unroll
    for (int t = 0; t < tiles; ++t)
#pragma unroll
      for (int n = 0; n < 4 * x_tiles; ++n)
        if (output == 4 * x_tiles * t + n) y[t][n / 4][n % 4] += sum;
  }
}

/// Returns the sum of a lane's elements of a row over the four lanes that share it.
__device__ inline float sum_of_row(const float4& v, const float4& w) {
  float sum = ((v.x + v.y) + (v.z + v.w)) + ((w.x + w.y) + (w.z + w.w));
  sum += __shfl_xor_sync(kAllLanes, sum, 1);
  return sum + __shfl_xor_sync(kAllLanes, sum, 2);
}

// At most 16 rows of X: W is read once.

constexpr int kFew = 16, kWarps = 8, kStages = 3;

/// A block has 16 `tiles` rows of W, and 8 `x_tiles` rows of X. Its warps share the super-blocks: each copies its own
/// through a ring of shared memory, from before the previous kernel of the stream has ended, and what they sum is added
/// in order. The order of a sum depends on k alone.
template <int tiles, int x_tiles, bool aligned>
__global__ void __launch_bounds__(32 * kWarps, 2) few_rows_kernel(Product p, Q4kRows w, bool aligned_x) {
  constexpr int kRows = 16 * tiles, kTileBytes = kRows * kBlockBytes, kPitch = kRows + 4;
  static_assert(8 * x_tiles * kPitch * 4 <= kStages * kTileBytes, "the sums of a warp replace its ring");
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, c = lane % 4;
  const int row0 = static_cast<int>(blockIdx.x) * kRows, count = static_cast<int>(q4_k::blocks_of(p.k));
  std::uint8_t* const rings = dynamic_shared<std::uint8_t>();
  std::uint8_t* const ring = rings + warp * (kStages * kTileBytes);
  // Every lane commits one batch a super-block, empty past the last. Rows past the last are the last once more.
  const auto copy = [&](int n, int slot) {
    constexpr int kWord = aligned ? 16 : 4, kOfRow = kBlockBytes / kWord;
#pragma unroll 1
    for (int i = n < count ? lane : kRows * kOfRow; i < kRows * kOfRow; i += 32)
      __pipeline_memcpy_async(ring + slot * kTileBytes + kWord * i,
                              q4k_block(w, min(row0 + i / kOfRow, p.n - 1), n) + kWord * (i % kOfRow), kWord);
    __pipeline_commit();
  };
  let_next_begin();
  for (int i = 0; i < kStages - 1; ++i) copy(warp + i * kWarps, i);
  await_previous();
  const float* rows[x_tiles];
#pragma unroll
  for (int t = 0; t < x_tiles; ++t) rows[t] = p.a + min(8 * t + lane / 4, p.m - 1) * p.a_ld;
  float y[tiles][x_tiles][4] = {};
  float4 coming[x_tiles][2];  // of the next sub-block; zeros past k
  const auto load = [&](int first) {
#pragma unroll
    for (int t = 0; t < x_tiles; ++t)
#pragma unroll
      for (int step = 0; step < 2; ++step) coming[t][step] = load4(rows[t], first + 16 * step + 4 * c, p.k, aligned_x);
  };
  load(warp * static_cast<int>(q4_k::kValues));
  int slot = 0;
#pragma unroll 1
  for (int n = warp; n < count; n += kWarps) {
    __pipeline_wait_prior(kStages - 2);
    __syncwarp();  // the tile is there, and the one before has been read
    copy(n + (kStages - 1) * kWarps, slot == 0 ? kStages - 1 : slot - 1);
    const std::uint8_t* const tile = ring + slot * kTileBytes + lane / 4 * kBlockBytes;
    slot = slot + 1 < kStages ? slot + 1 : 0;
    constexpr int kSubBlocks = static_cast<int>(q4_k::kSubBlocks), kValues = static_cast<int>(q4_k::kValues);
#pragma unroll 1
    for (int b = 0; b < kSubBlocks; ++b) {
      const int first = n * kValues + b * kSubBlock;
      if (first >= p.k) break;
      Codes codes[tiles];
#pragma unroll
      for (int t = 0; t < tiles; ++t) {
        const std::uint8_t *const upper = tile + 16 * t * kBlockBytes, *const lower = upper + 8 * kBlockBytes;
        constexpr int kFrom = static_cast<int>(q4_k::kCodes);
        codes[t].load(upper + kFrom + b / 2 * 32, lower + kFrom + b / 2 * 32, c, b % 2 * 4);
        codes[t].lines[0] = q4k_line(q4k_header(upper, true), b);
        codes[t].lines[1] = q4k_line(q4k_header(lower, true), b);
      }
      float4 own[x_tiles][2];
#pragma unroll
      for (int t = 0; t < x_tiles; ++t) own[t][0] = coming[t][0], own[t][1] = coming[t][1];
      load(b + 1 < kSubBlocks ? first + kSubBlock : (n + kWarps) * kValues);
      bool all = true;
#pragma unroll
      for (int t = 0; t < x_tiles; ++t) all = all && usual(own[t][0]) && usual(own[t][1]);
      if (!__all_sync(kAllLanes, all)) {
        multiply_values(y, p, w, 0, row0, first);
        continue;
      }
#pragma unroll
      for (int x_tile = 0; x_tile < x_tiles; ++x_tile) {
        const auto& v = own[x_tile];
        const float sum = sum_of_row(v[0], v[1]);
        const Elements x{{parts_of(v[0]), parts_of(v[1])},
                         {__shfl_sync(kAllLanes, sum, 8 * c), __shfl_sync(kAllLanes, sum, 8 * c + 4)}};
#pragma unroll
        for (int t = 0; t < tiles; ++t) multiply(y[t][x_tile], codes[t], x);
      }
    }
  }
  float* const sums = reinterpret_cast<float*>(ring);  // [8 x_tiles][kPitch]
  __syncwarp();                                        // all lanes have read the ring
#pragma unroll
  for (int t = 0; t < tiles; ++t)
#pragma unroll
    for (int x_tile = 0; x_tile < x_tiles; ++x_tile)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[(8 * x_tile + 2 * c + e % 2) * kPitch + 16 * t + lane / 4 + e / 2 * 8] = y[t][x_tile][e];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < 8 * x_tiles * kRows; i += 32 * kWarps) {
    const int x_row = i / kRows, row = row0 + i % kRows;
    if (x_row >= p.m || row >= p.n) continue;
    const auto of = [&](int s) {
      return reinterpret_cast<const float*>(rings + s * (kStages * kTileBytes))[x_row * kPitch + i % kRows];
    };
    float total = of(0);
#pragma unroll
    for (int s = 1; s < kWarps; ++s) total += of(s);
    p.c[x_row * p.c_ld + row] = total;
  }
}

constexpr std::size_t ring_bytes(int tiles) {
  return static_cast<std::size_t>(kWarps * kStages * 16 * tiles * kBlockBytes);
}

template <int tiles, int x_tiles>
void launch_few(const Product& p, const Q4kRows& w, Device& device) {
  launch_overlapping(q4k_aligned(w) ? &few_rows_kernel<tiles, x_tiles, true> : &few_rows_kernel<tiles, x_tiles, false>,
                     {dim3(blocks_for(p.n, 16 * tiles)), dim3(32 * kWarps), ring_bytes(tiles)}, device, p, w,
                     vectors(p.a, p.a_ld));
}

/// Reads W once, and X once a block of 16 or 32 rows of W: as many as occupy the multiprocessors. The bits are the same.
void few_rows(const Product& p, const Q4kRows& w, Device& device) {
  constexpr int kMultiprocessors = 132;
  const bool wide = p.n >= 32 * kMultiprocessors / 2 && ring_bytes(2) <= most_shared_bytes(device);
  if (p.m <= 8) return wide ? launch_few<2, 1>(p, w, device) : launch_few<1, 1>(p, w, device);
  return wide ? launch_few<2, 2>(p, w, device) : launch_few<1, 2>(p, w, device);
}

// More rows: tiles of 128 rows of W by 64 of X.

constexpr int kTileRows = 128, kTileX = 64, kGroup = 64;
constexpr int kCodePitch = 48;  ///< bytes from row to row: words that a warp reads lie in different banks

/// Terms of a sum that a block multiplies at a time.
struct Stage {
  uint2 x[kTileX / 8][4][3][32];  ///< parts: of eight rows, a step, in the order of lanes
  float sums[2][kTileX];
  float2 lines[2][kTileRows];
  alignas(16) std::uint8_t codes[kTileRows * kCodePitch];
};

/// A thread copies a quarter of a row of X, and half a row of W's codes and one of its two lines. While the block
/// multiplies a stage the next one is in registers. Warps form a 4x2 grid of 32 rows of W by 32 of X.
__global__ void __launch_bounds__(256, 2) tiled_kernel(Product p, Q4kRows w, bool aligned, bool aligned_x) {
  ASSAY_SHARED(Stage, stage, [1]);
  Stage& s = stage[0];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32, c = lane % 4;
  const int row0 = static_cast<int>(blockIdx.x) * kTileRows, x_row0 = static_cast<int>(blockIdx.y) * kTileX;
  const int own_row = thread / 2, half = thread % 2;
  const float* const x = p.a + min(x_row0 + thread / 4, p.m - 1) * p.a_ld;
  const int j = min(row0 + own_row, p.n - 1);
  float4 own_x[4];
  Q4kHeader own_codes{};
  Q4kLine own_line{};
  const auto load = [&](int first) {
    if (first >= p.k) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) own_x[i] = load4(x, first + 16 * i + 4 * c, p.k, aligned_x);
    const std::uint8_t* const block = q4k_block(w, j, first / q4_k::kValues);
    const int group = first % static_cast<int>(q4_k::kValues) / kGroup;
    own_codes = q4k_header(block + q4_k::kCodes + 32 * group + 16 * half, aligned);  // four words
    own_line = q4k_line(q4k_header(block, aligned), 2 * group + half);
  };
  const auto keep = [&] {
    bool all = true;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      all = all && usual(own_x[i]);
      const Parts parts = parts_of(own_x[i]);
#pragma unroll
      for (int n = 0; n < 3; ++n) s.x[warp][i][n][lane] = parts.of[n];
    }
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const float sum = sum_of_row(own_x[2 * b], own_x[2 * b + 1]);
      if (c == 0) s.sums[b][thread / 4] = sum;
    }
    s.lines[half][own_row] = make_float2(own_line.step, own_line.minimum);
    *reinterpret_cast<uint4*>(s.codes + own_row * kCodePitch + 16 * half) =
        make_uint4(own_codes.halves, own_codes.scales, own_codes.minima, own_codes.rest);
    return all;
  };

  const int row = warp / 2 * 32, x_tile = warp % 2 * 4;
  float y[2][4][4] = {};
  load(0);
#pragma unroll 1
  for (int first = 0; first < p.k; first += kGroup) {
    const bool all_usual = __syncthreads_or(!keep()) == 0;
    load(first + kGroup);
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      if (first + b * kSubBlock >= p.k) break;
      if (!all_usual) {
        multiply_values(y, p, w, x_row0 + 8 * x_tile, row0 + row, first + b * kSubBlock);
        continue;
      }
      Codes codes[2];
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const int upper = row + 16 * t + lane / 4;
        codes[t].load(s.codes + upper * kCodePitch, s.codes + (upper + 8) * kCodePitch, c, 4 * b);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float2 line = s.lines[b][upper + 8 * r];
          codes[t].lines[r] = {line.x, line.y};
        }
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        Elements of;
#pragma unroll
        for (int step = 0; step < 2; ++step)
#pragma unroll
          for (int i = 0; i < 3; ++i) of.steps[step].of[i] = s.x[x_tile + n][2 * b + step][i][lane];
        of.sums[0] = s.sums[b][8 * (x_tile + n) + 2 * c], of.sums[1] = s.sums[b][8 * (x_tile + n) + 2 * c + 1];
#pragma unroll
        for (int t = 0; t < 2; ++t) multiply(y[t][n], codes[t], of);
      }
    }
    __syncthreads();  // the stage has been read
  }
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = x_row0 + 8 * (x_tile + n) + 2 * c + e % 2, to = row0 + row + 16 * t + lane / 4 + e / 2 * 8;
        if (i < p.m && to < p.n) p.c[i * p.c_ld + to] = y[t][n][e];
      }
}

/// Reads each super-block m/64 times, and each element of X n/128 times.
void tiled(const Product& p, const Q4kRows& w, Device& device) {
  launch(&tiled_kernel, {dim3(blocks_for(p.n, kTileRows), blocks_for(p.m, kTileX)), dim3(256)}, device, p, w,
         q4k_aligned(w), vectors(p.a, p.a_ld));
}

/// Throws Unavailable below compute capability 8.0.
void by_rows(const Product& p, const Q4kRows& w, Device& device) {
  need_mma("q4_k_matmul_nt by tensor cores", device);
  if (p.m <= kFew) few_rows(p, w, device);
  else tiled(p, w, device);
}

/// x (m,k), y (m,n): float32, row-major, any leading dimension; blocks (n, ceil(k/256)*144): bytes, rows at multiples
/// of 4; y shares no memory. A block computes `rows` rows of y.
template <void (*run)(const Product&, const Q4kRows&, Device&), Index rows>
Kernel kernel_of(std::string_view id, std::string_view summary) {
  return {.id = id,
          .arithmetic = {.functions = FunctionLibrary::cuda},
          .summary = summary,
          .run =
              [](const Call& call, Device& device) {
                const Q4KMatmulNtArgs args = Q4KMatmulNtArgs::unpack(call);
                if (args.m == 0 || args.n == 0) return;
                run({static_cast<int>(args.m), static_cast<int>(args.k), static_cast<int>(args.n), args.x.data(),
                     nullptr, args.y.data(), leading_dimension(args.x), 0, leading_dimension(args.y)},
                    q4k_rows(args.blocks), device);
              },
          .refuse =
              [](const Call& call) {
                const Q4KMatmulNtArgs args = Q4KMatmulNtArgs::unpack(call);
                if (auto why = refuse_bytes(args.blocks.data())) return why;
                return refuse_grid("m", args.m, rows);
              }};
}

const KernelRegistration naive_of{
    kernel_of<&naive, 16>("q4_k_matmul_nt/" ASSAY_CUDA_NAME "/naive", "one thread an output")};
const KernelRegistration tensor_cores{preferred(varying_with_batch(declaring(
    {.accumulation = Rounding::toward_zero, .block = 4, .functions = FunctionLibrary::cuda},
    kernel_of<&by_rows, kTileX>(
        "q4_k_matmul_nt/" ASSAY_CUDA_NAME "/tensor_cores",
        "16-bit tensor cores (mma.sync m16n8k16): codes times x in three parts of bf16, exactly, sums scaled by "
        "sub-blocks; up to 16 rows: warps share the super-blocks of 16 or 32 rows of W, through rings of asynchronous "
        "copies; more: 128x64 tiles"))))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_matmul_nt
