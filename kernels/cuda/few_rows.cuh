// Products of at most 16 rows with the rows of a matrix, which is read once: tensor cores, with operands in the order
// in which lanes copy them. Float32 takes three products of TF32.
#pragma once

#include <cuda_pipeline.h>

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/product.cuh"
#include "kernels/cuda/wgmma_product.cuh"
#include "runtime/limits.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

inline constexpr std::string_view kFewRows =
    "16-bit tensor cores (mma.sync m16n8k16) for at most 16 rows, blocks of 16, 32 or 64 columns, eight warps that "
    "share the terms, rings of asynchronous copies";
inline constexpr std::string_view kFewRowsTf32x3 = "the same with three products of TF32 for each of float32";

namespace few_rows_detail {

/// Rows of C; words of 16 bytes in a lane's ring, 96 KiB a block.
constexpr int kRows = 16, kWarps = 8, kThreads = 32 * kWarps, kRingWords = 24;

/// Elements of a word, neighbours of a row.
template <class S>
constexpr int kOfWord = 16 / static_cast<int>(sizeof(S));
struct alignas(16) Word {
  unsigned parts[4];
};

/// Loads a word, of whose elements the first `inside` are in the row; zeros behind these.
template <class S>
__device__ inline Word load_some(const S* from, int inside) {
  Word held;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(S) == 4) {
      held.parts[i] = i < inside ? __float_as_uint(from[i]) : 0U;
    } else {
      const unsigned low = 2 * i < inside ? from[2 * i].bits : 0U,
                     high = 2 * i + 1 < inside ? from[2 * i + 1].bits : 0U;
      held.parts[i] = low | high << 16;
    }
  }
  return held;
}

/// Returns a part of a word as tensor cores of S take it.
template <class S>
__device__ inline auto operand(unsigned part) {
  if constexpr (sizeof(S) == 4) return __uint_as_float(part);
  else return part;
}

/// A block has 8 `tiles` columns. Of the terms of a round a warp takes four words of each row, and lane l one of them,
/// of rows l / 4 and l / 4 + 8 of A and of row l / 4 of each eight rows of B. The two steps of mma take half a word
/// each: sums run over the same terms in another order. So a lane multiplies what it copied itself, and no copy needs a
/// barrier. The order of a sum depends on k alone.
template <int tiles, class S, class Epilogue>
__global__ void __launch_bounds__(kThreads, 2) few_rows_kernel(ProductOf<S> p, bool aligned, Epilogue epilogue) {
  constexpr int kColumns = 8 * tiles, kWords = 2 + tiles, kStages = kRingWords / kWords, kAhead = kStages - 1;
  // With this pad the stores of half a warp access 32 different banks.
  constexpr int kPitch = kColumns + 8, kWarpWords = 32 * kStages * kWords, kWarpFloats = 4 * kWarpWords;
  constexpr int kTerms = 4 * kOfWord<S>, kBlockTerms = kWarps * kTerms;  // of a warp and of the block in a round
  static_assert(kStages > 1 && kRows * kPitch <= kWarpFloats, "the sums of a warp replace its ring");
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int column0 = static_cast<int>(blockIdx.x) * kColumns, first = warp * kTerms + lane % 4 * kOfWord<S>;
  const int rounds = (p.k + kBlockTerms - 1) / kBlockTerms;
  Word* const ring = dynamic_shared<Word>() + warp * kWarpWords + lane;
  const auto word = [&](int round, int w) { return ring + (round % kStages * kWords + w) * 32; };
  // Rows of A past the last are zeros, which are not read. Rows of B past the last are the last once more. What either
  // gives is not stored.
  const auto present = [&](int w) { return w >= 2 || 8 * w + lane / 4 < p.m; };
  const auto row_of = [&](int w) {
    return first + (w < 2 ? p.a + min(8 * w + lane / 4, p.m - 1) * p.a_ld
                          : p.b + min(column0 + 8 * (w - 2) + lane / 4, p.n - 1) * p.b_ld);
  };
  const S* rows[kWords];
#pragma unroll
  for (int w = 0; w < kWords; ++w) rows[w] = row_of(w);
  // Every lane commits one batch a round, empty past the last round, so that the count of batches to wait for is
  // constant.
  const auto begin_copy = [&](int round) {
    const int from = round * kBlockTerms, inside = p.k - first - from;
    if (round < rounds && aligned && inside >= kOfWord<S>)
#pragma unroll
      for (int w = 0; w < kWords; ++w)
        __pipeline_memcpy_async(word(round, w), rows[w] + from, sizeof(Word), present(w) ? 0 : sizeof(Word));
    else if (round < rounds)
#pragma unroll 1
      for (int w = 0; w < kWords; ++w) *word(round, w) = load_some(row_of(w) + from, present(w) ? inside : 0);
    __pipeline_commit();
  };

  let_next_begin();
#pragma unroll
  for (int w = 2; w < kWords; ++w)
    for (int round = 0; round < kAhead && first + round * kBlockTerms < p.k; ++round)
      prefetch(rows[w] + round * kBlockTerms);
  await_previous();
  float sums[tiles][4] = {};
#pragma unroll 1
  for (int round = 0; round < kAhead; ++round) begin_copy(round);
  for (int round = 0; round < rounds; ++round) {
    __pipeline_wait_prior(kAhead - 1);
    begin_copy(round + kAhead);  // over the words of the previous round
    const Word upper = *word(round, 0), lower = *word(round, 1);
    const auto left = [&](int i) -> typename TensorCore<S>::Left {
      return {{operand<S>(upper.parts[i]), operand<S>(lower.parts[i]), operand<S>(upper.parts[i + 1]),
               operand<S>(lower.parts[i + 1])}};
    };
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
      const Word column = *word(round, 2 + j);
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const decltype(operand<S>(0U)) right[2] = {operand<S>(column.parts[i]), operand<S>(column.parts[i + 1])};
        TensorCore<S>::multiply(sums[j], left(i), right);
      }
    }
  }

  float* const parts = dynamic_shared<float>();  // [kWarps][kRows][kPitch], warps kWarpFloats apart
  __syncwarp();                                  // all lanes have read the ring
#pragma unroll
  for (int j = 0; j < tiles; ++j)
#pragma unroll
    for (int e = 0; e < 4; e += 2)
      *reinterpret_cast<float2*>(parts + warp * kWarpFloats + (lane / 4 + 4 * e) * kPitch + 8 * j + lane % 4 * 2) =
          make_float2(sums[j][e], sums[j][e + 1]);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += kThreads) {
    const int row = i / kColumns, column = column0 + i % kColumns;
    if (row >= p.m || column >= p.n) continue;
    const float* const part = parts + row * kPitch + i % kColumns;
    float sum = part[0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) sum += part[w * kWarpFloats];
    if constexpr (sizeof(S) == 4)
      if (!(sum == sum)) sum = infinity_or_nan(p, row, column);
    store(p.c[row * p.c_ld + column], epilogue(sum, row, column));
  }
}

template <int tiles, class S, class Epilogue>
void launch_blocks(const ProductOf<S>& p, const Epilogue& epilogue, Device& device) {
  constexpr int kWords = kRingWords / (2 + tiles) * (2 + tiles);
  const bool aligned = rows_start_at(p.a, p.a_ld, 16) && rows_start_at(p.b, p.b_ld, 16);
  launch_overlapping(&few_rows_kernel<tiles, S, Epilogue>,
                     {dim3(blocks_for(p.n, 8 * tiles)), dim3(kThreads), kThreads * kWords * sizeof(Word)}, device, p,
                     aligned, epilogue);
}

inline std::optional<std::string> refuse_rows(Index m) {
  if (m <= kRows) return std::nullopt;
  return "a kernel for at most " + std::to_string(kRows) + " rows takes no " + std::to_string(m);
}

}  // namespace few_rows_detail

/// c[i,j] = epilogue(sum_p a[i,p] * b[j,p]), rounded once to S, for A [m,k] of at most 16 rows and B [n,k]. Tensor
/// cores sum eight shares of the terms (mma_arithmetic), which are added in order; error as of mma_product_with. Reads
/// B once, and A once a block of 16, 32 or 64 columns: the widest that occupies the multiprocessors; the bits are the
/// same. Throws Unavailable for more rows, and below compute capability 8.0. Source: PTX ISA, "mma.m16n8k16" and
/// "cp.async".
template <class S, class Epilogue>
void few_rows_with(const ProductOf<S>& p, const Epilogue& epilogue, Device& device) {
  namespace detail = few_rows_detail;
  need_mma("few_rows", device);
  if (const auto why = detail::refuse_rows(p.m)) throw Unavailable("few_rows", *why);
  const unsigned multiprocessors = wgmma_product_detail::multiprocessors();
  // Blocks of 64 columns have few bytes in flight: most multiprocessors need two. One of 32 suffices for two in three.
  if (2 * blocks_for(p.n, 64) >= 3 * multiprocessors) detail::launch_blocks<8>(p, epilogue, device);
  else if (3 * blocks_for(p.n, 32) >= 2 * multiprocessors) detail::launch_blocks<4>(p, epilogue, device);
  else detail::launch_blocks<2>(p, epilogue, device);
}

template <class S>
void few_rows(const ProductOf<S>& p, Device& device) {
  few_rows_with(p, Plain{}, device);
}

/// Completes the registry entry of a kernel of this file, whose first dim is m: it comes before those for any m.
template <class S>
Kernel for_few_rows(Kernel kernel) {
  static const Limits limits = [] {
    Limits made;
    made.refuse = [](std::span<const Index> dims, std::span<const double>) {
      return few_rows_detail::refuse_rows(dims[0]);
    };
    made.repair = [](std::vector<Index>& dims, std::vector<double>&, std::uint64_t seed) {
      if (dims[0] > few_rows_detail::kRows) dims[0] = 1 + static_cast<Index>(seed % few_rows_detail::kRows);
      return true;
    };
    return made;
  }();
  kernel.arithmetic = mma_arithmetic<S>();
  kernel.refuse = [](const Call& call) { return few_rows_detail::refuse_rows(call.dims[0]); };
  kernel.limits = &limits;
  kernel.priority = sizeof(S) == 2 ? 3 : 0;  // who does not name a kernel gets no TF32
  return kernel;
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
