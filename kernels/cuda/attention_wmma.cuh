// Attention on 16-bit tensor cores through the WMMA API: 64 queries by 64 keys a block, 16 queries a warp.
#pragma once

#include <mma.h>

#include "kernels/cuda/attention.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

namespace wmma = nvcuda::wmma;

/// The type by which WMMA knows a storage format.
template <class S>
struct WmmaElement {
  using Type = S;
};
#if defined(__CUDACC__)
template <>
struct WmmaElement<Half> {
  using Type = __half;
};
template <>
struct WmmaElement<BFloat16> {
  using Type = __nv_bfloat16;
};
#endif

/// Weights are rounded to the storage format before they multiply values; products are exact, sums truncated (kTf32Arithmetic
/// has what is known of tensor cores).
template <class S>
constexpr Arithmetic wmma_arithmetic() {
  return {.inputs = std::is_same_v<S, Half> ? Format::f16 : Format::bf16,
          .accumulation = Rounding::toward_zero,
          .block = 4,
          .functions = FunctionLibrary::cuda,
          .online_tile = 64};
}

/// Rows of d elements, padded to kD, at a pitch by which fragments' loads meet different banks. A row of 64 scores is
/// overwritten by its weights, which are half as long.
template <int kD>
struct WmmaTiles {
  static constexpr int kQueries = 64, kKeys = 64, kThreads = 128, kPitch = kD + 8, kScorePitch = 68, kWeightPitch = 2 * kScorePitch;
  static constexpr std::size_t kRowBytes = 2 * 64 * kPitch;
  static constexpr std::size_t kBytes = 3 * kRowBytes + sizeof(float) * (kQueries * kScorePitch + kQueries + 4);
};

/// rows[r] = row(r), r < count, zeros behind and past d; eight elements at a time where rows are aligned to four. `watched`
/// becomes 1 if a row from `from` on holds NaN or Inf.
template <int kD, class S, class Row>
__device__ void load_16_bits(S* rows, Index count, Index d, bool aligned, Row row, Index from = 0, int* watched = nullptr) {
  constexpr int kFours = kD / 4;
  for (int e = static_cast<int>(threadIdx.x); e < 64 * kFours; e += WmmaTiles<kD>::kThreads) {
    const int r = e / kFours, c = e % kFours * 4;
    Four<S> x{};
    if (r < count && c < d) {
      const S* const from_row = row(r);
      if (aligned && c + 4 <= d) x = *reinterpret_cast<const Four<S>*>(from_row + c);
      else
        for (int n = 0; n < 4 && c + n < d; ++n) x.at[n] = from_row[c + n];
    }
    *reinterpret_cast<Four<S>*>(rows + r * WmmaTiles<kD>::kPitch + c) = x;
    if (watched != nullptr && r >= from)
      for (const S& v : x.at)
        if (!(load(v) * 0.0f == 0.0f)) *watched = 1;
  }
}

template <class S, int kD, AttentionFault fault>
__global__ void __launch_bounds__(128) attention_wmma(Attention<S> a) {
  using Tiles = WmmaTiles<kD>;
  using T = typename WmmaElement<S>::Type;
  S* const queries = dynamic_shared<S>();
  S* const keys = queries + 64 * Tiles::kPitch;
  S* const values = keys + 64 * Tiles::kPitch;
  float* const all_scores = reinterpret_cast<float*>(values + 64 * Tiles::kPitch);
  float* const all_factors = all_scores + Tiles::kQueries * Tiles::kScorePitch;
  int* const special = reinterpret_cast<int*>(all_factors + Tiles::kQueries);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  // Within the warp: 16 rows, of which each lane has half of one.
  float* const scores = all_scores + 16 * warp * Tiles::kScorePitch;
  S* const weights = reinterpret_cast<S*>(scores);
  float* const factors = all_factors + 16 * warp;
  const int own_row = lane % 16, own_first = lane / 16 * 32;
  const Index first_row = (Index{gridDim.x} - 1 - blockIdx.x) * Tiles::kQueries, rows = a.s * a.group, b = blockIdx.z, g = blockIdx.y;
  const auto head = [&](Index row) { return fault == AttentionFault::heads_by_modulo ? row % a.group * a.kv_heads + g : g * a.group + row % a.group; };
  const Index count = rows - first_row < Tiles::kQueries ? rows - first_row : Tiles::kQueries;
  const Index least = seen_by<fault>(a, b, first_row / a.group), most = seen_by<fault>(a, b, (first_row + count - 1) / a.group);
  const Index row = first_row + 16 * warp + own_row;
  const Index seen = row < rows ? seen_by<fault>(a, b, row / a.group) : 0;

  load_16_bits<kD>(queries, count, a.d, a.q_aligned, [&](int r) { return a.q.at(b, (first_row + r) / a.group, head(first_row + r)); });
  if (threadIdx.x == 0) *special = 0;
  // Which row of the tile each element of an accumulator is of: unspecified, so it is asked with a matrix of row numbers.
  using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
  Accumulator sums[kD / 16], numbers;
  for (int c = lane; c < 16 * 16; c += 32) scores[c / 16 * Tiles::kScorePitch + c % 16] = static_cast<float>(c / 16);
  __syncwarp();
  wmma::load_matrix_sync(numbers, scores, Tiles::kScorePitch, wmma::mem_row_major);
#pragma unroll
  for (int c = 0; c < kD / 16; ++c) wmma::fill_fragment(sums[c], 0.0f);
  float largest = -INFINITY, total = 0.0f;
  for (Index first = 0; first < (fault == AttentionFault::tile_tail_dropped ? most / 64 * 64 : most); first += Tiles::kKeys) {
    if constexpr (fault != AttentionFault::no_barrier_before_keys) __syncthreads();  // the tiles before are done with
    const Index here = most - first < Tiles::kKeys ? most - first : Tiles::kKeys;
    load_16_bits<kD>(keys, here, a.d, a.k_aligned, [&](int r) { return a.k.at(b, first + r, g); });
    load_16_bits<kD>(values, here, a.d, a.v_aligned, [&](int r) { return a.v.at(b, first + r, g); }, least - first,
                     least < first + here ? special : nullptr);
    if constexpr (fault != AttentionFault::no_barrier_before_values) __syncthreads();
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      Accumulator dots;
      wmma::fill_fragment(dots, 0.0f);
#pragma unroll
      for (int c = 0; c < kD; c += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right;
        wmma::load_matrix_sync(left, reinterpret_cast<const T*>(queries + 16 * warp * Tiles::kPitch + c), Tiles::kPitch);
        wmma::load_matrix_sync(right, reinterpret_cast<const T*>(keys + 16 * j * Tiles::kPitch + c), Tiles::kPitch);
        wmma::mma_sync(dots, left, right, dots);
      }
      wmma::store_matrix_sync(scores + 16 * j, dots, Tiles::kScorePitch, wmma::mem_row_major);
    }
    __syncwarp();
    const int own = static_cast<int>(seen - first < 0 ? 0 : seen - first < 64 ? seen - first : 64);
    const Larger larger;
    float score[32], grown = -INFINITY;
#pragma unroll
    for (int j = 0; j < 32; j += 4) {
      const float4 four = *reinterpret_cast<const float4*>(scores + own_row * Tiles::kScorePitch + own_first + j);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        score[j + e] = at(four, e) * (fault == AttentionFault::scale_by_d ? rsqrtf(static_cast<float>(a.d)) : a.scale);
        if (own_first + j + e < own) grown = larger(grown, score[j + e]);
      }
    }
    grown = larger(grown, __shfl_xor_sync(0xffffffffU, grown, 16));
    grown = larger(largest, grown);
    const float shift = grown == -INFINITY ? 0.0f : grown;
    const float factor = largest < grown && largest > -INFINITY ? expf(largest - grown) : 1.0f;
    largest = grown;
    if (fault != AttentionFault::sum_not_rescaled) total *= factor;
    factors[own_row] = factor;  // the same from both lanes of the row
    // All scores have been read: weights may overwrite them.
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 32; j += 4) {
      Four<S> four;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float weight = own_first + j + e < own ? expf(score[j + e] - shift) : 0.0f;
        total += weight;
        store(four.at[e], weight);
      }
      *reinterpret_cast<Four<S>*>(weights + own_row * Tiles::kWeightPitch + own_first + j) = four;
    }
    __syncwarp();
    if (__any_sync(0xffffffffU, factor != 1.0f) && fault != AttentionFault::mean_not_rescaled) {
#pragma unroll
      for (int e = 0; e < numbers.num_elements; ++e) {
        const float of_row = factors[static_cast<int>(numbers.x[e])];
#pragma unroll
        for (int c = 0; c < kD / 16; ++c) sums[c].x[e] *= of_row;
      }
    }
#pragma unroll
    for (int j = 0; j < 64; j += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
      wmma::load_matrix_sync(left, reinterpret_cast<const T*>(weights + j), Tiles::kWeightPitch);
#pragma unroll
      for (int c = 0; c < kD / 16; ++c) {
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right;
        wmma::load_matrix_sync(right, reinterpret_cast<const T*>(values + j * Tiles::kPitch + 16 * c), Tiles::kPitch);
        wmma::mma_sync(sums[c], left, right, sums[c]);
      }
    }
    __syncwarp();  // weights are done with
  }
  total += __shfl_xor_sync(0xffffffffU, total, 16);
  const bool nothing = total == 0.0f && fault != AttentionFault::masked_row_nan;
  __syncthreads();
  if (*special != 0 && fault != AttentionFault::masked_values_multiplied) {
    // Somewhere a weight of zero met NaN of a value that its query does not see: these rows once more, one by one.
    for (int r = warp; r < count; r += 4) attend_query<fault>(a, b, head(first_row + r), (first_row + r) / a.group);
    return;
  }
  if (lane < 16 && row < rows && fault != AttentionFault::logsumexp_unwritten)
    *a.logsumexp.at(b, row / a.group, head(row)) = nothing ? -INFINITY : largest + logf(total);
#pragma unroll
  for (int c = 0; c < kD / 16; ++c) {
    __syncwarp();
    wmma::store_matrix_sync(scores, sums[c], Tiles::kScorePitch, wmma::mem_row_major);
    __syncwarp();
    if (row >= rows) continue;
    S* const y = a.y.at(b, row / a.group, head(row));
#pragma unroll
    for (int e = lane / 16 * 8; e < lane / 16 * 8 + 8; ++e)
      if (16 * c + e < a.d) store(y[16 * c + e], nothing ? 0.0f : scores[own_row * Tiles::kScorePitch + e] / total);
  }
}

template <class S, int kD, AttentionFault fault>
void launch_attention_wmma(const Attention<S>& a, Device& device) {
  using Tiles = WmmaTiles<kD>;
  const dim3 grid(blocks_for(a.s * a.group, Tiles::kQueries), static_cast<unsigned>(a.kv_heads), static_cast<unsigned>(a.batch));
  launch(&attention_wmma<S, kD, fault>, {grid, dim3(Tiles::kThreads), Tiles::kBytes}, device, a);
}

/// Args: AttentionArgs. Throws Unavailable below compute capability 8.0.
template <class S, AttentionFault fault = AttentionFault::none, class Args>
void run_attention_wmma(const Args& args, Device& device) {
#if defined(__CUDACC__)
  if (const int capability = static_cast<CudaDevice&>(device).compute_capability(); capability < 80)
    throw Unavailable("attention_wmma", "bfloat16 tensor cores need compute capability 8.0; this device has " +
                                            std::to_string(capability / 10) + "." + std::to_string(capability % 10));
#endif
  Attention<S> a = attention_of<S>(args);
  if (fault == AttentionFault::first_sequence_only) a.batch = std::min<Index>(a.batch, 1);
  if (a.batch == 0 || a.s == 0) return;
  if (a.d <= 64) launch_attention_wmma<S, 64, fault>(a, device);
  else if (a.d <= 128) launch_attention_wmma<S, 128, fault>(a, device);
  else launch_attention_wmma<S, 256, fault>(a, device);
}

/// The registry's row. Args: AttentionArgs.
template <class Args, class S, AttentionFault fault = AttentionFault::none>
Kernel attention_wmma_row(std::string_view id) {
  return {.op = "attention",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = wmma_arithmetic<S>(),
          .storage = dtype_of<S>,
          .source = "kernels/cuda/attention_wmma.cuh",
          .summary = "16-bit tensor cores (WMMA 16x16x16), 64 queries by 64 keys a block, 16 queries a warp",
          .run = [](const Call& call, Device& device) { run_attention_wmma<S, fault>(Args::unpack(call), device); },
          .priority = 2};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
