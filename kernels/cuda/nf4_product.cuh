// Products with a matrix in NF4 codes, decoded on the way to registers or shared memory.
#pragma once

#include "kernels/cuda/nf4.cuh"
#include "kernels/cuda/register_tiled.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

namespace nf4_detail {

/// Moves W into a tile of shared memory, as register_tiled_detail::Operand moves floats. k_inner: sums run along rows
/// of W [n, k] and tiles across them; else sums run across rows. A thread decodes four neighbours of a row from two
/// bytes.
template <bool k_inner>
struct CodeOperand {
  const Nf4Matrix& w;
  const float* table;
  int row, column;  ///< position in W of the next four
  int tile_row, tile_column;

  __device__ CodeOperand(const Nf4Matrix& matrix, const float* codebook, int first) : w(matrix), table(codebook) {
    constexpr int kVectorsPerRow = (k_inner ? register_tiled_detail::kDepth : register_tiled_detail::kTile) / 4;
    tile_row = static_cast<int>(threadIdx.x) / kVectorsPerRow;
    tile_column = static_cast<int>(threadIdx.x) % kVectorsPerRow * 4;
    row = k_inner ? first + tile_row : tile_row;
    column = k_inner ? tile_column : first + tile_column;
  }
  /// Returns the next four weights, with zeros outside: codes past a row's end may decode to infinities.
  __device__ float4 load(int /*k_left*/) {
    const int j = row, p = column;
    if constexpr (k_inner) column += register_tiled_detail::kDepth;
    else row += register_tiled_detail::kDepth;
    if (j >= w.n || p >= w.k) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 v = decode4(w, table, j, p);
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
template <bool nt, bool aligned>
__global__ void __launch_bounds__(256, 2) nf4_tiled_kernel(Product p, Nf4Matrix w) {
  ASSAY_SHARED(float, table, [16]);
  load_table(table, w.table, static_cast<int>(threadIdx.x));
  const int row0 = static_cast<int>(blockIdx.y) * register_tiled_detail::kTile;
  const int column0 = static_cast<int>(blockIdx.x) * register_tiled_detail::kTile;
  register_tiled_detail::register_tiled_block<aligned>(
      p, register_tiled_detail::Operand<true, aligned>(p.a, p.a_ld, p.m, row0), CodeOperand<nt>(w, table, column0));
}

/// One output per thread.
template <bool nt>
__global__ void __launch_bounds__(256) nf4_naive_kernel(Product p, Nf4Matrix w) {
  ASSAY_SHARED(float, table, [16]);
  load_table(table, w.table, static_cast<int>(threadIdx.y * 16 + threadIdx.x));
  const int i = static_cast<int>(blockIdx.y * 16 + threadIdx.y), j = static_cast<int>(blockIdx.x * 16 + threadIdx.x);
  if (i >= p.m || j >= p.n) return;
  float sum = 0.0f;
  for (int q = 0; q < p.k; ++q) sum += p.a[i * p.a_ld + q] * decode1(w, table, nt ? j : q, nt ? q : j);
  p.c[i * p.c_ld + j] = sum;
}

/// Elements of x, and of a row of W, per thread: half a block, whose codes are 16 bytes.
constexpr int kHalf = 32;
constexpr int kGemvRows = 32, kLoadsInFlight = 4, kGemvThreads = 448;

/// The two codebook entries of a byte, the earlier element's first.
struct alignas(8) EntryPair {
  float first, second;
};
/// All 256 pairs, 32 times: each lane reads its own copy, so that the lanes of a warp never conflict in a bank.
constexpr std::size_t kPairBytes = 256 * 32 * sizeof(EntryPair);
/// The elements of x of one pass.
constexpr std::size_t kStageBytes = kGemvThreads * kHalf * sizeof(float);

/// Fills the table of pairs. Whole warps; each writes the pairs of one earlier element with four others at a time.
__device__ inline void make_pairs(EntryPair* pairs, const float* table) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warps = static_cast<int>(blockDim.x) / 32;
  for (int four = static_cast<int>(threadIdx.x) / 32; four < 64; four += warps) {
    const float high = table[four / 4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float low = table[four % 4 * 4 + i];
      pairs[(4 * four + i) * 32 + lane] = EntryPair{high, low};
    }
  }
}

/// Loads a thread's 32 elements of x, with zeros past its end. The warp reads its elements, from `first` on, coalesced,
/// and redistributes them through `staged`, where eight lanes that read together access different banks.
template <bool aligned>
__device__ inline void load_x(const float* row, int first, int k, float4* staged, int lane, float (&x)[kHalf]) {
  constexpr int kEach = kHalf / 4;
  const auto place = [](int f) { return f ^ (f / 8 % 8); };
  float4 read[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int at = first + 4 * (i * 32 + lane);
    if (aligned && at + 4 <= k) {
      read[i] = *reinterpret_cast<const float4*>(row + at);
    } else {
      const auto element = [&](int n) { return at + n < k ? row[at + n] : 0.0f; };
      read[i] = make_float4(element(0), element(1), element(2), element(3));
    }
  }
  __syncwarp();  // all lanes have taken their elements of the previous pass
#pragma unroll
  for (int i = 0; i < kEach; ++i) staged[place(i * 32 + lane)] = read[i];
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const float4 v = staged[place(lane * kEach + i)];
    x[4 * i] = v.x, x[4 * i + 1] = v.y, x[4 * i + 2] = v.z, x[4 * i + 3] = v.w;
  }
}

template <bool aligned>
__device__ inline uint4 load_codes(const std::uint8_t* from) {
  if constexpr (aligned) return *reinterpret_cast<const uint4*>(from);
  const unsigned* const words = reinterpret_cast<const unsigned*>(from);
  return {words[0], words[1], words[2], words[3]};
}

/// Multiplies half a block by its elements of x: entries first, then their scale. `pairs`: the table as bytes; `copy`:
/// 8 times the lane's number. One instruction forms the offset 256 byte + copy.
__device__ inline float dot_half(const uint4& codes, float scale, const char* pairs, unsigned copy,
                                 const float (&x)[kHalf]) {
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

/// Returns true if offsets into W fit 32 bits, as nf4_gemv needs.
inline bool has_short_offsets(const Nf4Matrix& w) {
  constexpr Index kLimit = Index{1} << 32;
  return w.n * w.codes_ld < kLimit && w.n * w.absmax_ld < kLimit;
}

/// Half a block of each of a few rows.
struct Halves {
  uint4 codes[kLoadsInFlight];
  float absmax[kLoadsInFlight];

  /// Loads rows from `row` on; the last row of W replaces rows past the end.
  template <bool aligned>
  __device__ void load(const Nf4Matrix& w, int row, int from) {
#pragma unroll
    for (int i = 0; i < kLoadsInFlight; ++i) {
      const unsigned j = static_cast<unsigned>(min(row + i, static_cast<int>(w.n) - 1)),
                     at = static_cast<unsigned>(from);
      codes[i] = load_codes<aligned>(w.codes + (j * static_cast<unsigned>(w.codes_ld) + at / 2));
      absmax[i] = w.absmax[j * static_cast<unsigned>(w.absmax_ld) + at / static_cast<unsigned>(kNf4Block)];
    }
  }
};

/// Sums a few values over lanes; lane l gets the sum of v[l / (32 / kValues)]: lanes halve the values between them
/// until each has one. All 32 lanes take part.
template <int kValues>
__device__ inline float warp_sums(float (&v)[kValues], int lane) {
  constexpr unsigned kAllLanes = 0xffffffffU;
#pragma unroll
  for (int half = kValues / 2, step = 16; half > 0; half /= 2, step /= 2)
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const bool upper = lane & step;
      v[i] = (upper ? v[i + half] : v[i]) + __shfl_xor_sync(kAllLanes, upper ? v[i] : v[i + half], step);
    }
  float sum = v[0];
#pragma unroll
  for (int step = 16 / kValues; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
  return sum;
}

/// y[i,j] for 32 rows j of W and one row i of X, of 32 elements or more. A thread keeps 32 elements of x in registers
/// and multiplies them by half a block of each row, four rows at once, while the codes of the next four are in flight.
/// The sums of warps go to shared memory and are added in order. The table is built while the previous kernel of the
/// stream ends.
template <bool aligned, bool one_pass>
__global__ void __launch_bounds__(kGemvThreads, 1) nf4_gemv_kernel(Product p, Nf4Matrix w) {
  ASSAY_SHARED(float, table, [16]);
  ASSAY_SHARED(float, sums, [kGemvThreads / 32][kGemvRows]);
  EntryPair* const pairs = dynamic_shared<EntryPair>();
  const int threads = static_cast<int>(blockDim.x), t = static_cast<int>(threadIdx.x), lane = t % 32;
  float4* const stage = reinterpret_cast<float4*>(pairs + kPairBytes / sizeof(EntryPair)) + t / 32 * (32 * kHalf / 4);
  const int row0 = static_cast<int>(blockIdx.x) * kGemvRows;
  const float* const x_row = p.a + blockIdx.y * p.a_ld;
  let_next_begin();
  load_table(table, w.table, t);
  make_pairs(pairs, table);
  await_previous();
  const auto pass_over = [&](int pass) {
    const int from = pass + t * kHalf;
    const bool within = from < p.k;
    const int first = within ? from : 0;
    Halves even, odd;
    even.load<aligned>(w, row0, first);
    odd.load<aligned>(w, row0 + kLoadsInFlight, first);
    float x[kHalf];
    load_x<aligned>(x_row, from - lane * kHalf, p.k, stage, lane, x);
    if (pass == 0) __syncthreads();  // the pairs are ready
    // Past k, x is 0 and codes decode to finite entries. A scale may be infinite, but counts only where its block has
    // elements.
    const auto multiply = [&](const Halves& halves, float* own) {
#pragma unroll
      for (int i = 0; i < kLoadsInFlight; ++i) {
        const float scale = nf4_scale(halves.absmax[i]);
        const float dot =
            dot_half(halves.codes[i], scale, reinterpret_cast<const char*>(pairs), static_cast<unsigned>(8 * lane), x);
        own[i] = within ? dot : 0.0f;
      }
    };
    constexpr int kRows = 2 * kLoadsInFlight;  // per iteration
#pragma unroll 1
    for (int r = 0; r < kGemvRows; r += kRows) {
      const bool more = r + kRows < kGemvRows;
      float own[kRows];
      multiply(even, own);
      if (more) even.load<aligned>(w, row0 + r + kRows, first);
      multiply(odd, own + kLoadsInFlight);
      if (more) odd.load<aligned>(w, row0 + r + kRows + kLoadsInFlight, first);
      const float sum = warp_sums(own, lane);
      constexpr int kLanesOfRow = 32 / kRows;
      float& to = sums[t / 32][r + lane / kLanesOfRow];
      if (lane % kLanesOfRow == 0) to = pass == 0 ? sum : to + sum;
    }
  };
  if constexpr (one_pass) {
    pass_over(0);
  } else {
    for (int pass = 0; pass < p.k; pass += threads * kHalf) pass_over(pass);
  }
  __syncthreads();
  if (t >= kGemvRows || row0 + t >= p.n) return;
  float total = 0.0f;
#pragma unroll 4
  for (int i = 0; i < threads / 32; ++i) total += sums[i][t];
  p.c[blockIdx.y * p.c_ld + row0 + t] = total;
}

}  // namespace nf4_detail

template <bool nt>
void nf4_naive(const Product& p, const Nf4Matrix& w, Device& device) {
  launch(&nf4_detail::nf4_naive_kernel<nt>, {dim3(blocks_for(p.n, 16), blocks_for(p.m, 16)), dim3(16, 16)}, device, p,
         w);
}

/// c[i,j] = sum_q a[i,q] w[j,q] (nt) or sum_q a[i,q] w[q,j], q ascending, one fused multiply-add a term, as
/// register_tiled.
template <bool nt>
void nf4_tiled(const Product& p, const Nf4Matrix& w, Device& device) {
  constexpr int kTile = register_tiled_detail::kTile;
  const LaunchShape shape{dim3(blocks_for(p.n, kTile), blocks_for(p.m, kTile)), dim3(256)};
  const bool aligned = vectors(p.a, p.a_ld) && vectors(p.c, p.c_ld);
  launch(aligned ? &nf4_detail::nf4_tiled_kernel<nt, true> : &nf4_detail::nf4_tiled_kernel<nt, false>, shape, device, p,
         w);
}

/// y[i,j] = sum_p x[i,p] w[j,p]; reads W once per row of X, hence for few rows. Passes over k are as equal as warps
/// allow.
inline void nf4_gemv(const Product& p, const Nf4Matrix& w, Device& device) {
  namespace detail = nf4_detail;
  constexpr std::size_t kShared = detail::kPairBytes + detail::kStageBytes;
  if (p.k < detail::kHalf || !detail::has_short_offsets(w) || most_shared_bytes(device) < kShared)
    return nf4_naive<true>(p, w, device);
  const Index warps = (2 * nf4_blocks(w.k) + 31) / 32, most = detail::kGemvThreads / 32;
  const Index passes = (warps + most - 1) / most;
  const auto threads = static_cast<unsigned>(32 * ((warps + passes - 1) / passes));
  const auto rows = static_cast<unsigned>(p.m);
  const bool aligned =
      vectors(p.a, p.a_ld) && reinterpret_cast<std::uintptr_t>(w.codes) % 16 == 0 && w.codes_ld % 16 == 0;
  const auto kernel = passes == 1
                          ? (aligned ? &detail::nf4_gemv_kernel<true, true> : &detail::nf4_gemv_kernel<false, true>)
                          : (aligned ? &detail::nf4_gemv_kernel<true, false> : &detail::nf4_gemv_kernel<false, false>);
  launch_overlapping(kernel, {dim3(blocks_for(p.n, detail::kGemvRows), rows), dim3(threads), kShared}, device, p, w);
}

/// Largest number of rows of X for which W is read once per row rather than tiled.
inline constexpr Index kNf4FewRows = 4;

inline void nf4_by_rows(const Product& p, const Nf4Matrix& w, Device& device) {
  if (p.m <= kNf4FewRows) nf4_gemv(p, w, device);
  else nf4_tiled<true>(p, w, device);
}

/// Describes the product as in product.cuh; B is not used. Args: Nf4MatmulNtArgs or Nf4MatmulArgs.
template <class Args>
Product nf4_product_of(const Args& args) {
  const auto call = [](const auto& a, const auto& c) {
    return Product{static_cast<int>(a.dim(0)),
                   static_cast<int>(a.dim(1)),
                   static_cast<int>(c.dim(1)),
                   a.data(),
                   nullptr,
                   c.data(),
                   leading_dimension(a),
                   0,
                   leading_dimension(c)};
  };
  if constexpr (requires { args.x; }) return call(args.x, args.y);
  else return call(args.dy, args.dx);
}

/// Returns the registry entry; a block computes `rows` rows of outputs, and the caller adds the differences.
template <class Args, void (*run)(const Product&, const Nf4Matrix&, Device&), Index rows = 16>
Kernel nf4_product_kernel(std::string_view id, std::string_view summary) {
  return {.id = id,
          .summary = summary,
          .run =
              [](const Call& call, Device& device) {
                const Args args = Args::unpack(call);
                const Product product = nf4_product_of(args);
                if (product.m > 0 && product.n > 0) run(product, nf4_matrix(args), device);
              },
          .refuse = [](const Call& call) { return refuse_grid("m", Args::unpack(call).m, rows); }};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
