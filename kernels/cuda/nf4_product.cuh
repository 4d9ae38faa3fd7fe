// Products with a matrix in NF4 codes, which are decoded on their way into registers or shared memory.
#pragma once

#include "kernels/cuda/nf4.cuh"
#include "kernels/cuda/register_tiled.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

namespace nf4_detail {

/// W's way into a tile of shared memory, as register_tiled_detail::Operand has that of floats. k_inner: sums run along rows of
/// W [n, k], tiles lie across them; else sums run over rows. A thread decodes four neighbours of a row from two bytes.
template <bool k_inner, Nf4Fault fault>
struct CodeOperand {
  const Nf4Matrix& w;
  const float* table;
  int row, column;  ///< of the next four, in W
  int tile_row, tile_column;

  __device__ CodeOperand(const Nf4Matrix& matrix, const float* codebook, int first) : w(matrix), table(codebook) {
    constexpr int kVectorsPerRow = (k_inner ? register_tiled_detail::kDepth : register_tiled_detail::kTile) / 4;
    tile_row = static_cast<int>(threadIdx.x) / kVectorsPerRow;
    tile_column = static_cast<int>(threadIdx.x) % kVectorsPerRow * 4;
    row = k_inner ? first + tile_row : tile_row;
    column = k_inner ? tile_column : first + tile_column;
  }
  /// The next four, zeros outside: what lies behind a row's end may be infinite.
  __device__ float4 load(int /*k_left*/) {
    const int j = row, p = column;
    if constexpr (k_inner) column += register_tiled_detail::kDepth;
    else row += register_tiled_detail::kDepth;
    if (j >= w.n || p >= w.k) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 v = decode4<fault>(w, table, j, p);
    if (p + 1 >= w.k) v.y = 0.0f;
    if (p + 2 >= w.k) v.z = 0.0f;
    if (p + 3 >= w.k) v.w = 0.0f;
    return v;
  }
  __device__ void store(float (*tile)[register_tiled_detail::kPitch], float4 v) const {
    if constexpr (k_inner) {
      tile[tile_column][tile_row] = v.x;
      tile[tile_column + 1][tile_row] = v.y;
      tile[tile_column + 2][tile_row] = v.z;
      tile[tile_column + 3][tile_row] = v.w;
    } else {
      *reinterpret_cast<float4*>(&tile[tile_row][tile_column]) = v;
    }
  }
};

/// p has m, k (terms of a sum), n (columns of C), A and C.
template <bool nt, bool aligned, Nf4Fault fault>
__global__ void __launch_bounds__(256, 2) nf4_tiled_kernel(Product p, Nf4Matrix w) {
  ASSAY_SHARED(float, table, [16]);
  load_table<fault>(table, w.table, static_cast<int>(threadIdx.x));
  const int row0 = static_cast<int>(blockIdx.y) * register_tiled_detail::kTile;
  const int column0 = static_cast<int>(blockIdx.x) * register_tiled_detail::kTile;
  register_tiled_detail::register_tiled_block<aligned, ProductFault::none>(
      p, register_tiled_detail::Operand<true, aligned>(p.a, p.a_ld, p.m, row0), CodeOperand<nt, fault>(w, table, column0));
}

/// One output a thread.
template <bool nt, Nf4Fault fault>
__global__ void __launch_bounds__(256) nf4_naive_kernel(Product p, Nf4Matrix w) {
  ASSAY_SHARED(float, table, [16]);
  load_table<fault>(table, w.table, static_cast<int>(threadIdx.y * 16 + threadIdx.x));
  const int i = static_cast<int>(blockIdx.y * 16 + threadIdx.y), j = static_cast<int>(blockIdx.x * 16 + threadIdx.x);
  if (i >= p.m || j >= p.n) return;
  const int k = fault == Nf4Fault::tail_of_k_dropped ? p.k / 64 * 64 : p.k;
  float sum = 0.0f;
  for (int q = 0; q < k; ++q) {
    sum += p.a[i * p.a_ld + q] * decode1<fault>(w, table, nt ? j : q, nt ? q : j);
  }
  p.c[i * p.c_ld + j] = sum;
}

/// Elements of x, and of a row of W, that a thread has: a quarter of a block, whose codes are eight bytes.
constexpr int kQuarter = 16;
struct alignas(8) QuarterBlock {
  unsigned word[2];
};

template <bool aligned>
__device__ inline QuarterBlock load_codes(const std::uint8_t* from) {
  if constexpr (aligned) return *reinterpret_cast<const QuarterBlock*>(from);
  const unsigned* const words = reinterpret_cast<const unsigned*>(from);
  return {{words[0], words[1]}};
}

/// The entry of the codebook for the four bits of `word` from `bit` on.
__device__ inline float entry(const float* table, unsigned word, int bit) {
  const unsigned offset = (bit >= 2 ? word >> (bit - 2) : word << (2 - bit)) & 60U;  // in bytes
  return *reinterpret_cast<const float*>(reinterpret_cast<const char*>(table) + offset);
}

/// A quarter of a block times its elements of x; one rounding a weight, one fused multiply-add a term.
template <Nf4Fault fault>
__device__ inline float dot_quarter(const QuarterBlock& codes, float scale, const float* table, const float (&x)[kQuarter]) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int bit = fault == Nf4Fault::nibbles_swapped ? 4 * e : 4 * (e ^ 1);
      sum += x[8 * i + e] * __fmul_rn(entry(table, codes.word[i], bit), scale);
    }
  return sum;
}

constexpr int kGemvRows = 16, kGemvAtOnce = 8, kGemvThreads = 512;

/// Sums over the lanes of eight values, that of v[lane / 4] in lane: lanes halve the values between them until each has one.
/// All 32 lanes take part.
template <Nf4Fault fault>
__device__ inline float eight_warp_sums(float (&v)[kGemvAtOnce], int lane) {
  constexpr unsigned kAllLanes = 0xffffffffU;
#pragma unroll
  for (int half = kGemvAtOnce / 2, step = 16; half > 0; half /= 2, step /= 2)
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const bool upper = lane & step;
      v[i] = (upper ? v[i + half] : v[i]) + __shfl_xor_sync(kAllLanes, upper ? v[i] : v[i + half], step);
    }
  float sum = v[0];
#pragma unroll
  for (int step = fault == Nf4Fault::half_the_lanes_lost ? 1 : 2; step > 0; step /= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, step);
  return sum;
}

/// y[i,j] for 16 rows j of W and one row i of X. Each thread keeps 16 elements of x in registers and multiplies them with a
/// quarter of a block of each row, eight rows at once; warps' sums meet in shared memory, where they are added in order.
template <bool aligned, Nf4Fault fault>
__global__ void __launch_bounds__(kGemvThreads, 2) nf4_gemv_kernel(Product p, Nf4Matrix w) {
  ASSAY_SHARED(float, table, [16]);
  ASSAY_SHARED(float, sums, [kGemvThreads / 32][kGemvRows]);
  load_table<fault>(table, w.table, static_cast<int>(threadIdx.x));
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int quarters = static_cast<int>(4 * nf4_blocks(w.k)), row0 = static_cast<int>(blockIdx.x) * kGemvRows;
  const int k = fault == Nf4Fault::tail_of_k_dropped ? p.k / 64 * 64 : p.k;
  const float* const x_row = p.a + blockIdx.y * p.a_ld;
  for (int pass = 0; pass < quarters; pass += static_cast<int>(blockDim.x)) {
    const int from = (pass + static_cast<int>(threadIdx.x)) * kQuarter;
    const bool whole = from + kQuarter <= k;
    float x[kQuarter];
    if (aligned && whole) {
#pragma unroll
      for (int i = 0; i < kQuarter / 4; ++i) {
        const float4 v = reinterpret_cast<const float4*>(x_row + from)[i];
        x[4 * i] = v.x, x[4 * i + 1] = v.y, x[4 * i + 2] = v.z, x[4 * i + 3] = v.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kQuarter; ++i) x[i] = from + i < k ? x_row[from + i] : 0.0f;
    }
    for (int r = 0; r < kGemvRows; r += kGemvAtOnce) {
      float own[kGemvAtOnce] = {};
      if (whole) {
        QuarterBlock codes[kGemvAtOnce];
        float scales[kGemvAtOnce];
#pragma unroll
        for (int i = 0; i < kGemvAtOnce; ++i) {
          const Index j = min(Index{row0} + r + i, w.n - 1);
          codes[i] = load_codes<aligned>(w.codes + j * w.codes_ld + from / 2);
          scales[i] = scale_of<fault>(w, j, from);
        }
#pragma unroll
        for (int i = 0; i < kGemvAtOnce; ++i) own[i] = dot_quarter<fault>(codes[i], scales[i], table, x);
      } else if (from < k) {  // what lies behind the row's end may be infinite: it is left out, not multiplied by 0
#pragma unroll
        for (int i = 0; i < kGemvAtOnce; ++i) {
          const Index j = min(Index{row0} + r + i, w.n - 1);
          for (int q = from; q < k; ++q) own[i] += x_row[q] * decode1<fault>(w, table, j, q);
        }
      }
      const float sum = eight_warp_sums<fault>(own, lane);
      float& to = sums[warp][r + lane / 4];
      if (lane % 4 == 0) to = pass == 0 || fault == Nf4Fault::pass_overwritten ? sum : to + sum;
    }
  }
  if constexpr (fault != Nf4Fault::no_barrier_between) __syncthreads();
  const int j = row0 + static_cast<int>(threadIdx.x);
  if (threadIdx.x >= kGemvRows || j >= p.n) return;
  float total = 0.0f;
  if (quarters > 0)
    for (int i = 0; i < static_cast<int>(blockDim.x) / 32; ++i) total += sums[i][threadIdx.x];
  p.c[blockIdx.y * p.c_ld + j] = total;
}

}  // namespace nf4_detail

template <bool nt, Nf4Fault fault = Nf4Fault::none>
void nf4_naive(const Product& p, const Nf4Matrix& w, Device& device) {
  launch(&nf4_detail::nf4_naive_kernel<nt, fault>, {dim3(blocks_for(p.n, 16), blocks_for(p.m, 16)), dim3(16, 16)}, device, p, w);
}

/// c[i,j] = sum_q a[i,q] w[j,q] (nt) or sum_q a[i,q] w[q,j], q ascending, one fused multiply-add a term, as register_tiled.
template <bool nt, Nf4Fault fault = Nf4Fault::none>
void nf4_tiled(const Product& p, const Nf4Matrix& w, Device& device) {
  constexpr int kTile = register_tiled_detail::kTile;
  const LaunchShape shape{dim3(blocks_for(p.n, kTile), blocks_for(p.m, kTile)), dim3(256)};
  const bool aligned = vectors(p.a, p.a_ld) && vectors(p.c, p.c_ld);
  launch(aligned ? &nf4_detail::nf4_tiled_kernel<nt, true, fault> : &nf4_detail::nf4_tiled_kernel<nt, false, fault>, shape, device,
         p, w);
}

/// y[i,j] = sum_p x[i,p] w[j,p], W read once for each row of X: for few of them. Passes over k are as equal as warps allow.
template <Nf4Fault fault = Nf4Fault::none>
void nf4_gemv(const Product& p, const Nf4Matrix& w, Device& device) {
  namespace detail = nf4_detail;
  const Index warps = (4 * nf4_blocks(w.k) + 31) / 32, most = detail::kGemvThreads / 32, passes = (warps + most - 1) / most;
  const auto threads = static_cast<unsigned>(32 * std::max<Index>(1, passes > 0 ? (warps + passes - 1) / passes : 1));
  const unsigned rows = fault == Nf4Fault::first_row_only ? 1 : static_cast<unsigned>(p.m);
  const bool aligned = vectors(p.a, p.a_ld) && reinterpret_cast<std::uintptr_t>(w.codes) % 8 == 0 && w.codes_ld % 8 == 0;
  launch(aligned ? &detail::nf4_gemv_kernel<true, fault> : &detail::nf4_gemv_kernel<false, fault>,
         {dim3(blocks_for(p.n, detail::kGemvRows), rows), dim3(threads)}, device, p, w);
}

/// Rows of X up to which W is read once for each of them rather than tiled.
inline constexpr Index kNf4FewRows = 4;

template <Nf4Fault fault = Nf4Fault::none>
void nf4_by_rows(const Product& p, const Nf4Matrix& w, Device& device) {
  if (p.m <= kNf4FewRows || fault == Nf4Fault::first_row_only) nf4_gemv<fault>(p, w, device);
  else nf4_tiled<true, fault>(p, w, device);
}

/// The product in the terms of product.cuh; B is not used. Args: Nf4MatmulNtArgs or Nf4MatmulArgs.
template <class Args>
Product nf4_product_of(const Args& args) {
  const auto call = [](const auto& a, const auto& c) {
    return Product{static_cast<int>(a.dim(0)), static_cast<int>(a.dim(1)), static_cast<int>(c.dim(1)), a.data(), nullptr, c.data(),
                   leading_dimension(a), 0, leading_dimension(c)};
  };
  if constexpr (requires { args.x; }) return call(args.x, args.y);
  else return call(args.dy, args.dx);
}

/// The registry's row; the caller adds what differs.
template <class Args, void (*run)(const Product&, const Nf4Matrix&, Device&)>
Kernel nf4_product_kernel(std::string_view op, std::string_view id, std::string_view summary) {
  return {.op = op,
          .id = id,
          .backend = kCudaBackend,
          .source = "kernels/cuda/nf4_product.cuh",
          .summary = summary,
          .run = [](const Call& call, Device& device) {
            const Args args = Args::unpack(call);
            const Product product = nf4_product_of(args);
            if (product.m > 0 && product.n > 0) run(product, nf4_matrix(args), device);
          }};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
