// Attention of one position against a cache: blocks split the keys, and a second kernel combines their results.
#include "ops/attention_decode.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/cuda/rows.cuh"
#include "kernels/heads.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_decode {
namespace {

using ops::AttentionDecodeArgs;

constexpr int kDecodeThreads = 256;  ///< per block; one warp if the cache has few places of narrow heads
constexpr Index kWarpPlaces = 32, kWarpHead = 128;
constexpr int kPlaces = 64;       ///< per tile
constexpr int kLanesOfKey = 8;    ///< threads that share a dot product
constexpr int kHeadVectors = 64;  ///< groups of four elements in the widest head
constexpr Index kMaxSplits = 128;

/// Returns the number of places per block, in whole tiles. The capacity alone determines it, and so the order of every
/// sum.
Index split_of(Index capacity) {
  const Index even = (capacity + kMaxSplits - 1) / kMaxSplits;
  return std::max<Index>(1, (even + kPlaces - 1) / kPlaces) * kPlaces;
}

/// Appends k and v [batch, kv_heads, d] at place lengths[b] of the caches [batch, capacity, kv_heads, d]; then y[b,h] =
/// sum_j p_j v_cache[b,j,g], p = softmax(scale q[b,h] · k_cache[b,j,g]) over j <= lengths[b], g = h / group; q, y
/// [batch, heads, d]. S, heads dense; outputs share no memory with inputs. `sums` holds d4 floats for each of batch *
/// heads * splits, `stats` a maximum and a total of weights for each. Offsets take 64 bits.
template <class S>
struct DecodeCall {
  Index heads, group, d, d4, split;
  HeadRows<const S> q, k, v;
  const std::int32_t* lengths;
  HeadRows<S> k_cache, v_cache, y;
  float scale;
  bool aligned = true;
  Index chunks = 1, splits = 1;
  float4* sums = nullptr;
  float2* stats = nullptr;
};

/// Reduces over a warp; every lane gets the result.
template <class Operation>
__device__ float reduce_warp(float value) {
  return reduce_row<32, Operation>(value, nullptr);
}

/// Block (split, chunk of a group, sequence): kHeads heads that share keys and values against the split's places, with
/// an online softmax by tiles. The new row is read from k and v: other blocks may not see it in the cache yet. The
/// first tile is prefetched while the previous kernel ends; none writes lengths.
template <class S, int kHeads, int kThreads>
__global__ void __launch_bounds__(kThreads, 1) decode_split_kernel(DecodeCall<S> a) {
  ASSAY_SHARED(float4, query, [kHeads][kHeadVectors]);
  ASSAY_SHARED(float, weight, [kHeads][kPlaces]);
  ASSAY_SHARED(float, rescale, [kHeads]);
  ASSAY_SHARED(float4, parts, [kHeads][kThreads]);
  const int own = static_cast<int>(threadIdx.x), lane = own % 32, warp = own / 32;
  const Index b = blockIdx.z, last = a.lengths[b];
  const Index from = blockIdx.x * a.split;
  const Index end = last + 1;
  const Index to = from + a.split < end ? from + a.split : end;
  const Index g = blockIdx.y / a.chunks, in_group = blockIdx.y % a.chunks * kHeads;
  let_next_begin();
  constexpr Index kLine = 128 / sizeof(S);
  const Index lines = (a.d + kLine - 1) / kLine, ahead = min(to - from, Index{kPlaces});
  for (Index e = own; e < ahead * lines; e += kThreads) {
    prefetch(a.k_cache.at(b, from + e / lines, g) + e % lines * kLine);
    prefetch(a.v_cache.at(b, from + e / lines, g) + e % lines * kLine);
  }
  await_previous();
  if (from >= end) return;  // whole blocks
  const int heads = static_cast<int>(a.group - in_group < kHeads ? a.group - in_group : kHeads);
  const auto head = [&](int h) { return g * a.group + in_group + h; };
  const S* const new_key = a.k.at(b, 0, g);
  const S* const new_value = a.v.at(b, 0, g);
  if (in_group == 0 && from <= last && last < from + a.split) {
    for (Index c = own; c < a.d; c += kThreads) {
      a.k_cache.at(b, last, g)[c] = new_key[c];
      a.v_cache.at(b, last, g)[c] = new_value[c];
    }
  }
  for (int e = own; e < heads * kHeadVectors; e += kThreads) {
    const int h = e / kHeadVectors;
    const Index c = e % kHeadVectors * 4;
    if (c >= a.d) continue;
    const float4 x = load4(a.q.at(b, 0, head(h)), c, a.d, a.aligned);
    query[h][e % kHeadVectors] = make_float4(a.scale * x.x, a.scale * x.y, a.scale * x.z, a.scale * x.w);
  }
  int width = kLanesOfKey;  // threads that share a value's elements, four each
  while (4 * width < a.d) width *= 2;
  const int slot = own / width, slots = kThreads / width;
  const Index column = own % width * 4;
  constexpr int kWarps = kThreads / 32;
  constexpr int kOfWarp = (kHeads + kWarps - 1) / kWarps;
  float largest[kOfWarp], total[kOfWarp];  // of the warp's heads: warp, warp + kWarps, ..
#pragma unroll
  for (int i = 0; i < kOfWarp; ++i) largest[i] = -INFINITY, total[i] = 0.0f;
  float4 sum[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) sum[h] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  __syncthreads();

  for (Index tile = from; tile < to; tile += kPlaces) {
    const int places = static_cast<int>(to - tile < kPlaces ? to - tile : kPlaces);
    for (int first = 0; first < places; first += kThreads / kLanesOfKey) {
      const int j = first + own / kLanesOfKey;
      float dot[kHeads] = {};
      if (j < places) {
        const S* const key = tile + j == last ? new_key : a.k_cache.at(b, tile + j, g);
        for (Index c = own % kLanesOfKey * 4; c < a.d; c += kLanesOfKey * 4) {
          const float4 x = load4(key, c, a.d, a.aligned);
#pragma unroll
          for (int h = 0; h < kHeads; ++h) {
            if (h >= heads) break;
            const float4 y = query[h][c / 4];
            dot[h] += x.x * y.x + x.y * y.y + (x.z * y.z + x.w * y.w);
          }
        }
      }
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        if (h >= heads) break;  // all threads
#pragma unroll
        for (int step = kLanesOfKey / 2; step > 0; step /= 2) dot[h] += __shfl_xor_sync(0xffffffffU, dot[h], step);
        if (own % kLanesOfKey == 0 && j < places) weight[h][j] = dot[h];
      }
    }
    __syncthreads();  // every score is ready
#pragma unroll
    for (int i = 0; i < kOfWarp; ++i) {
      const int h = i * kWarps + warp;
      if (h >= heads) break;  // whole warps
      const float first = lane < places ? weight[h][lane] : -INFINITY;
      const float second = lane + 32 < places ? weight[h][lane + 32] : -INFINITY;
      const float before = largest[i], grown = Larger{}(before, reduce_warp<Larger>(Larger{}(first, second)));
      const float shift = grown == -INFINITY ? 0.0f : grown;
      const float w = expf(first - shift), x = expf(second - shift);
      weight[h][lane] = w;
      weight[h][lane + 32] = x;
      // Before the first score above -inf the sums hold 0, or NaN from non-finite scores.
      const float factor = before < grown && before > -INFINITY ? expf(before - grown) : 1.0f;
      if (lane == 0) rescale[h] = factor;
      total[i] = total[i] * factor + reduce_warp<Plus>(w + x);
      largest[i] = grown;
    }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (h >= heads) break;
      sum[h] = make_float4(sum[h].x * rescale[h], sum[h].y * rescale[h], sum[h].z * rescale[h], sum[h].w * rescale[h]);
    }
    if (column < a.d)
      for (int j = slot; j < places; j += slots) {
        const float4 x = load4(tile + j == last ? new_value : a.v_cache.at(b, tile + j, g), column, a.d, a.aligned);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          if (h >= heads) break;
          const float w = weight[h][j];
          sum[h] = make_float4(sum[h].x + w * x.x, sum[h].y + w * x.y, sum[h].z + w * x.z, sum[h].w + w * x.w);
        }
      }
    __syncthreads();  // before the next tile's scores
  }

  const auto result = [&](int h) { return (b * a.heads + head(h)) * a.splits + blockIdx.x; };
#pragma unroll
  for (int i = 0; i < kOfWarp; ++i) {
    const int h = i * kWarps + warp;
    if (h < heads && lane == 0) a.stats[result(h)] = make_float2(largest[i], total[i]);
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) parts[h][own] = sum[h];
  __syncthreads();
  if (slot > 0 || column >= a.d) return;
  for (int h = 0; h < heads; ++h) {
    float4 all = parts[h][own];
    for (int s = 1; s < slots; ++s) {
      const float4 x = parts[h][s * width + own];
      all = make_float4(all.x + x.x, all.y + x.y, all.z + x.z, all.w + x.w);
    }
    a.sums[result(h) * (a.d4 / 4) + column / 4] = all;
  }
}

/// Block (head, sequence): combines the sums of the splits under their common maximum, in order of the splits.
template <class S>
__global__ void __launch_bounds__(kHeadVectors) decode_combine_kernel(DecodeCall<S> a) {
  const Index h = blockIdx.x, b = blockIdx.y;
  const Index splits = a.lengths[b] / a.split + 1, first = (b * a.heads + h) * a.splits;
  let_next_begin();
  await_previous();
  float largest = -INFINITY, total = 0.0f;
#pragma unroll 8
  for (Index s = 0; s < splits; ++s) largest = Larger{}(largest, a.stats[first + s].x);
  const float shift = largest == -INFINITY ? 0.0f : largest;
  const Index column = Index{threadIdx.x} * 4;
  if (column >= a.d) return;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
  for (Index s = 0; s < splits; ++s) {
    const float2 of = a.stats[first + s];
    const float factor = expf(of.x - shift);
    const float4 x = a.sums[(first + s) * (a.d4 / 4) + threadIdx.x];
    total += factor * of.y;
    sum = make_float4(sum.x + factor * x.x, sum.y + factor * x.y, sum.z + factor * x.z, sum.w + factor * x.w);
  }
  const float scale = total == 0.0f ? 0.0f : 1.0f / total;
  store4(a.y.at(b, 0, h), column, a.d, a.aligned,
         total == 0.0f ? make_float4(0.0f, 0.0f, 0.0f, 0.0f)
                       : make_float4(sum.x * scale, sum.y * scale, sum.z * scale, sum.w * scale));
}

/// Addresses a tensor of [batch, heads, d] or [batch, places, heads, d]; clears `aligned` unless all rows start at
/// multiples of 4 elements.
template <class S>
HeadRows<S> decode_rows(const StorageView& v, bool& aligned) {
  const auto step = [&](int axis) { return v.dim(axis) > 1 ? v.stride(axis) : Index{0}; };
  const HeadRows<S> rows{static_cast<S*>(v.data()), step(0), v.rank() == 4 ? step(1) : 0, step(v.rank() - 2)};
  aligned = aligned && rows_aligned(rows.data, rows.per_batch) && rows_aligned(rows.data, rows.per_position) &&
            rows_aligned(rows.data, rows.per_head);
  return rows;
}

/// Allocates scratch of batch * heads * splits * (d + 2) floats; the device frees it after use.
template <class S>
void run(const AttentionDecodeArgs& args, Device& device) {
  if (args.batch == 0) return;
  bool aligned = true;
  DecodeCall<S> a{.heads = args.heads,
                  .group = args.heads / args.kv_heads,
                  .d = args.d,
                  .d4 = (args.d + 3) / 4 * 4,
                  .split = split_of(args.capacity),
                  .q = decode_rows<const S>(args.q, aligned),
                  .k = decode_rows<const S>(args.k, aligned),
                  .v = decode_rows<const S>(args.v, aligned),
                  .lengths = args.lengths.data(),
                  .k_cache = decode_rows<S>(args.k_cache, aligned),
                  .v_cache = decode_rows<S>(args.v_cache, aligned),
                  .y = decode_rows<S>(args.y, aligned),
                  .scale = static_cast<float>(args.scale)};
  a.aligned = aligned;
  a.splits = (args.capacity + a.split - 1) / a.split;
  const auto rows = static_cast<std::size_t>(args.batch * args.heads * a.splits);
  const Buffer sums = device.allocate(rows * static_cast<std::size_t>(a.d4) * sizeof(float));
  const Buffer stats = device.allocate(rows * sizeof(float2));
  a.sums = static_cast<float4*>(sums.address());
  a.stats = static_cast<float2*>(stats.address());
  const auto sequences = static_cast<unsigned>(args.batch);
  const auto split = [&]<int kHeads>(std::integral_constant<int, kHeads>) {
    a.chunks = (a.group + kHeads - 1) / kHeads;
    const dim3 grid(static_cast<unsigned>(a.splits), static_cast<unsigned>(args.kv_heads * a.chunks), sequences);
    if (args.capacity <= kWarpPlaces && a.d <= kWarpHead)
      launch_overlapping(&decode_split_kernel<S, kHeads, 32>, {grid, dim3(32)}, device, a);
    else launch_overlapping(&decode_split_kernel<S, kHeads, kDecodeThreads>, {grid, dim3(kDecodeThreads)}, device, a);
  };
  if (a.group == 1) split(std::integral_constant<int, 1>{});
  else if (a.group <= 4) split(std::integral_constant<int, 4>{});
  else split(std::integral_constant<int, 8>{});
  launch_overlapping(&decode_combine_kernel<S>,
                     {dim3(static_cast<unsigned>(args.heads), sequences), dim3(a.d <= 128 ? 32U : 64U)}, device, a);
}

std::optional<std::string> refuse(const AttentionDecodeArgs& args) { return refuse_grid("batch", args.batch, 1); }

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = {.functions = FunctionLibrary::cuda, .online_tile = kPlaces},
       .storage = dtype_of<S>,
       .summary = "blocks share out the places, up to 8 heads read each key and value once; their results combined",
       .run = &run_typed<AttentionDecodeArgs, &run<S>>,
       .refuse = &refuse_typed<AttentionDecodeArgs, &refuse>});
}

const KernelRegistration registrations[] = {
    add<float>("attention_decode/" ASSAY_CUDA_NAME "/split_keys"),
    add<Half>("attention_decode/" ASSAY_CUDA_NAME "/split_keys_f16"),
    add<BFloat16>("attention_decode/" ASSAY_CUDA_NAME "/split_keys_bf16"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_decode
