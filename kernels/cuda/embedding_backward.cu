// The gradient of rows of a table by index: tokens are sorted by id, then rows of the table sum their own.
#include "kernels/cuda/rows.cuh"
#include "ops/embedding_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding_backward {
namespace {

/// dtable[v,j] = sum over t with ids[t] = v of dy[t,j]: tokens in order, those of whole pieces by pieces. Elements are at
/// row * ld + j; offsets take 64 bits.
template <class S>
struct ScatterSum {
  Index tokens, vocabulary, columns;
  int owned;          ///< ids of a block of sort_kernel, from `owned` times its number on
  int piece, pieces;  ///< tokens of a piece, whole pieces of all tokens
  const std::int32_t* ids;
  const S* dy;
  Index dy_ld;
  float* dtable;
  Index dtable_ld;
};

constexpr int kSortWarps = 32, kSortThreads = 32 * kSortWarps;
constexpr Index kMost = 1 << 20;  ///< tokens, and rows of the table, as the contract has them

/// Tokens of id v are sorted_tokens[first_of_id[v]] .. sorted_tokens[first_of_id[v + 1] - 1]. The device's stream
/// orders the calls that share them; an allocation would make each wait.
__device__ std::int32_t first_of_id[kMost + kSortThreads], sorted_tokens[kMost];

/// Piece p is the sorted tokens from p times `piece` on. Its sum is kept if all have one id, so that many blocks share
/// the tokens of a frequent id.
constexpr Index kLeastPiece = 128, kMostSums = 1 << 21;
alignas(16) __device__ float sums_of_pieces[kMostSums];

/// Sorts tokens by id, those of one id in order. Every block reads all ids; warp w of it takes the w-th part of the
/// tokens, counts those of each id of the block, and writes them behind those of smaller ids and of the warps before.
template <class S>
__global__ void __launch_bounds__(kSortThreads) sort_kernel(ScatterSum<S> a) {
  constexpr unsigned kAll = 0xffffffffU;
  constexpr int kTogether = 8;                       // ids that a thread loads
  ASSAY_SHARED(int, smaller_of_warp, [kSortWarps]);  // tokens of ids below the block's
  ASSAY_SHARED(int, own_of_warp, [kSortWarps]);      // tokens of a warp's ids
  int* const places = dynamic_shared<int>();         // (warps,owned)
  const int own = static_cast<int>(threadIdx.x), lane = own % 32, warp = own / 32;
  const int lowest = static_cast<int>(blockIdx.x) * a.owned, tokens = static_cast<int>(a.tokens);
  const int part = (tokens + kSortThreads - 1) / kSortThreads * 32, begin = warp * part,
            end = min(begin + part, tokens);
  let_next_begin();
  for (int i = own; i < kSortWarps * a.owned; i += kSortThreads) places[i] = 0;
  __syncthreads();
  await_previous();
  int smaller = 0;
  for (int t = begin + lane; t < end; t += 32 * kTogether) {
    int id[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) id[k] = t + 32 * k < end ? a.ids[t + 32 * k] - lowest : a.owned;
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      if (id[k] < 0) ++smaller;
      else if (id[k] < a.owned) atomicAdd(&places[warp * a.owned + id[k]], 1);
    }
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) smaller += __shfl_xor_sync(kAll, smaller, step);
  if (lane == 0) smaller_of_warp[warp] = smaller;
  __syncthreads();

  int total = 0;  // of this thread's id
  if (own < a.owned)
    for (int w = 0; w < kSortWarps; ++w) total += places[w * a.owned + own];
  int through = total;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(kAll, through, step);
    if (lane >= step) through += before;
  }
  if (lane == 31) own_of_warp[warp] = through;
  __syncthreads();
  int place = through - total;
  for (int w = 0; w < kSortWarps; ++w) place += smaller_of_warp[w] + (w < warp ? own_of_warp[w] : 0);
  if (own < a.owned) {
    first_of_id[lowest + own] = place;
    for (int w = 0; w < kSortWarps; ++w) {
      const int count = places[w * a.owned + own];
      places[w * a.owned + own] = place;
      place += count;
    }
  }
  __syncthreads();

  for (int at = begin; at < end; at += 32) {
    const int t = at + lane, id = t < end ? a.ids[t] - lowest : -1;
    unsigned rest = __ballot_sync(kAll, id >= 0 && id < a.owned);
    while (rest != 0) {  // one id at a time
      const int leader = __ffs(static_cast<int>(rest)) - 1, of_leader = __shfl_sync(kAll, id, leader);
      const unsigned same = __ballot_sync(kAll, id == of_leader);
      int* const next = &places[warp * a.owned + of_leader];
      if (id == of_leader) sorted_tokens[*next + __popc(same & ((1U << lane) - 1))] = t;
      __syncwarp();
      if (lane == leader) *next += __popc(same);
      __syncwarp();
      rest &= ~same;
    }
  }
}

/// Returns elements j..j+3 of a row of n as they are, with zeros past its end. `whole`: rows consist of such fours.
template <bool whole, class S>
__device__ inline Four<S> load_four(const S* row, int j, int n) {
  Four<S> v{};
  if constexpr (whole) {
    if (j < n) v = *reinterpret_cast<const Four<S>*>(row + j);
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (j + e < n) v.at[e] = row[j + e];
  }
  return v;
}

constexpr int kFours = 4;   ///< of a row that a thread sums
constexpr int kTokens = 2;  ///< of which it loads them together

/// The columns of this thread, fours of them `step` apart, and sums of rows of dy in them.
template <class S, bool whole>
struct Columns {
  const ScatterSum<S>& a;
  int n = static_cast<int>(a.columns), step = static_cast<int>(blockDim.x) * 4;
  int first = static_cast<int>(blockIdx.y) * kFours * step + static_cast<int>(threadIdx.x) * 4;
  float4 sum[kFours]{};

  __device__ void add(int i, float4 x) {
    sum[i] = make_float4(sum[i].x + x.x, sum[i].y + x.y, sum[i].z + x.z, sum[i].w + x.w);
  }
  /// Adds dy of sorted tokens from `at` to before `end`.
  __device__ void add_tokens(int at, int end) {
    for (; at < end; at += kTokens) {
      Four<S> held[kTokens][kFours];
#pragma unroll
      for (int k = 0; k < kTokens; ++k) {
        const bool present = at + k < end;
        const S* const dy = a.dy + (present ? sorted_tokens[at + k] : 0) * a.dy_ld;
#pragma unroll
        for (int i = 0; i < kFours; ++i) held[k][i] = load_four<whole>(dy, first + i * step, present ? n : 0);
      }
#pragma unroll
      for (int k = 0; k < kTokens; ++k)
#pragma unroll
        for (int i = 0; i < kFours; ++i) {
          const Four<S>& x = held[k][i];
          add(i, make_float4(load(x.at[0]), load(x.at[1]), load(x.at[2]), load(x.at[3])));
        }
    }
  }
  __device__ void add_piece(int piece) {
#pragma unroll
    for (int i = 0; i < kFours; ++i) add(i, load4(sums_of_pieces + piece * a.columns, first + i * step, n, whole));
  }
  __device__ void store_sum(float* row) const {
#pragma unroll
    for (int i = 0; i < kFours; ++i) store4(row, first + i * step, n, whole, sum[i]);
  }
};

/// Blocks in x and threads in y walk pieces, then rows of the table; blocks in y and threads in x walk columns. Writes
/// the sum of each piece whose tokens have one id, and rows whose tokens fill no piece.
template <class S, bool whole>
__global__ void __launch_bounds__(kRowThreads) sum_kernel(ScatterSum<S> a) {
  Columns<S, whole> columns{a};
  const Index item = Index{blockIdx.x} * blockDim.y + threadIdx.y;
  let_next_begin();
  await_previous();
  if (item < a.pieces) {
    const int begin = static_cast<int>(item) * a.piece, end = begin + a.piece;
    if (a.ids[sorted_tokens[begin]] != a.ids[sorted_tokens[end - 1]]) return;
    columns.add_tokens(begin, end);
    columns.store_sum(sums_of_pieces + item * a.columns);
  } else if (const Index id = item - a.pieces; id < a.vocabulary) {
    const int begin = first_of_id[id], end = first_of_id[id + 1];
    if ((begin + a.piece - 1) / a.piece < end / a.piece) return;  // join_kernel writes the row
    columns.add_tokens(begin, end);
    columns.store_sum(a.dtable + id * a.dtable_ld);
  }
}

/// Writes rows whose tokens fill pieces: of the first piece of each such row, the tokens before it, the sums of pieces,
/// and the tokens behind them.
template <class S, bool whole>
__global__ void __launch_bounds__(kRowThreads) join_kernel(ScatterSum<S> a) {
  Columns<S, whole> columns{a};
  int piece = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  let_next_begin();
  await_previous();
  if (piece >= a.pieces) return;
  const Index id = a.ids[sorted_tokens[piece * a.piece]];
  const int begin = first_of_id[id], end = first_of_id[id + 1];
  if ((begin + a.piece - 1) / a.piece != piece || piece >= end / a.piece) return;
  columns.add_tokens(begin, piece * a.piece);
#pragma unroll 4
  for (; piece < end / a.piece; ++piece) columns.add_piece(piece);
  columns.add_tokens(piece * a.piece, end);
  columns.store_sum(a.dtable + id * a.dtable_ld);
}

/// ids (t) from 0 to v - 1; dy (t,h): S, dtable (v,h), row-major, any leading dimension; dtable apart. Moves dy and
/// dtable once; v / `owned` blocks, about 128, read ids twice. Error at most k·u·sum |dy[t,j]| for k tokens of an id.
template <class S>
void run(const ops::EmbeddingBackwardArgs& args, Device& device) {
  constexpr Index kSortBlocks = 128;  // about the multiprocessors of a device
  const Index largest = static_cast<Index>(most_shared_bytes(device) / (kSortWarps * sizeof(int))) - 2;
  const Index owned =
      std::clamp((args.v + kSortBlocks) / kSortBlocks, Index{32}, std::min<Index>(kSortThreads, largest));
  const Index piece = std::max(kLeastPiece, (args.t * args.h + kMostSums - 1) / kMostSums);
  const ScatterSum<S> a{args.t,
                        args.v,
                        args.h,
                        static_cast<int>(owned),
                        static_cast<int>(piece),
                        static_cast<int>(args.t / piece),
                        args.ids.data(),
                        static_cast<const S*>(args.dy.data()),
                        row_stride(args.dy),
                        args.dtable.data(),
                        row_stride(args.dtable)};
  if (a.columns == 0) return;
  const std::size_t shared = static_cast<std::size_t>(kSortWarps * owned) * sizeof(int);
  launch_overlapping(&sort_kernel<S>, {dim3(blocks_for(a.vocabulary + 1, owned)), dim3(kSortThreads), shared}, device,
                     a);
  unsigned wide = 8;
  while (wide < kRowThreads && Index{wide} * kFours * 4 < a.columns) wide *= 2;
  const dim3 block(wide, kRowThreads / wide);
  const unsigned wide_blocks = blocks_for(a.columns, Index{wide} * kFours * 4);
  const bool whole = a.columns % 4 == 0 && rows_aligned(a.dy, a.dy_ld) && rows_aligned(a.dtable, a.dtable_ld);
  launch_overlapping(whole ? &sum_kernel<S, true> : &sum_kernel<S, false>,
                     {dim3(blocks_for(a.pieces + a.vocabulary, block.y), wide_blocks), block}, device, a);
  if (a.pieces > 0)
    launch_overlapping(whole ? &join_kernel<S, true> : &join_kernel<S, false>,
                       {dim3(blocks_for(a.pieces, block.y), wide_blocks), block}, device, a);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = {.functions = FunctionLibrary::cuda},
       .storage = dtype_of<S>,
       .summary = "tokens sorted by id; rows of the table sum their own in order, in packs, by pieces if they are many",
       .run = &run_typed<ops::EmbeddingBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("embedding_backward/" ASSAY_CUDA_NAME "/first_of_id"),
                                            add<Half>("embedding_backward/" ASSAY_CUDA_NAME "/first_of_id_f16"),
                                            add<BFloat16>("embedding_backward/" ASSAY_CUDA_NAME "/first_of_id_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding_backward
