// Gradients of attention by warps: one a row of dq, one a key.
#pragma once

#include "kernels/cuda/attention_backward.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// p and ds of a row and a key that it sees, by one thread.
struct Pair {
  float weight, ds;
};
template <AttentionBackwardFault fault, class S>
__device__ Pair pair_of(const AttentionBackward<S>& p, Index b, Index g, Index row, Index j, const QueryRow& known) {
  const Attention<S>& a = p.forward;
  const Index h = head_of<fault>(a, g, row), i = row / a.group;
  const S *const q = a.q.at(b, i, h), *const dy = p.dy.at(b, i, h), *const k = a.k.at(b, j, g), *const v = a.v.at(b, j, g);
  float score = 0.0f, dp = 0.0f;
  for (Index c = 0; c < a.d; ++c) {
    score += load(q[c]) * load(k[c]);
    dp += load(dy[c]) * load(v[c]);
  }
  const float weight = expf(score * a.scale - known.logsumexp);
  return {weight, weight * (dp - known.along)};
}

/// dq of one row by a warp: a lane for each of 32 keys at a time, then for every 32nd element.
template <AttentionBackwardFault fault, class S>
__device__ void query_gradient(const AttentionBackward<S>& p, Index b, Index g, Index row) {
  const Attention<S>& a = p.forward;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const QueryRow known = query_row<fault>(p, b, g, row, a.s * a.group);
  float sums[kLargestD / 32] = {};
  for (Index first = 0; first < known.keys; first += 32) {
    const float own = first + lane < known.keys ? pair_of<fault>(p, b, g, row, first + lane, known).ds : 0.0f;
    for (int n = 0; n < 32 && first + n < known.keys; ++n) {
      const float ds = __shfl_sync(0xffffffffU, own, n);
      const S* const k = a.k.at(b, first + n, g);
#pragma unroll
      for (int e = 0; e < kLargestD / 32; ++e)
        if (lane + 32 * e < a.d) sums[e] += ds * load(k[lane + 32 * e]);
    }
  }
  S* const dq = p.dq.at(b, row / a.group, head_of<fault>(a, g, row));
#pragma unroll
  for (int e = 0; e < kLargestD / 32; ++e)
    if (lane + 32 * e < a.d) store(dq[lane + 32 * e], sums[e] * (fault == AttentionBackwardFault::query_scale_missing ? 1.0f : a.scale));
}

/// `columns` elements from `from` on of dk and dv of one key by a warp: a lane for each of 32 rows at a time, then for every 32nd
/// element.
template <AttentionBackwardFault fault, class S>
__device__ void key_gradients(const AttentionBackward<S>& p, Index b, Index g, Index j, Index from, Index columns) {
  const Attention<S>& a = p.forward;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Index rows = a.s * a.group;
  float of_key[kLargestD / 32] = {}, of_value[kLargestD / 32] = {};
  for (Index first = j < keys_of<fault>(a, b) ? first_row_of_keys<fault>(a, b, j) : rows; first < rows; first += 32) {
    const QueryRow known = query_row<fault>(p, b, g, first + lane, rows);
    const bool sees = j < known.keys;
    const Pair own = sees ? pair_of<fault>(p, b, g, first + lane, j, known) : Pair{0.0f, 0.0f};
    const unsigned seeing = __ballot_sync(0xffffffffU, sees);
    for (int n = 0; n < 32; ++n) {
      if (!(seeing >> n & 1U)) continue;
      const float weight = __shfl_sync(0xffffffffU, own.weight, n), ds = __shfl_sync(0xffffffffU, own.ds, n);
      const Index i = (first + n) / a.group, h = head_of<fault>(a, g, first + n);
      const S *const q = a.q.at(b, i, h) + from, *const dy = p.dy.at(b, i, h) + from;
#pragma unroll
      for (int e = 0; e < kLargestD / 32; ++e)
        if (lane + 32 * e < columns) {
          of_key[e] += ds * load(q[lane + 32 * e]);
          of_value[e] += weight * load(dy[lane + 32 * e]);
        }
    }
  }
  S *const dk = p.dk.at(b, j, g) + from, *const dv = p.dv.at(b, j, g) + from;
#pragma unroll
  for (int e = 0; e < kLargestD / 32; ++e)
    if (lane + 32 * e < columns) {
      store(dk[lane + 32 * e], of_key[e] * (fault == AttentionBackwardFault::key_scale_missing ? 1.0f : a.scale));
      store(dv[lane + 32 * e], of_value[e]);
    }
}

/// A warp a row of dq.
template <class S, AttentionBackwardFault fault>
__global__ void __launch_bounds__(32 * kWarpQueries) attention_backward_warp_queries(AttentionBackward<S> p) {
  const Index rows = p.forward.s * p.forward.group, number = Index{blockIdx.x} * kWarpQueries + static_cast<int>(threadIdx.x) / 32;
  const Index at = number / rows;
  if (at < p.forward.batch * p.forward.kv_heads) query_gradient<fault>(p, at / p.forward.kv_heads, at % p.forward.kv_heads, number % rows);
}
/// A warp a key.
template <class S, AttentionBackwardFault fault>
__global__ void __launch_bounds__(32 * kWarpQueries) attention_backward_warp_keys(AttentionBackward<S> p) {
  const Index t = p.forward.t, number = Index{blockIdx.x} * kWarpQueries + static_cast<int>(threadIdx.x) / 32, at = number / t;
  if (at < p.forward.batch * p.forward.kv_heads)
    key_gradients<fault>(p, at / p.forward.kv_heads, at % p.forward.kv_heads, number % t, 0, p.forward.d);
}

template <class S, AttentionBackwardFault fault = AttentionBackwardFault::none, class Args>
void run_attention_backward_warp(const Args& args, Device& device) {
  with_row_sums<S, fault>(args, device, [&](const AttentionBackward<S>& p) {
    const Index heads = p.forward.batch * args.kv_heads, queries = heads * args.s * p.forward.group, keys = heads * args.t;
    const dim3 threads(32 * kWarpQueries);
    if (queries > 0) launch(&attention_backward_warp_queries<S, fault>, {dim3(blocks_for(queries, kWarpQueries)), threads}, device, p);
    if (keys > 0) launch(&attention_backward_warp_keys<S, fault>, {dim3(blocks_for(keys, kWarpQueries)), threads}, device, p);
  });
}

/// The registry's row. Args: AttentionBackwardArgs.
template <class Args, class S, AttentionBackwardFault fault = AttentionBackwardFault::none>
Kernel attention_backward_warp_row(std::string_view id) {
  return {.op = "attention_backward",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda},
          .storage = dtype_of<S>,
          .source = "kernels/cuda/attention_backward_warp.cuh",
          .summary = "a warp a query for dq, and a key for dk and dv, 32 pairs at a time",
          .run = [](const Call& call, Device& device) { run_attention_backward_warp<S, fault>(Args::unpack(call), device); }};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
