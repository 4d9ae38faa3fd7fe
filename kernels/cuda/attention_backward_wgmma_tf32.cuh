// Gradients of attention in float32 by three products of TF32, as attention_wgmma_tf32.cuh forms them. A kernel each
// for dq, dk and dv: a block keeps rows, and those of the other side pass by. Scores are formed three times and dy · v
// twice, eight products in place of five: sums of dk and dv together leave too few registers for factors, and other
// orders would need atomic operations.
#pragma once

#include <climits>

#include "kernels/cuda/attention_backward.cuh"
#include "kernels/cuda/attention_wgmma_tf32.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::backward_by_wgmma_tf32 {

using namespace attention_backward;
using namespace by_wgmma_tf32;

enum class Gradient { dq, dk, dv };

/// Shared memory holds the rows of a block, for scores and for dy · v, then kBuffers buffers. What passes in a tile of
/// kKeys rows takes kParts of them in turn: the right factors of scores, of dy · v and of the gradient, l behind each.
template <Gradient gradient, int kD>
struct GradientPlan {
  static constexpr bool kOfValues = gradient == Gradient::dv;
  static constexpr int kOwnBytes = kRows * kD * 4, kPartBytes = kKeys * kD * 4, kParts = kOfValues ? 4 : 6;
  static constexpr int kOwn = (kOfValues ? 1 : 2) * kOwnBytes;
  static constexpr int kSpare = 227 * 1024 - hopper::kSwizzleBytes - 512 - kOwn;
  static constexpr int kBuffers = kSpare / kPartBytes < 8 ? kSpare / kPartBytes : 8;
  static constexpr std::size_t kBytes = kOwn + kBuffers * kPartBytes + hopper::kSwizzleBytes;
  static constexpr int kChunk = kD > 64 && !kOfValues ? 32 : 64;  // the most that registers have room for
};

struct GradientMaps {
  hopper::TensorMap own, own_upstream, rows, lower_rows, upstream, lower_upstream, columns;
};

/// products = 16 rows from `row` on of `own` times the kKeys rows of `right`, whose l is in `lower_right`.
/// Registers hold `chunk` columns of `own` at a time.
template <int kD, int chunk>
__device__ inline void multiply_rows(float (&products)[kKeys / 2], unsigned char* own, int row,
                                     const unsigned char* right, const unsigned char* lower_right) {
  unsigned upper[chunk / kTerms][4], lower[chunk / kTerms][4];
#pragma unroll
  for (int first = 0; first < kD; first += chunk) {
#pragma unroll
    for (int c = 0; c < chunk; c += kTerms)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float x = *left_element(own, kRows, row, first + c, i);
        upper[c / kTerms][i] = __float_as_uint(x) & 0xffffe000U;
        lower[c / kTerms][i] = __float_as_uint(lower_part(x));
      }
    hopper::fence_products(products, upper, lower);
#pragma unroll
    for (int c = 0; c < chunk; c += kTerms) {
      const std::uint64_t of_rows = described(right, kKeys, 0, first + c);
      hopper::multiply<float, false>(products, lower[c / kTerms], of_rows, first + c > 0);
      hopper::multiply<float, false>(products, upper[c / kTerms], of_rows, true);
      hopper::multiply<float, false>(products, upper[c / kTerms], described(lower_right, kKeys, 0, first + c), true);
    }
    hopper::commit_products();
    hopper::complete_products(products);
  }
}

/// A gradient of kRows queries of a head, or keys of a key-value head: then the queries of a head of the group pass, and
/// those of the next one.
template <Gradient gradient, int kD>
__global__ void __launch_bounds__(kThreads, 1)
    attention_backward_wgmma_tf32(AttentionBackward<float> p, const __grid_constant__ GradientMaps maps) {
  using Tiles = GradientPlan<gradient, kD>;
  constexpr bool kOfQueries = gradient == Gradient::dq, kOfValues = Tiles::kOfValues;
  ASSAY_SHARED(by_wgmma::Passage<Tiles::kBuffers>, passage, [1]);
  unsigned char *const own = hopper::boxes_of_block(), *const own_upstream = own + Tiles::kOwnBytes;
  const auto part = [&](int n) { return own + Tiles::kOwn + n % Tiles::kBuffers * Tiles::kPartBytes; };
  const Attention<float>& a = p.forward;
  const int s = static_cast<int>(a.s), group = static_cast<int>(a.group), b = static_cast<int>(blockIdx.z),
            own_head = static_cast<int>(blockIdx.y), length = a.lengths[b], start = a.starts[b];
  // Blocks with more to see start first.
  const int block_row = static_cast<int>(kOfQueries ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * kRows;
  const auto keys_of = [&](int row) { return row < s ? static_cast<int>(keys_seen(a.causal, length, start, row)) : 0; };
  const auto first_query = [&](int key) { return key < length ? a.causal ? max(key - start, 0) : 0 : INT_MAX; };
  // Tiles of the rows from first_row to end, of `passing` heads, pass through shared memory.
  const int first_row = kOfQueries ? 0 : min(first_query(block_row), s) / kKeys * kKeys;
  const int end = kOfQueries ? keys_of(min(s, block_row + kRows) - 1) : first_query(block_row) < s ? s : first_row;
  const int first_head = kOfQueries ? own_head / group : own_head * group, passing = kOfQueries ? 1 : group;
  const int of_head = (end - first_row + kKeys - 1) / kKeys, tiles = passing * of_head;

  if (threadIdx.x == 0) passage[0].initialize(kConsumers);
  __syncthreads();

  if (threadIdx.x < kGroupThreads) {
    hopper::release_registers<24>();
    if (threadIdx.x > 0 || tiles == 0) return;
    hopper::arrive_expecting(passage[0].own, Tiles::kOwn);
    for (int c = 0; c < kD; c += kBox) {
      const int to = c / kBox * kRows * hopper::kRowBytes;
      hopper::copy_box(own + to, maps.own, passage[0].own, c, block_row, own_head, b);
      if constexpr (!kOfValues)
        hopper::copy_box(own_upstream + to, maps.own_upstream, passage[0].own, c, block_row, own_head, b);
    }
    const int heads = static_cast<int>(kOfQueries ? a.kv_heads : a.kv_heads * a.group);
    int n = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      const int h = first_head + tile / of_head, row = first_row + tile % of_head * kKeys;
      const auto copy_rows = [&](const hopper::TensorMap& map) {
        hopper::Barrier& full = passage[0].begin(n, Tiles::kPartBytes);
        for (int c = 0; c < kD; c += kBox)
          hopper::copy_box(part(n) + c / kBox * kKeys * hopper::kRowBytes, map, full, c, row, h, b);
        ++n;
      };
      copy_rows(maps.rows);
      copy_rows(maps.lower_rows);
      if constexpr (!kOfValues) {
        copy_rows(maps.upstream);
        copy_rows(maps.lower_upstream);
      }
      for (int lower = 0; lower < 2; ++lower, ++n) {
        hopper::Barrier& full = passage[0].begin(n, Tiles::kPartBytes);
        for (int j = 0; j < kKeys; j += kBox)
          hopper::copy_box(part(n) + j / kBox * kD * hopper::kRowBytes, maps.columns, full, row + j, 0, b * heads + h,
                           lower);
      }
    }
    return;
  }

  hopper::take_registers<240>();
  // As one lane has it, so that the compiler knows it to be the same for a warp.
  const int consumer = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / kGroupThreads - 1, 0);
  const int own_y = (static_cast<int>(threadIdx.x) - kGroupThreads) / 32 * 16, row0 = block_row + own_y;
  const int group_row = block_row + consumer * kGroupRows, last = group_row + kGroupRows - 1;
  // Rows of the warpgroup see all of what passes below (queries) or from here on (keys).
  const int all_see = kOfQueries ? (last < s ? keys_of(group_row) : 0) : first_query(last);
  int sees[2];  // how many keys a query sees, or the first query that sees a key
  float shift[2], along[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = row0 + output_row(2 * half);
    sees[half] = kOfQueries ? keys_of(row) : first_query(row);
    const bool has_scalars = kOfQueries && row < s;
    const Index number = (Index{b} * a.kv_heads * a.group + own_head) * p.pitch + row;
    shift[half] = has_scalars ? p.shift[number] : INFINITY;
    along[half] = has_scalars ? p.along[number] : 0.0f;
  }
  const float scale = a.scale * kLog2E;
  float sums[kD / 2] = {}, weights[kKeys / 2];
  unsigned upper[kKeys / kTerms][4], lower[kKeys / kTerms][4];
  if (tiles > 0) hopper::wait(passage[0].own, 0);
  for (int tile = 0; tile < tiles; ++tile) {
    const int row = first_row + tile % of_head * kKeys, n = Tiles::kParts * tile, columns = n + Tiles::kParts - 2;
    // Of a query that passes.
    const Index scalars = (Index{b} * a.kv_heads * a.group + first_head + tile / of_head) * p.pitch + row;
    const auto two = [&](const float* of, int e) {
      return *reinterpret_cast<const float2*>(of + scalars + e / 4 * 8 + output_column(0));
    };
    passage[0].await(n);
    passage[0].await(n + 1);
    multiply_rows<kD, Tiles::kChunk>(weights, own, own_y, part(n), part(n + 1));
    passage[0].release(n);
    passage[0].release(n + 1);
    if constexpr (kOfQueries) {
      if (all_see < row + kKeys) by_wgmma::hide_keys(weights, sees, row);
    } else if (row < all_see) {
#pragma unroll
      for (int e = 0; e < kKeys / 2; ++e)
        if (e / 4 * 8 + e % 2 < sees[e / 2 % 2] - row - output_column(0)) weights[e] = -INFINITY;
    }
#pragma unroll
    for (int e = 0; e < kKeys / 2; e += 4) {
      const float2 of_queries = kOfQueries ? float2{} : two(p.shift, e);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float of_row = kOfQueries ? shift[i / 2] : i % 2 == 0 ? of_queries.x : of_queries.y;
        weights[e + i] = exp2f(fmaf(weights[e + i], scale, -of_row));
      }
    }
    if constexpr (!kOfValues) {
      float ds[kKeys / 2];
      passage[0].await(n + 2);
      passage[0].await(n + 3);
      multiply_rows<kD, Tiles::kChunk>(ds, own_upstream, own_y, part(n + 2), part(n + 3));
      passage[0].release(n + 2);
      passage[0].release(n + 3);
#pragma unroll
      for (int e = 0; e < kKeys / 2; e += 4) {
        const float2 of_queries = kOfQueries ? float2{} : two(p.along, e);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float of_row = kOfQueries ? along[i / 2] : i % 2 == 0 ? of_queries.x : of_queries.y;
          weights[e + i] *= ds[e + i] - of_row;
        }
      }
    }
    split_accumulators(weights, upper, lower);
    passage[0].await(columns);
    passage[0].await(columns + 1);
    hopper::fence_products(sums, upper, lower);
    begin_sums<kD>(sums, upper, lower, part(columns), part(columns + 1));
    hopper::wait_products<1>();
    passage[0].release(columns);
    hopper::complete_products(sums);
    passage[0].release(columns + 1);
  }

  float tiled[kD / 8][4];
#pragma unroll
  for (int e = 0; e < kD / 2; ++e) tiled[e / 4][e % 4] = sums[e];
  constexpr float kNothingBeside[2] = {0.0f, 0.0f};
  const std::uint64_t nonfinite_mask = nonfinite_rows(tiled, kNothingBeside);
  const HeadRows<float>& out = kOfQueries ? p.dq : kOfValues ? p.dv : p.dk;
  const int rows = static_cast<int>(kOfQueries ? a.s : a.t);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = output_row(2 * half);
    if (row0 + r < rows && !is_nonfinite_row(nonfinite_mask, r))
      store_outputs(out.at(b, row0 + r, own_head), tiled, half, kOfValues ? 1.0f : a.scale, a.d);
  }
  for (int r = 0; r < 16; ++r) {
    if (!is_nonfinite_row(nonfinite_mask, r) || row0 + r >= rows) continue;
    if constexpr (kOfQueries) query_gradient(p, b, own_head / a.group, (row0 + r) * a.group + own_head % a.group);
    else key_gradients(p, b, own_head, row0 + r, 0, a.d);
  }
}

template <Gradient gradient, int kD>
void launch_gradient(const AttentionBackward<float>& p, const SplitRows& q, const SplitRows& k, const SplitRows& v,
                     const SplitRows& dy, Device& device) {
  using Tiles = GradientPlan<gradient, kD>;
  constexpr bool kOfQueries = gradient == Gradient::dq;
  const SplitRows &own = kOfQueries ? q : k, &own_upstream = kOfQueries ? dy : v;
  const SplitRows &rows = kOfQueries ? k : q, &upstream = kOfQueries ? v : dy;
  const SplitRows& columns = Tiles::kOfValues ? dy : rows;
  if (own.positions == 0) return;
  hopper::launch_asynchronous(
      &attention_backward_wgmma_tf32<gradient, kD>,
      {dim3(blocks_for(own.positions, kRows), static_cast<unsigned>(own.heads), static_cast<unsigned>(own.batch)),
       dim3(kThreads), Tiles::kBytes},
      device, p,
      GradientMaps{map_of_rows(own, kRows, device), map_of_rows(own_upstream, kRows, device),
                   map_of_rows(rows, kKeys, device), map_of_lower(rows, kKeys, device),
                   map_of_rows(upstream, kKeys, device), map_of_lower(upstream, kKeys, device),
                   map_of_transposed(columns, kD, device)});
}

/// Computes AttentionBackward<float>, whose pitch is a multiple of kKeys and whose scratch is filled, for d up to kD and
/// rows that refuse_heads takes. Products are formed as mma_arithmetic says; weights are 2^(scale' score - shift) with
/// scale' = scale log2 e in one rounding. Reads keys and values s/128 times per head, queries and upstream gradients
/// t/64 times. Allocates scratch of ten tensors, which the device frees after use. Source: Dao, FlashAttention-2,
/// arXiv:2307.08691, algorithm 2; Ootomo & Yokota, arXiv:2203.03341, for products in parts.
template <int kD>
void launch_passes(const AttentionBackward<float>& p, Device& device) {
  const Attention<float>& a = p.forward;
  const Index heads = a.kv_heads * a.group;
  SplitRows q{a.q, nullptr, a.batch, a.s, heads, a.d}, k{a.k, a.lengths, a.batch, a.t, a.kv_heads, a.d},
      v{a.v, a.lengths, a.batch, a.t, a.kv_heads, a.d}, dy{p.dy, nullptr, a.batch, a.s, heads, a.d};
  Index size = 0;
  for (const SplitRows* of : {&q, &k, &v, &dy}) size += of->lower_size() + (of == &v ? 0 : 2 * of->transposed_size());
  const Buffer scratch = device.allocate(static_cast<std::size_t>(size) * sizeof(float));
  auto* next = static_cast<float*>(scratch.address());
  for (SplitRows* of : {&q, &k, &v, &dy}) {
    of->lower = next;
    next += of->lower_size();
    if (of != &v) {
      of->transposed = next;
      next += 2 * of->transposed_size();
    }
    split(*of, device);
  }
  launch_gradient<Gradient::dq, kD>(p, q, k, v, dy, device);
  launch_gradient<Gradient::dk, kD>(p, q, k, v, dy, device);
  launch_gradient<Gradient::dv, kD>(p, q, k, v, dy, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE::backward_by_wgmma_tf32
