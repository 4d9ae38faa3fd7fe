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

/// Elements of x, and of a row of W, that a thread has: half a block, whose codes are 16 bytes.
constexpr int kHalf = 32;
constexpr int kGemvRows = 32, kAtOnce = 4, kGemvThreads = 448;

/// The two entries of the codebook that a byte stands for, the earlier element's first.
struct alignas(8) EntryPair {
  float first, second;
};
/// All 256 of them, 32 times: a copy for each lane, so that no two lanes of a warp meet in a bank.
constexpr std::size_t kPairBytes = 256 * 32 * sizeof(EntryPair);
/// Lanes of a warp among which a row's sum is spread.
constexpr int kLanesOfRow = 32 / kAtOnce;
/// Half of a pass's elements of x, and after them a sum of every row from each of those lanes.
constexpr std::size_t kStageBytes = kGemvThreads * kHalf / 2 * sizeof(float);
static_assert(kGemvRows * (kGemvThreads / 32) * kLanesOfRow * sizeof(float) <= kStageBytes);

/// Whole warps; each lane holds an entry of the codebook.
template <Nf4Fault fault>
__device__ inline void make_pairs(EntryPair* pairs, const float* table) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warps = static_cast<int>(blockDim.x) / 32;
  const float entry = table[lane % 16];
  for (int byte = static_cast<int>(threadIdx.x) / 32; byte < 256; byte += warps) {
    const float high = __shfl_sync(0xffffffffU, entry, byte / 16), low = __shfl_sync(0xffffffffU, entry, byte % 16);
    pairs[32 * byte + lane] = fault == Nf4Fault::nibbles_swapped ? EntryPair{low, high} : EntryPair{high, low};
  }
}

/// A thread's 32 elements of x, of `k` from `first` on for all threads, zeros behind. The block reads them coalesced and passes them
/// through `staged`, half of them at a time, where eight lanes that read together meet different banks.
template <bool aligned>
__device__ inline void load_x(const float* row, int first, int k, float4* staged, float (&x)[kHalf]) {
  constexpr int kRounds = 2, kEach = kHalf / 4 / kRounds;
  const int threads = static_cast<int>(blockDim.x), round_size = threads * kEach;
  const auto place = [](int f) { return f ^ (f / 8 % 8); };
  float4 mine[kRounds][kEach];
#pragma unroll
  for (int round = 0; round < kRounds; ++round)
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int f = round * round_size + i * threads + static_cast<int>(threadIdx.x), at = first + 4 * f;
      if (aligned && at + 4 <= k) {
        mine[round][i] = *reinterpret_cast<const float4*>(row + at);
      } else {
        const auto element = [&](int n) { return at + n < k ? row[at + n] : 0.0f; };
        mine[round][i] = make_float4(element(0), element(1), element(2), element(3));
      }
    }
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kEach; ++i) staged[place(i * threads + static_cast<int>(threadIdx.x))] = mine[round][i];
    __syncthreads();
    const int f = static_cast<int>(threadIdx.x) * (kHalf / 4) - round * round_size;
    if (f >= 0 && f < round_size) {
#pragma unroll
      for (int i = 0; i < kHalf / 4; ++i) {
        const float4 v = staged[place(f + i)];
        x[4 * i] = v.x, x[4 * i + 1] = v.y, x[4 * i + 2] = v.z, x[4 * i + 3] = v.w;
      }
    }
  }
}

template <bool aligned>
__device__ inline uint4 load_codes(const std::uint8_t* from) {
  if constexpr (aligned) return *reinterpret_cast<const uint4*>(from);
  const unsigned* const words = reinterpret_cast<const unsigned*>(from);
  return {words[0], words[1], words[2], words[3]};
}

/// Half a block times its elements of x: entries first, then their scale. `pairs`: as bytes; `copy`: 8 times the lane's number. The byte
/// of codes, 256 times, and the copy make an offset in one instruction.
__device__ inline float dot_half(const uint4& codes, float scale, const char* pairs, unsigned copy, const float (&x)[kHalf]) {
  const unsigned words[4] = {codes.x, codes.y, codes.z, codes.w};
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const unsigned offset = __byte_perm(words[i], copy, 0x5504U + (static_cast<unsigned>(n) << 4));
      const EntryPair pair = *reinterpret_cast<const EntryPair*>(pairs + offset);
      sum += x[8 * i + 2 * n] * pair.first;
      sum += x[8 * i + 2 * n + 1] * pair.second;
    }
  return sum * scale;
}

/// Codes and scales of half a block of a few rows.
struct Halves {
  uint4 codes[kAtOnce];
  float scales[kAtOnce];
};

/// Goes down the rows of W at one half block; from the last row on it stays there.
template <bool aligned, Nf4Fault fault>
class HalfReader {
 public:
  __device__ HalfReader(const Nf4Matrix& w, int row, int from)
      : w_(w), row_(min(row, static_cast<int>(w.n) - 1)), from_(from), codes_(w.codes + row_ * w.codes_ld + from / 2),
        scale_(w.absmax + row_ * w.absmax_ld + from / kNf4Block) {}
  __device__ void next(Halves& to) {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      to.codes[i] = load_codes<aligned>(codes_);
      to.scales[i] = fault == Nf4Fault::none ? nf4_scale(*scale_) : scale_of<fault>(w_, row_, from_);
      if (row_ + 1 < w_.n) codes_ += w_.codes_ld, scale_ += w_.absmax_ld, ++row_;
    }
  }

 private:
  const Nf4Matrix& w_;
  int row_, from_;
  const std::uint8_t* codes_;
  const float* scale_;
};

/// Adds the sums of rows that the lanes left in `sums`, [kGemvRows][slots], in order, to those of the passes before.
template <Nf4Fault fault>
__device__ inline void add_sums(const float* sums, int slots, bool first_pass, float* totals) {
  constexpr unsigned kAllLanes = 0xffffffffU;
  const int warps = static_cast<int>(blockDim.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int r = static_cast<int>(threadIdx.x) / 32; r < kGemvRows; r += warps) {
    float sum = 0.0f;
    for (int slot = lane; slot < slots; slot += 32) sum += sums[r * slots + slot];
#pragma unroll
    for (int step = fault == Nf4Fault::half_the_lanes_lost ? 8 : 16; step > 0; step /= 2)
      sum += __shfl_xor_sync(kAllLanes, sum, step);
    if (lane == 0) totals[r] = first_pass || fault == Nf4Fault::pass_overwritten ? sum : totals[r] + sum;
  }
}

/// Sums over lanes of a few values, that of v[lane / kLanesOfRow] spread over kLanesOfRow lanes: lanes halve the values between
/// them until each has one. All 32 lanes take part.
__device__ inline float spread(float (&v)[kAtOnce], int lane) {
#pragma unroll
  for (int half = kAtOnce / 2, step = 16; half > 0; half /= 2, step /= 2)
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const bool upper = lane & step;
      v[i] = (upper ? v[i + half] : v[i]) + __shfl_xor_sync(0xffffffffU, upper ? v[i] : v[i + half], step);
    }
  return v[0];
}

/// y[i,j] for 32 rows j of W and one row i of X. A thread keeps 32 elements of x in registers and multiplies them with half a block
/// of each row, four rows at once, while the codes of the next four are on their way; the first are asked for before all else.
/// Lanes leave their sums in shared memory, where they are added in order.
template <bool aligned, Nf4Fault fault>
__global__ void __launch_bounds__(kGemvThreads, 1) nf4_gemv_kernel(Product p, Nf4Matrix w) {
  ASSAY_SHARED(float, table, [16]);
  ASSAY_SHARED(float, totals, [kGemvRows]);
  EntryPair* const pairs = dynamic_shared<EntryPair>();
  float* const stage = reinterpret_cast<float*>(pairs + kPairBytes / sizeof(EntryPair));
  const int threads = static_cast<int>(blockDim.x), t = static_cast<int>(threadIdx.x);
  const int lane = t % 32, slots = threads / 32 * kLanesOfRow, row0 = static_cast<int>(blockIdx.x) * kGemvRows;
  const int k = fault == Nf4Fault::tail_of_k_dropped ? p.k / 64 * 64 : p.k;
  const float* const x_row = p.a + blockIdx.y * p.a_ld;
  for (int pass = 0; pass == 0 || pass < k; pass += threads * kHalf) {
    const int from = pass + t * kHalf;
    const bool whole = from + kHalf <= k;
    HalfReader<aligned, fault> reader(w, row0, whole ? from : 0);
    Halves now{}, next{};
    if (whole) reader.next(now);
    if (pass == 0) {
      load_table(table, w.table, t);
      make_pairs<fault>(pairs, table);
    }
    float x[kHalf] = {};
    load_x<aligned>(x_row, pass, k, reinterpret_cast<float4*>(stage), x);
    if constexpr (fault != Nf4Fault::no_barrier) __syncthreads();
    for (int r = 0; r < kGemvRows; r += kAtOnce) {
      float own[kAtOnce] = {};
      if (whole) {
        if (r + kAtOnce < kGemvRows) reader.next(next);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          own[i] = dot_half(now.codes[i], now.scales[i], reinterpret_cast<const char*>(pairs), static_cast<unsigned>(8 * lane), x);
        now = next;
      } else if (from < k) {  // what lies behind the row's end may be infinite: it is left out, not multiplied by 0
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const Index j = min(Index{row0} + r + i, w.n - 1);
          for (int q = from; q < k; ++q) own[i] += x_row[q] * decode1<fault>(w, table, j, q);
        }
      }
      const float sum = spread(own, lane);
      stage[(r + lane / kLanesOfRow) * slots + t / 32 * kLanesOfRow + lane % kLanesOfRow] = sum;
    }
    if constexpr (fault != Nf4Fault::no_barrier_between) __syncthreads();
    add_sums<fault>(stage, slots, pass == 0, totals);
  }
  __syncthreads();
  if (t < kGemvRows && row0 + t < p.n) p.c[blockIdx.y * p.c_ld + row0 + t] = totals[t];
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
  const Index warps = std::max<Index>(1, (2 * nf4_blocks(w.k) + 31) / 32), most = detail::kGemvThreads / 32;
  const Index passes = (warps + most - 1) / most;
  const auto threads = static_cast<unsigned>(32 * ((warps + passes - 1) / passes));
  const unsigned rows = fault == Nf4Fault::first_row_only ? 1 : static_cast<unsigned>(p.m);
  const bool aligned = vectors(p.a, p.a_ld) && reinterpret_cast<std::uintptr_t>(w.codes) % 16 == 0 && w.codes_ld % 16 == 0;
  launch(aligned ? &detail::nf4_gemv_kernel<true, fault> : &detail::nf4_gemv_kernel<false, fault>,
         {dim3(blocks_for(p.n, detail::kGemvRows), rows), dim3(threads), detail::kPairBytes + detail::kStageBytes}, device, p, w);
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
