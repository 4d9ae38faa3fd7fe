// y = W·x for W in Q4_K super-blocks by integer tensor cores: codes times digits of x in fixed point.
#pragma once

#include <cuda_pipeline.h>

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/q4_k.cuh"
#include "kernels/cuda/rows.cuh"
#include "ops/q4_k_gemv.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::by_digits {

/// d = a b, exactly: a [16, 32] of unsigned bytes by rows and b [32, 8] of signed bytes by columns, in the registers
/// that the PTX ISA defines ("Matrix Fragments for mma.m16n8k32").
#if defined(__CUDACC__)
__device__ inline void multiply_bytes(int (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %10, %10, %10};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(0));
}
/// Returns the maximum over the lanes of a warp.
__device__ inline unsigned most_of_warp(unsigned x) { return __reduce_max_sync(0xffffffffU, x); }
#else
struct Bytes {
  unsigned a[4], b[2];
  int* d;

  static int of(unsigned word, int n) { return static_cast<int>(word >> 8 * n & 255U); }
};
inline void multiply_bytes(int (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                           cuda_host::Site site = cuda_host::Site::current()) {
  Bytes operand{{a[0], a[1], a[2], a[3]}, {b0, b1}, d};
  const cuda_host::Complete complete = [](void* const* lanes, unsigned) {
    const auto lane = [&](int l) -> const Bytes& { return *static_cast<const Bytes*>(lanes[l]); };
    for (int l = 0; l < 32; ++l)
      for (int e = 0; e < 4; ++e) {
        const int column = l % 4 * 2 + e % 2;
        int sum = 0;
        for (int k = 0; k < 32; ++k)
          sum += Bytes::of(lane(l / 4 * 4 + k % 16 / 4).a[e / 2 + k / 16 * 2], k % 4) *
                 static_cast<signed char>(Bytes::of(lane(column * 4 + k % 16 / 4).b[k / 16], k % 4));
        lane(l).d[e] = sum;
      }
  };
  cuda_host::together(0xffffffffU, complete, &operand, site);
}
inline unsigned most_of_warp(unsigned x) {
  for (int step = 16; step > 0; step /= 2) x = max(x, __shfl_xor_sync(0xffffffffU, x, step));
  return x;
}
#endif

/// y[i] = sum_p w[i,p] x[p]. Offsets take 64 bits. Where x fits its fixed point, all but the sums of x over sub-blocks,
/// in float32, is exact or has 53 bits, and y is rounded once; elsewhere the error is at most k·u·sum_p |w||x|.
struct Product {
  Index rows, k;
  Q4kRows blocks;
  const float* x;
  float* y;
  bool aligned_x;       ///< to 16 bytes
  int shares, streams;  ///< warps that share a row, each with its own super-blocks; tiles at a time
  int rows_of_block;
};

inline constexpr int kWarps = 16;                     ///< per block, at most
inline constexpr int kBlocks = 132, kMostRows = 256;  ///< multiprocessors of an H200; rows of a block
inline constexpr int kTileRows = 16;                  ///< of one super-block; a warp takes one or two tiles at a time
inline constexpr int kPitch = 160;                    ///< the rows that half a warp reads access different banks
inline constexpr int kTileBytes = kTileRows * kPitch;
inline constexpr unsigned kAllLanes = 0xffffffffU;

/// Starts a lane's copies of a super-block of the first `rows` of some tiles' rows: 128 bytes of each, then the last 16.
/// `aligned`: to 16 bytes.
template <bool aligned, int tiles>
__device__ inline void copy_tiles(std::uint8_t* to, const std::uint8_t* from, Index ld, int rows, int lane) {
  constexpr int kWord = aligned ? 16 : 4;
  const auto copy = [&](auto first, auto count) {
    constexpr int kLanes = count() / kWord, kStep = 32 / kLanes;  // lanes of a row; rows at a time
    const int row = lane / kLanes, at = first() + lane % kLanes * kWord;
    const std::uint8_t* source = from + row * ld + at;
#pragma unroll
    for (int i = 0; i < tiles * kTileRows; i += kStep, source += kStep * ld)
      if (i < min(rows, tiles * kTileRows) - row)
        __pipeline_memcpy_async(to + row * kPitch + at + i * kPitch, source, kWord);
  };
  copy(std::integral_constant<int, 0>{}, std::integral_constant<int, 128>{});
  copy(std::integral_constant<int, 128>{}, std::integral_constant<int, 16>{});
}

/// x of a super-block as a warp multiplies by it. x = (high + low 2^-31) / up, |high| <= 2^30, |low| <= 2^30, and each
/// of the two is a number of four digits from -128 to 127 to the base 256. Digits of low are columns 0 to 3, those of
/// high 4 to 7; a lane's sums have columns 2 (lane % 4) and the next.
struct Digits {
  uint4 groups[4];  ///< right operands of 64 values: two registers for low nibbles, two for high ones
  double unit;      ///< of the first of the lane's columns, for sums of 16 times the codes
  float sums[2];    ///< of x over sub-blocks 2 (lane % 4) and the next
  bool usual;       ///< all x are these numbers; the same for all lanes
};

/// Returns digits 0 to 3 of four numbers, four in a word. A byte of x + 128 (1 + 256 + 256^2), less 128, is a digit; the
/// highest has the sign of x.
__device__ inline void split(const int* x, unsigned (&digits)[4]) {
  constexpr unsigned kHalves = 0x808080U;
  const auto word = [&](int i) { return static_cast<unsigned>(x[i]) + kHalves; };
  const unsigned a = __byte_perm(word(0), word(1), 0x5140), b = __byte_perm(word(2), word(3), 0x5140);
  const unsigned c = __byte_perm(word(0), word(1), 0x7362), d = __byte_perm(word(2), word(3), 0x7362);
  digits[0] = __byte_perm(a, b, 0x5410) ^ 0x80808080U, digits[1] = __byte_perm(a, b, 0x7632) ^ 0x80808080U;
  digits[2] = __byte_perm(c, d, 0x5410) ^ 0x80808080U, digits[3] = __byte_perm(c, d, 0x7632);
}

/// Returns the place of the 16 bytes of a lane that holds column n of values 8 c .. 8 c + 7 of two sub-blocks. Groups
/// that are stored together access different banks.
__device__ inline int place(int group, int n, int c) {
  return 512 * group + 128 * (n / 2) + 64 * ((n ^ group) % 2) + 16 * c;
}

/// Values 8 l .. 8 l + 7 of a super-block, of lane l.
struct Values {
  float x[8];
};
/// Loads values of super-block n, with zeros past the end of x.
__device__ inline Values load_values(const Product& a, int n, int lane) {
  const Index at = n * q4_k::kValues + 8 * lane;
  const bool whole = a.aligned_x && at + 8 <= a.k;
  float4 one, two;
  if (whole) one = *reinterpret_cast<const float4*>(a.x + at), two = *reinterpret_cast<const float4*>(a.x + at + 4);
  else one = load4(a.x, at, a.k, false), two = load4(a.x, at + 4, a.k, false);
  return {{one.x, one.y, one.z, one.w, two.x, two.y, two.z, two.w}};
}

/// Makes digits of a super-block's x. Lanes exchange them through `staging`, 2048 bytes.
__device__ inline Digits digits_of(const Values& values, std::uint8_t* staging, int lane) {
  const float(&x)[8] = values.x;
  unsigned most = 0;
#pragma unroll
  for (const float v : x) most = max(most, __float_as_uint(v) & 0x7fffffffU);
  // 2^-98 at least, or `up` would overflow.
  const unsigned exponent = max(most_of_warp(most) >> 23, 29U);
  Digits own;
  own.usual = exponent < 255;
  if (!own.usual) return own;  // Inf or NaN
  const float up = __uint_as_float((283 - exponent) << 23);
  bool exact = true;
  int parts[2][8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int high = parts[1][i] = __float2int_rn(x[i] * up);
    const float rest = __fmaf_rn(x[i], up, -__int2float_rn(high)) * 0x1p31f;
    const int low = parts[0][i] = __float2int_rn(rest);
    exact = exact && rest == __int2float_rn(low);
  }
  if (exponent > 156)  // `up` is below 1
#pragma unroll
    for (const float v : x) exact = exact && (v == 0 || v * up != 0);
  own.usual = __all_sync(kAllLanes, exact);
  const int c = lane % 4;
  float sum = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
  sum += __shfl_xor_sync(kAllLanes, sum, 1);
  sum += __shfl_xor_sync(kAllLanes, sum, 2);
  own.sums[0] = __shfl_sync(kAllLanes, sum, 8 * c), own.sums[1] = __shfl_sync(kAllLanes, sum, 8 * c + 4);
  own.unit = __uint_as_float((exponent - 20) << 23) * (c < 2 ? (c == 0 ? 0x1p-44 : 0x1p-28) : c == 2 ? 0x1p-13 : 0x1p3);
#pragma unroll
  for (int n = 0; n < 8; n += 4) {
    unsigned first[4], second[4];
    split(parts[n / 4], first), split(parts[n / 4] + 4, second);
#pragma unroll
    for (int j = 0; j < 4; ++j)
      *reinterpret_cast<uint2*>(staging + place(lane / 8, n + j, c) + lane / 4 % 2 * 8) =
          make_uint2(first[j], second[j]);
  }
  __syncwarp();
#pragma unroll
  for (int group = 0; group < 4; ++group)
    own.groups[group] = *reinterpret_cast<const uint4*>(staging + place(group, lane / 4, c));
  return own;
}

/// Returns scales 0 to 3 and 4 to 7 as bytes.
__device__ inline uint2 scales_of(const Q4kHeader& h) {
  return make_uint2(h.scales & 0x3f3f3f3fU, (h.rest & 0x0f0f0f0fU) | (h.scales >> 2 & 0x30303030U));
}

/// Returns a lane's parts of the products of rows lane / 4 and lane / 4 + 8 of a tile: those of its digits, less its
/// two minima times sums of x. No sum of integers exceeds 2^29.
__device__ inline void multiply_tile(const std::uint8_t* tile, const Digits& x, int lane, double (&y)[2]) {
  const int c = lane % 4;
  const std::uint8_t* const rows[2] = {tile + lane / 4 * kPitch, tile + (lane / 4 + 8) * kPitch};
  const Q4kHeader headers[2] = {q4k_header(rows[0], true), q4k_header(rows[1], true)};
  const uint2 scales[2] = {scales_of(headers[0]), scales_of(headers[1])};
  int low[4] = {}, high[4] = {};  // of the codes, and of 16 times the codes
#pragma unroll
  for (int group = 0; group < 4; ++group) {
    const int at = static_cast<int>(q4_k::kCodes) + 32 * group + 8 * c;
    const uint2 p = *reinterpret_cast<const uint2*>(rows[0] + at), q = *reinterpret_cast<const uint2*>(rows[1] + at);
    constexpr unsigned kLow = 0x0f0f0f0fU, kHigh = 0xf0f0f0f0U;
    int of_low[4], of_high[4];
    multiply_bytes(of_low, {p.x & kLow, q.x & kLow, p.y & kLow, q.y & kLow}, x.groups[group].x, x.groups[group].y);
    multiply_bytes(of_high, {p.x & kHigh, q.x & kHigh, p.y & kHigh, q.y & kHigh}, x.groups[group].z, x.groups[group].w);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const unsigned four = group < 2 ? scales[e / 2].x : scales[e / 2].y;
      const unsigned byte = 0x4440U + static_cast<unsigned>(group % 2 * 2);
      low[e] += of_low[e] * static_cast<int>(__byte_perm(four, 0, byte));
      high[e] += of_high[e] * static_cast<int>(__byte_perm(four, 0, byte + 1));
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const double first = 16 * low[2 * r] + high[2 * r], second = 16 * low[2 * r + 1] + high[2 * r + 1];
    Q4kLine lines[2];
    q4k_lines(headers[r], c, lines);
    const float minima = __fmaf_rn(lines[1].minimum, x.sums[1], lines[0].minimum * x.sums[0]);
    const double d = q4k_half(headers[r].halves & 0xffffU);
    y[r] = fma(fma(second, 256.0, first) * x.unit, d, -static_cast<double>(minima));
  }
}

/// Returns a lane's part of one row, 64 values, value by value, for any x and any d.
__device__ inline float sum_of_values(const Product& a, Index n, const std::uint8_t* row, int lane) {
  const int group = lane % 4;
  const auto* const words = reinterpret_cast<const unsigned*>(row + q4_k::kCodes + 32 * group);
  const Index first = n * q4_k::kValues + 64 * group;
  Q4kLine lines[2];
  q4k_lines(q4k_header(row, true), group, lines);
  float sum[2] = {};
#pragma unroll 1
  for (int i = 0; i < 32 && first + i < a.k; ++i) {
    const unsigned byte = words[i / 4] >> i % 4 * 8;
    sum[0] = __fmaf_rn(q4k_value(lines[0], byte & 15U), a.x[first + i], sum[0]);
    if (first + 32 + i < a.k) sum[1] = __fmaf_rn(q4k_value(lines[1], byte >> 4 & 15U), a.x[first + 32 + i], sum[1]);
  }
  return sum[0] + sum[1];
}

/// Returns one of four sums over four lanes: of y[lane / 2 % 2][lane % 2].
__device__ inline double sum_of_lanes(const double (&y)[2][2], int lane) {
  const bool odd = lane % 2 != 0, second = lane % 4 > 1;
  const double one = (odd ? y[0][1] : y[0][0]) + __shfl_xor_sync(kAllLanes, odd ? y[0][0] : y[0][1], 1);
  const double other = (odd ? y[1][1] : y[1][0]) + __shfl_xor_sync(kAllLanes, odd ? y[1][0] : y[1][1], 1);
  return (second ? other : one) + __shfl_xor_sync(kAllLanes, second ? one : other, 2);
}

/// `shares` warps sum a row. Each takes a super-block, makes digits of its x, keeps them in registers and goes through
/// the tiles of the block's rows, then the next super-block. Its tiles pass through a ring of shared memory, from before
/// the previous kernel of the stream has ended: no kernel that lets the next one begin writes super-blocks.
template <bool aligned, int tiles>
__global__ void __launch_bounds__(32 * kWarps, 1) q4k_digits_kernel(Product a) {
  constexpr int kRows = tiles * kTileRows, kBytes = tiles * kTileBytes;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int share = warp % a.shares, first_row = warp / a.shares * kRows, step = a.streams * kRows;
  double* const parts = dynamic_shared<double>();
  std::uint8_t* const ring = reinterpret_cast<std::uint8_t*>(parts + a.shares * a.rows_of_block) + warp * (2 * kBytes);
  const Index block_row = Index{blockIdx.x} * a.rows_of_block;
  const int rows = static_cast<int>(min(a.rows - block_row, Index{a.rows_of_block}));
  const int count = static_cast<int>(q4_k::blocks_of(a.k)), begin = first_row < rows ? share : count;
  let_next_begin();
  int next = begin, next_row = first_row;  // the tile to copy next
  const std::uint8_t* from = q4k_block(a.blocks, block_row + first_row, begin);
  const Index advance = step * a.blocks.ld;
  const Index turn = a.shares * q4_k::kBytes - (rows - first_row + step - 1) / step * advance;
  const auto copy = [&](int slot) {
    if (next < count) {
      copy_tiles<aligned, tiles>(ring + slot, from, a.blocks.ld, rows - next_row, lane);
      next_row += step, from += advance;
      if (next_row >= rows) next_row = first_row, next += a.shares, from += turn;
    }
    __pipeline_commit();
  };
  copy(0);
  await_previous();
  int slot = 0;  // of the next tiles; the other one was read last
  Values coming = load_values(a, begin, lane);
  for (int n = begin; n < count; n += a.shares) {
    __syncwarp();  // the last tiles have been read
    const Digits x = digits_of(coming, ring + (kBytes - slot), lane);
    coming = load_values(a, n + a.shares, lane);
#pragma unroll 1
    for (int row = first_row; row < rows; row += step) {
      __pipeline_wait_prior(0);
      __syncwarp();  // the tiles are there, and what was in the other slot has been read
      copy(kBytes - slot);
      const std::uint8_t* const tile = ring + slot;
      double y[2][2] = {{NAN, NAN}, {NAN, NAN}};
      if (x.usual)
#pragma unroll
        for (int t = 0; t < tiles; ++t) multiply_tile(tile + t * kTileBytes, x, lane, y[t]);
      double sum = sum_of_lanes(y, lane);
      const int own = lane / 4 + lane % 4 * 8;
      const bool within = own < kRows && row + own < rows;
      // An infinite d counts for digits that x lacks, too: 0 times Inf.
      if (__any_sync(kAllLanes, within && !(sum - sum == 0))) {
#pragma unroll 1
        for (int r = 0; r < 2 * tiles; ++r)
          (r < 2    ? (r == 0 ? y[0][0] : y[0][1])
           : r == 2 ? y[1][0]
                    : y[1][1]) = sum_of_values(a, n, tile + (lane / 4 + 8 * r) * kPitch, lane);
        sum = sum_of_lanes(y, lane);
      }
      if (within) {
        double& part = parts[share * a.rows_of_block + row + own];
        part = n == share ? sum : part + sum;
      }
      slot = kBytes - slot;
    }
  }
  __syncthreads();
  for (int row = static_cast<int>(threadIdx.x); row < rows; row += static_cast<int>(blockDim.x)) {
    double total = 0;
#pragma unroll 4
    for (int s = 0; s < min(a.shares, count); ++s) total += parts[s * a.rows_of_block + row];
    a.y[block_row + row] = static_cast<float>(total);
  }
}

/// blocks (rows, ceil(k/256)*144): bytes, rows at multiples of 4; x (k), y (rows): float32. 0.5625 bytes a weight.
/// The order of sums depends on k alone. Throws Unavailable below compute capability 8.0.
inline void run(const ops::Q4KGemvArgs& args, Device& device) {
  if (args.rows == 0) return;
  need_mma("q4_k_gemv by digits", device);
  const Q4kRows rows = q4k_rows(args.blocks);
  const Index count = std::max<Index>(1, q4_k::blocks_of(args.k)), rounds = (count + kWarps - 1) / kWarps;
  const int shares = static_cast<int>((count + rounds - 1) / rounds);
  const Index waves = (args.rows + kBlocks * kMostRows - 1) / (kBlocks * kMostRows), pairs = 2 * kBlocks * waves;
  Product a{.rows = args.rows,
            .k = args.k,
            .blocks = rows,
            .x = args.x.data(),
            .y = args.y.data(),
            .aligned_x = rows_aligned(args.x.data(), 0),
            .shares = shares,
            .streams = kWarps / shares,
            .rows_of_block = static_cast<int>((args.rows + pairs - 1) / pairs * 2)};
  const auto bytes = [&](int tiles) {
    return static_cast<std::size_t>(a.shares) * (sizeof(double) * static_cast<std::size_t>(a.rows_of_block) +
                                                 static_cast<std::size_t>(a.streams * tiles * 2 * kTileBytes));
  };
  const bool two = bytes(2) <= most_shared_bytes(device), aligned = q4k_aligned(rows);
  while (!two && a.rows_of_block > 2 && bytes(1) > most_shared_bytes(device))
    a.rows_of_block = (a.rows_of_block + 2) / 4 * 2;
  const auto kernel = two ? (aligned ? &q4k_digits_kernel<true, 2> : &q4k_digits_kernel<false, 2>)
                          : (aligned ? &q4k_digits_kernel<true, 1> : &q4k_digits_kernel<false, 1>);
  launch_overlapping(kernel,
                     {dim3(blocks_for(a.rows, a.rows_of_block)), dim3(static_cast<unsigned>(32 * a.shares * a.streams)),
                      bytes(two ? 2 : 1)},
                     device, a);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE::by_digits
