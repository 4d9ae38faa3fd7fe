// Attention of one position against a cache: blocks split the keys, and a second kernel combines their results.
#include "ops/attention_decode.hpp"

#include <cuda_pipeline.h>

#include <algorithm>
#include <cmath>

#include "kernels/cuda/rows.cuh"
#include "kernels/heads.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_decode {
namespace {

using ops::AttentionDecodeArgs;

constexpr int kDecodeThreads = 256;  ///< per block; one warp if the cache has few places of narrow heads
constexpr Index kWarpPlaces = 32, kWarpHead = 128;
constexpr int kLeastPlaces = 32, kMostPlaces = 64;  ///< per tile; the least if a row has more than 512 bytes
constexpr int kLanesOfKey = 8;                      ///< threads that share a dot product
constexpr int kHeadVectors = 64;                    ///< groups of four elements in the widest head
constexpr Index kMaxSplits = 128;

/// Returns the number of places per block, in whole tiles. The capacity alone determines it, and so the order of every
/// sum.
Index split_of(Index capacity) {
  const Index even = (capacity + kMaxSplits - 1) / kMaxSplits;
  return std::max<Index>(1, (even + kMostPlaces - 1) / kMostPlaces) * kMostPlaces;
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
  bool whole = true;  ///< rows consist of whole words of 16 bytes at multiples of 16 bytes
  int row_bytes = 0;  ///< of a tile, a multiple of 16
  Index chunks = 1, splits = 1;
  float4* sums = nullptr;
  float2* stats = nullptr;
};

/// Reduces over a warp; every lane gets the result.
template <class Operation>
__device__ float reduce_warp(float value) {
  return reduce_row<32, Operation>(value, nullptr);
}

/// Shared memory of a block beside its rows of keys and values.
template <int kHeads, int kPlaces>
struct alignas(16) DecodeShared {
  float4 query[kHeads][kHeadVectors];
  float weight[kHeads][kPlaces], rescale[kHeads];
};

/// Block (split, chunk of a group, sequence): kHeads heads that share keys and values against the split's places, with
/// an online softmax by tiles of kPlaces. Copies of a tile's values are under way while its keys are multiplied, and of
/// the next tile's keys while its values are. The new row is taken from k and v: other blocks may not see it in the
/// cache yet. The first tile is prefetched while the previous kernel ends; none writes lengths. Shared memory: DecodeShared,
/// then kPlaces rows of keys and of values, and in their place, after the last tile, kHeads * kThreads float4.
template <class S, int kHeads, int kThreads, int kPlaces>
__global__ void __launch_bounds__(kThreads, 1) decode_split_kernel(DecodeCall<S> a) {
  auto& [query, weight, rescale] = *dynamic_shared<DecodeShared<kHeads, kPlaces>>();
  const int own = static_cast<int>(threadIdx.x), lane = own % 32, warp = own / 32, d = static_cast<int>(a.d);
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
  std::uint8_t* const keys = dynamic_shared<std::uint8_t>() + sizeof(DecodeShared<kHeads, kPlaces>);
  std::uint8_t* const values = keys + kPlaces * a.row_bytes;
  const auto row = [&](std::uint8_t* tile, int j) { return reinterpret_cast<S*>(tile + j * a.row_bytes); };
  const auto places_of = [&](Index tile) { return static_cast<int>(to - tile < kPlaces ? to - tile : kPlaces); };
  const int words = a.row_bytes / 16, first_row = own / words, row_step = kThreads / words;
  // Every thread commits one batch a copy, empty past the last tile.
  const auto begin_copy = [&](std::uint8_t* shared, const HeadRows<S>& cache, const S* newest, Index tile) {
    const auto source = [&](int j) { return tile + j == last ? newest : cache.at(b, tile + j, g); };
    if (a.whole) {
      for (int j = first_row < row_step ? first_row : kPlaces; tile < to && j < places_of(tile); j += row_step)
        __pipeline_memcpy_async(row(shared, j) + own % words * (16 / sizeof(S)),
                                source(j) + own % words * (16 / sizeof(S)), 16);
    } else {
      for (int e = own; tile < to && e < places_of(tile) * d; e += kThreads)
        row(shared, e / d)[e % d] = source(e / d)[e % d];
    }
    __pipeline_commit();
  };
  begin_copy(keys, a.k_cache, new_key, from);
  begin_copy(values, a.v_cache, new_value, from);
  if (in_group == 0 && from <= last && last < from + a.split) {
    for (Index c = own; c < a.d; c += kThreads) {
      a.k_cache.at(b, last, g)[c] = new_key[c];
      a.v_cache.at(b, last, g)[c] = new_value[c];
    }
  }
  for (int e = own; e < kHeads * kHeadVectors; e += kThreads) {
    const int h = e / kHeadVectors, c = e % kHeadVectors * 4;
    float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);  // of heads that the group lacks
    if (h < heads && c < d) x = load4(a.q.at(b, 0, head(h)), c, a.d, a.aligned);
    query[h][e % kHeadVectors] = make_float4(a.scale * x.x, a.scale * x.y, a.scale * x.z, a.scale * x.w);
  }
  int width = kLanesOfKey;  // threads that share a value's elements, four each
  while (4 * width < d) width *= 2;
  const int slot = own / width, slots = kThreads / width;
  const int column = own % width * 4;
  constexpr int kWarps = kThreads / 32;
  constexpr int kOfWarp = (kHeads + kWarps - 1) / kWarps;
  float largest[kOfWarp], total[kOfWarp];  // of the warp's heads: warp, warp + kWarps, ..
#pragma unroll
  for (int i = 0; i < kOfWarp; ++i) largest[i] = -INFINITY, total[i] = 0.0f;
  float4 sum[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) sum[h] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

  for (Index tile = from; tile < to; tile += kPlaces) {
    const int places = places_of(tile);
    __pipeline_wait_prior(1);
    __syncthreads();  // keys and queries are there
    constexpr int kGroups = kThreads / kLanesOfKey, kKeys = kPlaces / kGroups < 2 ? 1 : 2;  // a thread has at a time
    for (int first = own / kLanesOfKey; first < (places + kGroups - 1) / kGroups * kGroups; first += kKeys * kGroups) {
      float dot[kKeys][kHeads] = {};
      for (int c = own % kLanesOfKey * 4; c < d; c += kLanesOfKey * 4) {
        float4 x[kKeys];
#pragma unroll
        for (int i = 0; i < kKeys; ++i)
          x[i] = first + i * kGroups < places ? load4(row(keys, first + i * kGroups), c, d, true)
                                              : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          const float4 y = query[h][c / 4];
#pragma unroll
          for (int i = 0; i < kKeys; ++i) dot[i][h] += x[i].x * y.x + x[i].y * y.y + (x[i].z * y.z + x[i].w * y.w);
        }
      }
#pragma unroll
      for (int h = 0; h < kHeads; ++h)
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
#pragma unroll
          for (int step = kLanesOfKey / 2; step > 0; step /= 2)
            dot[i][h] += __shfl_xor_sync(0xffffffffU, dot[i][h], step);
          if (own % kLanesOfKey == 0 && first + i * kGroups < places) weight[h][first + i * kGroups] = dot[i][h];
        }
    }
    __syncthreads();  // every score is ready, and keys have been read
    begin_copy(keys, a.k_cache, new_key, tile + kPlaces);
#pragma unroll
    for (int i = 0; i < kOfWarp; ++i) {
      const int h = i * kWarps + warp;
      if (h >= heads) break;  // whole warps
      constexpr int kOfLane = kPlaces / 32;
      float w[kOfLane], most = -INFINITY, all = 0.0f;
#pragma unroll
      for (int p = 0; p < kOfLane; ++p) {
        w[p] = lane + 32 * p < places ? weight[h][lane + 32 * p] : -INFINITY;
        most = p == 0 ? w[p] : Larger{}(most, w[p]);
      }
      const float before = largest[i], grown = Larger{}(before, reduce_warp<Larger>(most));
      const float shift = grown == -INFINITY ? 0.0f : grown;
#pragma unroll
      for (int p = 0; p < kOfLane; ++p) {
        w[p] = expf(w[p] - shift);
        if (lane + 32 * p < places) weight[h][lane + 32 * p] = w[p];
        all += w[p];
      }
      // Before the first score above -inf the sums hold 0, or NaN from non-finite scores.
      const float factor = before < grown && before > -INFINITY ? expf(before - grown) : 1.0f;
      if (lane == 0) rescale[h] = factor;
      total[i] = total[i] * factor + reduce_warp<Plus>(all);
      largest[i] = grown;
    }
    __pipeline_wait_prior(1);
    __syncthreads();  // weights and values are there
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (h >= heads) break;
      sum[h] = make_float4(sum[h].x * rescale[h], sum[h].y * rescale[h], sum[h].z * rescale[h], sum[h].w * rescale[h]);
    }
    if (column < d)
#pragma unroll 4
      for (int j = slot; j < places; j += slots) {
        const float4 x = load4(row(values, j), column, d, true);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          const float w = weight[h][j];
          sum[h] = make_float4(sum[h].x + w * x.x, sum[h].y + w * x.y, sum[h].z + w * x.z, sum[h].w + w * x.w);
        }
      }
    __syncthreads();  // values and weights have been read
    begin_copy(values, a.v_cache, new_value, tile + kPlaces);
  }

  const auto result = [&](int h) { return (b * a.heads + head(h)) * a.splits + blockIdx.x; };
#pragma unroll
  for (int i = 0; i < kOfWarp; ++i) {
    const int h = i * kWarps + warp;
    if (h < heads && lane == 0) a.stats[result(h)] = make_float2(largest[i], total[i]);
  }
  float4* const parts = reinterpret_cast<float4*>(keys);
#pragma unroll
  for (int h = 0; h < kHeads; ++h) parts[h * kThreads + own] = sum[h];
  __syncthreads();
  for (int h = slot; h < heads && column < d; h += slots) {
    const float4* const part = parts + h * kThreads + own % width;
    float4 all = part[0];
    for (int s = 1; s < slots; ++s) {
      const float4 x = part[s * width];
      all = make_float4(all.x + x.x, all.y + x.y, all.z + x.z, all.w + x.w);
    }
    a.sums[result(h) * (a.d4 / 4) + column / 4] = all;
  }
}

/// Block (head, sequence): combines the sums of the splits under their common maximum. Each warp forms the total. As many
/// threads as a row has groups of four elements take one split at a time, and their sums are added in order.
template <class S>
__global__ void __launch_bounds__(kDecodeThreads) decode_combine_kernel(DecodeCall<S> a) {
  ASSAY_SHARED(float4, parts, [kDecodeThreads]);
  const Index h = blockIdx.x, b = blockIdx.y;
  const int own = static_cast<int>(threadIdx.x), lane = own % 32, d = static_cast<int>(a.d);
  const int splits = static_cast<int>(a.lengths[b] / a.split) + 1;
  const Index first = (b * a.heads + h) * a.splits;
  int width = 8;
  while (4 * width < d) width *= 2;
  const int slot = own / width, slots = kDecodeThreads / width, column = own % width * 4;
  let_next_begin();
  await_previous();
  constexpr int kOfLane = kMaxSplits / 32;
  float2 of[kOfLane];
  float largest = -INFINITY, total = 0.0f;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    of[i] = lane + 32 * i < splits ? a.stats[first + lane + 32 * i] : make_float2(-INFINITY, 0.0f);
    largest = i == 0 ? of[i].x : Larger{}(largest, of[i].x);
  }
  largest = reduce_warp<Larger>(largest);
  const float shift = largest == -INFINITY ? 0.0f : largest;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) total += expf(of[i].x - shift) * of[i].y;
  total = reduce_warp<Plus>(total);
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (column < d)
#pragma unroll 4
    for (int s = slot; s < splits; s += slots) {
      const float factor = expf(a.stats[first + s].x - shift);
      const float4 x = a.sums[(first + s) * (a.d4 / 4) + column / 4];
      sum = make_float4(sum.x + factor * x.x, sum.y + factor * x.y, sum.z + factor * x.z, sum.w + factor * x.w);
    }
  parts[own] = sum;
  __syncthreads();
  if (slot > 0 || column >= d) return;
  for (int s = 1; s < min(slots, splits); ++s) {
    const float4 x = parts[s * width + own];
    sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
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
  constexpr Index kWord = 16 / sizeof(S);
  const auto words = [](const auto& rows) {
    return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 && rows.per_batch % kWord == 0 &&
           rows.per_position % kWord == 0 && rows.per_head % kWord == 0;
  };
  a.whole = a.d % kWord == 0 && words(a.k_cache) && words(a.v_cache) && words(a.k) && words(a.v);
  a.row_bytes = static_cast<int>((a.d + kWord - 1) / kWord) * 16;
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
    const auto begin = [&](auto kernel, int threads, int places) {
      const auto rows = std::max(std::size_t{2} * static_cast<std::size_t>(places * a.row_bytes),
                                 sizeof(float4) * static_cast<std::size_t>(kHeads * threads));
      const std::size_t others = places == kLeastPlaces ? sizeof(DecodeShared<kHeads, kLeastPlaces>)
                                                        : sizeof(DecodeShared<kHeads, kMostPlaces>);
      launch_overlapping(kernel, {grid, dim3(static_cast<unsigned>(threads)), others + rows}, device, a);
    };
    if (args.capacity <= kWarpPlaces && a.d <= kWarpHead)
      begin(&decode_split_kernel<S, kHeads, 32, kLeastPlaces>, 32, kLeastPlaces);
    else if (a.row_bytes > 512)
      begin(&decode_split_kernel<S, kHeads, kDecodeThreads, kLeastPlaces>, kDecodeThreads, kLeastPlaces);
    else begin(&decode_split_kernel<S, kHeads, kDecodeThreads, kMostPlaces>, kDecodeThreads, kMostPlaces);
  };
  if (a.group == 1) split(std::integral_constant<int, 1>{});
  else if (a.group <= 4) split(std::integral_constant<int, 4>{});
  else split(std::integral_constant<int, 8>{});
  launch_overlapping(&decode_combine_kernel<S>,
                     {dim3(static_cast<unsigned>(args.heads), sequences), dim3(kDecodeThreads)}, device, a);
}

std::optional<std::string> refuse(const AttentionDecodeArgs& args) { return refuse_grid("batch", args.batch, 1); }

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = {.functions = FunctionLibrary::cuda, .online_tile = kLeastPlaces},
       .storage = dtype_of<S>,
       .summary =
           "blocks share out the places, copied asynchronously; up to 8 heads read each key and value once; results combined",
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
