// Attention in float32 by three products of TF32 (Format::tf32x3) on the tensor cores of compute capability 9.0: x =
// h + l, h the upper 11 bits of x. Tensor cores take h of what they read in memory, so that only l is written. They
// transpose no TF32: a first kernel writes values as rows of keys, and l of keys and values. In the second a warp
// copies keys and values, and two warpgroups attend 64 queries each.
#pragma once

#include "kernels/cuda/attention_wgmma.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::by_wgmma_tf32 {

using attention_query::seen_by;
using by_wgmma::kGroupThreads;

constexpr int kRows = 128, kKeys = 64, kConsumers = 2, kGroupRows = kRows / kConsumers;
constexpr int kThreads = (1 + kConsumers) * kGroupThreads;
/// Columns of a box, and terms of a product.
constexpr int kBox = hopper::kRowBytes / sizeof(float), kTerms = 8;

/// Returns l of x.
__device__ inline float lower_part(float x) { return x - __uint_as_float(__float_as_uint(x) & 0xffffe000U); }

/// Of eight keys, returns the one in column `at` of a left factor in registers: a lane has weights of keys 2 i and 2 i + 1
/// in its accumulators, and columns i and i + 4 in factors.
__device__ inline int key_at(int at) { return at % 4 * 2 + at / 4; }

/// Rows of float32, and what split() writes of them to scratch, for tensor copies.
struct SplitRows {
  HeadRows<const float> rows;  ///< (batch,positions,heads,d)
  const int* counts;           ///< of each sequence: rows from there on are written as zeros. Null: all count
  Index batch, positions, heads, d;
  float* lower = nullptr;  ///< null, or (batch,heads,positions,pitch): l of the rows
  /// Null, or (2,batch,heads,d,transposed_pitch): the rows as columns, then l of them. Each eight positions are in the
  /// order of key_at, with zeros behind the last.
  float* transposed = nullptr;

  ASSAY_HOST_DEVICE Index pitch() const { return (d + 3) / 4 * 4; }
  ASSAY_HOST_DEVICE Index transposed_pitch() const { return (positions + 7) / 8 * 8; }
  ASSAY_HOST_DEVICE Index lower_size() const { return batch * heads * positions * pitch(); }
  /// Of one of the two parts.
  ASSAY_HOST_DEVICE Index transposed_size() const { return batch * heads * d * transposed_pitch(); }
};

constexpr int kPatch = 32, kPatchRows = 8;

namespace {  // device code and its launches are local to each file

/// A block splits 32 rows by 32 elements.
__global__ void __launch_bounds__(kPatch* kPatchRows) split_rows(SplitRows of) {
  ASSAY_SHARED(float, patch, [kPatch][kPatch + 1]);
  const int x = static_cast<int>(threadIdx.x) % kPatch, y = static_cast<int>(threadIdx.x) / kPatch;
  const Index columns = (of.d + kPatch - 1) / kPatch, pitch = of.transposed_pitch();
  const Index first = blockIdx.x / columns * kPatch, first_column = blockIdx.x % columns * kPatch;
  const Index b = blockIdx.z, h = blockIdx.y, head = b * of.heads + h;
  const Index count = of.counts == nullptr ? of.positions : of.counts[b];
  for (int r = y; r < kPatch; r += kPatchRows) {
    const Index i = first + r, c = first_column + x;
    const float element = i < count && c < of.d ? of.rows.at(b, i, h)[c] : 0.0f;
    patch[r][x] = element;
    if (of.lower != nullptr && i < of.positions && c < of.d)
      of.lower[(head * of.positions + i) * of.pitch() + c] = lower_part(element);
  }
  if (of.transposed == nullptr) return;
  __syncthreads();
  for (int r = y; r < kPatch; r += kPatchRows) {
    const Index c = first_column + r;
    if (c >= of.d || first + x >= pitch) continue;
    const float element = patch[x / 8 * 8 + key_at(x % 8)][r];
    float* const to = of.transposed + (head * of.d + c) * pitch + first + x;
    to[0] = element;
    to[of.transposed_size()] = lower_part(element);
  }
}

void split(const SplitRows& of, Device& device) {
  if (of.batch * of.positions > 0)
    launch(&split_rows,
           {dim3(blocks_for(of.transposed_pitch(), kPatch) * blocks_for(of.d, kPatch), static_cast<unsigned>(of.heads),
                 static_cast<unsigned>(of.batch)),
            dim3(kPatch * kPatchRows)},
           device, of);
}

}  // namespace

/// Describes rows, l of rows, and rows as columns, whose boxes have all d of 32 positions.
inline hopper::TensorMap map_of_rows(const SplitRows& of, unsigned box_rows, Device& device) {
  return by_wgmma::map_of_heads(of.rows, of.batch, of.positions, of.heads, of.d, box_rows, device);
}
inline hopper::TensorMap map_of_lower(const SplitRows& of, unsigned box_rows, Device& device) {
  const Index of_head = of.positions * of.pitch();
  const HeadRows<const float> lower{of.lower, of.heads * of_head, of.pitch(), of_head};
  return by_wgmma::map_of_heads(lower, of.batch, of.positions, of.heads, of.d, box_rows, device);
}
inline hopper::TensorMap map_of_transposed(const SplitRows& of, unsigned box_rows, Device& device) {
  const Index pitch = of.transposed_pitch();
  return hopper::tensor_map<float, 4>(of.transposed, {pitch, of.d, of.batch * of.heads, 2},
                                      {pitch, of.d * pitch, of.transposed_size()}, box_rows, device);
}

/// Describes kTerms columns from `column` on of the rows from `row` on of boxes of `rows` rows.
__device__ inline std::uint64_t described(const unsigned char* boxes, int rows, int row, int column) {
  return hopper::descriptor(boxes + (column / kBox * rows + row) * hopper::kRowBytes + column % kBox * 4, 0,
                            hopper::kSwizzleBytes);
}
/// Returns where element i of a lane's four of a left factor lies: of the kTerms columns from `column` on of 16 rows from
/// `row` on of boxes of `rows` rows.
__device__ inline float* left_element(unsigned char* boxes, int rows, int row, int column, int i) {
  const int lane = static_cast<int>(threadIdx.x) % 32, r = row + lane / 4 + i % 2 * 8,
            c = column + lane % 4 + i / 2 * 4;
  return reinterpret_cast<float*>(boxes + (c / kBox * rows + r) * hopper::kRowBytes + ((c % kBox * 4) ^ (r % 8 * 16)));
}
/// Splits what a warp has of 64 rows by kTile accumulators into left factors, whose columns are in the order of key_at.
template <int count>
__device__ inline void split_accumulators(const float (&products)[count], unsigned (&upper)[count / 4][4],
                                          unsigned (&lower)[count / 4][4]) {
#pragma unroll
  for (int n = 0; n < count / 4; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float x = products[4 * n + i % 2 * 2 + i / 2];
      // h takes registers of its own: ptxas 13.0 runs products one by one that read those of other sums.
      upper[n][i] = __float_as_uint(x) & 0xffffe000U;
      lower[n][i] = __float_as_uint(lower_part(x));
    }
}
/// Starts sums += factors times the rows of boxes of kD rows, kKeys columns, in two groups, the second for l of the rows.
template <int kD>
__device__ inline void begin_sums(float (&sums)[kD / 2], const unsigned (&upper)[kKeys / kTerms][4],
                                  const unsigned (&lower)[kKeys / kTerms][4], const unsigned char* right,
                                  const unsigned char* lower_right) {
#pragma unroll
  for (int j = 0; j < kKeys; j += kTerms) {
    hopper::multiply<float, false>(sums, lower[j / kTerms], described(right, kD, 0, j), true);
    hopper::multiply<float, false>(sums, upper[j / kTerms], described(right, kD, 0, j), true);
  }
  hopper::commit_products();
#pragma unroll
  for (int j = 0; j < kKeys; j += kTerms)
    hopper::multiply<float, false>(sums, upper[j / kTerms], described(lower_right, kD, 0, j), true);
  hopper::commit_products();
}

/// Shared memory holds the queries of a block, then kBuffers buffers, which take the parts of a tile in turn: keys, l of
/// keys, values, l of values. A row of values is kKeys keys.
template <int kD>
struct Plan {
  static constexpr int kQueryBytes = kRows * kD * 4, kPartBytes = kKeys * kD * 4, kParts = 4;
  static constexpr int kSpare = 227 * 1024 - hopper::kSwizzleBytes - 512 - kQueryBytes;
  static constexpr int kBuffers = kSpare / kPartBytes < 8 ? kSpare / kPartBytes : 8;
  static constexpr std::size_t kBytes = kQueryBytes + kBuffers * kPartBytes + hopper::kSwizzleBytes;
};

/// Moves h of a warp's 16 queries from `row` on to registers, as left factors, and leaves l in place of the queries.
template <int kD>
__device__ inline void split_queries(unsigned char* queries, int row, unsigned (&upper)[kD / kTerms][4]) {
#pragma unroll
  for (int c = 0; c < kD; c += kTerms)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float* const at = left_element(queries, kRows, row, c, i);
      upper[c / kTerms][i] = __float_as_uint(*at);
      *at = lower_part(*at);
    }
}

/// Rows of a block are queries of one head. Part p of tile n is number 4 n + p of what passes through the buffers.
template <int kD>
__global__ void __launch_bounds__(kThreads, 1)
    attention_wgmma_tf32(Attention<float> a, const __grid_constant__ hopper::TensorMap q_map,
                         const __grid_constant__ hopper::TensorMap k_map,
                         const __grid_constant__ hopper::TensorMap lower_k_map,
                         const __grid_constant__ hopper::TensorMap v_map) {
  using Tiles = Plan<kD>;
  ASSAY_SHARED(by_wgmma::Passage<Tiles::kBuffers>, passage, [1]);
  unsigned char* const queries = hopper::boxes_of_block();
  const auto part = [&](int n) { return queries + Tiles::kQueryBytes + n % Tiles::kBuffers * Tiles::kPartBytes; };
  const int s = static_cast<int>(a.s), b = static_cast<int>(blockIdx.z), h = static_cast<int>(blockIdx.y);
  // Later blocks see more keys: start them first.
  const int block_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kRows;
  const auto keys_of = [&](int row) { return row < s ? static_cast<int>(seen_by(a, b, row)) : 0; };
  const int tiles = (keys_of(min(s, block_row + kRows) - 1) + kKeys - 1) / kKeys;

  if (threadIdx.x == 0) passage[0].initialize(kConsumers);
  __syncthreads();

  if (threadIdx.x < kGroupThreads) {
    hopper::release_registers<24>();
    if (threadIdx.x > 0 || tiles == 0) return;
    hopper::arrive_expecting(passage[0].own, Tiles::kQueryBytes);
    for (int c = 0; c < kD; c += kBox)
      hopper::copy_box(queries + c / kBox * kRows * hopper::kRowBytes, q_map, passage[0].own, c, block_row, h, b);
    const int g = h / static_cast<int>(a.group), head = b * static_cast<int>(a.kv_heads) + g;
    const auto copy_keys = [&](int n, const hopper::TensorMap& map) {
      hopper::Barrier& full = passage[0].begin(n, Tiles::kPartBytes);
      for (int c = 0; c < kD; c += kBox)
        hopper::copy_box(part(n) + c / kBox * kKeys * hopper::kRowBytes, map, full, c, n / Tiles::kParts * kKeys, g, b);
    };
    const auto copy_values = [&](int n, int lower) {
      hopper::Barrier& full = passage[0].begin(n, Tiles::kPartBytes);
      for (int j = 0; j < kKeys; j += kBox)
        hopper::copy_box(part(n) + j / kBox * kD * hopper::kRowBytes, v_map, full, n / Tiles::kParts * kKeys + j, 0,
                         head, lower);
    };
    for (int n = 0; n < Tiles::kParts * tiles; n += Tiles::kParts) {
      copy_keys(n, k_map);
      copy_keys(n + 1, lower_k_map);
      copy_values(n + 2, 0);
      copy_values(n + 3, 1);
    }
    return;
  }

  hopper::take_registers<240>();
  // As one lane has it, so that the compiler knows it to be the same for a warp.
  const int consumer = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / kGroupThreads - 1, 0);
  const int y = consumer * kGroupRows, own_y = (static_cast<int>(threadIdx.x) - kGroupThreads) / 32 * 16;
  const int row0 = block_row + own_y;
  const int seen[2] = {keys_of(row0 + output_row(0)), keys_of(row0 + output_row(2))};
  // All rows of the warpgroup see the keys before this one.
  const int all_see = block_row + y + kGroupRows <= s ? keys_of(block_row + y) : 0;
  by_wgmma::Softmax<false> softmax{a.scale * kLog2E};
  float sums[kD / 2] = {}, scores[kKeys / 2];
  unsigned upper_queries[kD / kTerms][4], upper_weights[kKeys / kTerms][4], lower_weights[kKeys / kTerms][4];

  if (tiles > 0) {
    hopper::wait(passage[0].own, 0);
    split_queries<kD>(queries, own_y, upper_queries);
    hopper::fence_proxy_async();
    hopper::named_barrier(1 + static_cast<unsigned>(consumer), kGroupThreads);
  }
  for (int tile = 0; tile < tiles; ++tile) {
    const int keys = Tiles::kParts * tile, lower_keys = keys + 1, values = keys + 2, lower_values = keys + 3;
    passage[0].await(keys);
    passage[0].await(lower_keys);
    hopper::fence_products(upper_queries, scores);
#pragma unroll
    for (int c = 0; c < kD; c += kTerms) {
      const std::uint64_t right = described(part(keys), kKeys, 0, c);
      hopper::multiply<float, false, false>(scores, described(queries, kRows, y, c), right, c > 0);
      hopper::multiply<float, false>(scores, upper_queries[c / kTerms], right, true);
    }
    hopper::commit_products();
#pragma unroll
    for (int c = 0; c < kD; c += kTerms)
      hopper::multiply<float, false>(scores, upper_queries[c / kTerms], described(part(lower_keys), kKeys, 0, c), true);
    hopper::commit_products();
    hopper::wait_products<1>();
    passage[0].release(keys);
    hopper::complete_products(scores);
    passage[0].release(lower_keys);

    if (all_see < (tile + 1) * kKeys) by_wgmma::hide_keys(scores, seen, tile * kKeys);
    softmax.weigh(scores);
    softmax.rescale(sums);
    split_accumulators(scores, upper_weights, lower_weights);
    passage[0].await(values);
    passage[0].await(lower_values);
    hopper::fence_products(sums, upper_weights, lower_weights);
    begin_sums<kD>(sums, upper_weights, lower_weights, part(values), part(lower_values));
    hopper::wait_products<1>();
    passage[0].release(values);
    hopper::complete_products(sums);
    passage[0].release(lower_values);
  }
  softmax.store(a, b, h, row0, sums);
}

/// Returns why the kernel takes no such tensors. A step of its products takes eight elements of a head.
inline std::optional<std::string> refuse(const Attention<float>& a) {
  if (a.d % 8 != 0) return "d = " + std::to_string(a.d) + " is no multiple of eight";
  if (a.d > by_wgmma::kLargestD)
    return "d = " + std::to_string(a.d) + " is more than " + std::to_string(by_wgmma::kLargestD);
  if (auto why = by_wgmma::refuse_heads("q", a.q, a.d)) return why;
  return by_wgmma::refuse_heads("k", a.k, a.d);
}

template <int kD>
void launch_blocks(const Attention<float>& a, const SplitRows& k, const SplitRows& v, Device& device) {
  const Index heads = a.kv_heads * a.group;
  hopper::launch_asynchronous(
      &attention_wgmma_tf32<kD>,
      {dim3(blocks_for(a.s, kRows), static_cast<unsigned>(heads), static_cast<unsigned>(a.batch)), dim3(kThreads),
       Plan<kD>::kBytes},
      device, a, by_wgmma::map_of_heads(a.q, a.batch, a.s, heads, a.d, kRows, device), map_of_rows(k, kKeys, device),
      map_of_lower(k, kKeys, device), map_of_transposed(v, kD, device));
}

/// Computes Attention<float>. Products are formed as mma_arithmetic says; weights are 2^(scale' score - scale' maximum)
/// with scale' = scale log2 e in one rounding. Reads keys and values s/128 times per head. Allocates scratch of three
/// times the keys, which the device frees after use. Throws Unavailable if refuse does or the device has not compute
/// capability 9.0. Source: Shah et al., FlashAttention-3, arXiv:2407.08608, section 3.1; Ootomo & Yokota,
/// arXiv:2203.03341, for products in parts.
inline void run(const Attention<float>& a, Device& device) {
  hopper::need_hopper("attention_wgmma_tf32", device);
  if (auto why = refuse(a)) throw Unavailable("attention_wgmma_tf32", *why);
  if (a.batch == 0 || a.s == 0) return;
  SplitRows k{a.k, a.lengths, a.batch, a.t, a.kv_heads, a.d}, v{a.v, a.lengths, a.batch, a.t, a.kv_heads, a.d};
  const Buffer scratch =
      device.allocate(static_cast<std::size_t>(k.lower_size() + 2 * v.transposed_size()) * sizeof(float));
  k.lower = static_cast<float*>(scratch.address());
  v.transposed = k.lower + k.lower_size();
  split(k, device);
  split(v, device);
  if (a.d <= 64) launch_blocks<64>(a, k, v, device);
  else launch_blocks<128>(a, k, v, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE::by_wgmma_tf32
