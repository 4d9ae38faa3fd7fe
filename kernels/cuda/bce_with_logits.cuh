// Binary cross-entropy of logits, one block a row.
#pragma once

#include "kernels/cuda/block_reduce.cuh"
#include "ops/bce_with_logits.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class LabelFault { none, tail_dropped, no_barrier, first_warp_only, first_row_only, sum_for_mean };

template <LabelFault fault>
inline constexpr ReduceFault label_reduction = fault == LabelFault::no_barrier        ? ReduceFault::no_barrier
                                               : fault == LabelFault::first_warp_only ? ReduceFault::first_warp_only
                                                                                      : ReduceFault::none;

/// logits and targets (rows, classes): rows dense, at i * ld + j and i * targets_ld + j; the rest is dense.
struct Labels {
  Index rows, classes;
  const float* logits;
  Index ld;
  const float* targets;
  Index targets_ld;
  const float* pos_weight;
  float* loss;
};

/// w t softplus(-x) + (1 - t) softplus(x), softplus(z) = max(z, 0) + log1p(exp(-|z|)).
__device__ inline float label_loss(float x, float t, float w) {
  const float beside = log1pf(expf(-fabsf(x)));
  return w * t * (fmaxf(-x, 0.0f) + beside) + (1.0f - t) * (fmaxf(x, 0.0f) + beside);
}

/// loss[i] = sum_j label_loss / classes. Four elements a thread at a time; past the end t = 1 with weight 0 adds
/// nothing.
template <LabelFault fault>
__global__ void __launch_bounds__(256) bce_row_kernel(Labels c) {
  ASSAY_SHARED(float, sums, [8]);
  const Index row = blockIdx.x;
  const float* const x = c.logits + row * c.ld;
  const float* const t = c.targets + row * c.targets_ld;
  const bool x_aligned = aligned16(x), t_aligned = aligned16(t), w_aligned = aligned16(c.pos_weight);
  const Index n = fault == LabelFault::tail_dropped && c.classes > 4 ? c.classes / 4 * 4 : c.classes;
  float sum = 0.0f;
  for (Index j = Index{threadIdx.x} * 4; j < n; j += Index{blockDim.x} * 4) {
    const float4 vx = load4(x, n, j, x_aligned, 0.0f), vt = load4(t, n, j, t_aligned, 1.0f),
                 vw = load4(c.pos_weight, n, j, w_aligned, 0.0f);
    sum += (label_loss(vx.x, vt.x, vw.x) + label_loss(vx.y, vt.y, vw.y)) +
           (label_loss(vx.z, vt.z, vw.z) + label_loss(vx.w, vt.w, vw.w));
  }
  sum = block_reduce<label_reduction<fault>>(sum, Plus{}, sums);
  if (threadIdx.x == 0) c.loss[row] = fault == LabelFault::sum_for_mean ? sum : sum / static_cast<float>(c.classes);
}

template <LabelFault fault = LabelFault::none>
void bce_block_per_row(const ops::BceWithLogitsArgs& args, Device& device) {
  if (args.rows == 0) return;
  const Labels c{args.rows,           args.classes,           args.logits.data(),     args.logits.stride(0),
                 args.targets.data(), args.targets.stride(0), args.pos_weight.data(), args.loss.data()};
  const auto rows = static_cast<unsigned>(fault == LabelFault::first_row_only ? 1 : args.rows);
  launch(&bce_row_kernel<fault>, {dim3(rows), dim3(row_threads(args.classes, 4))}, device, c);
}

template <LabelFault fault = LabelFault::none>
Kernel bce_kernel(std::string_view id) {
  return {.op = "bce_with_logits",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda},
          .source = "kernels/cuda/bce_with_logits.cuh",
          .summary = "one block a row",
          .run = &run_typed<ops::BceWithLogitsArgs, &bce_block_per_row<fault>>};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
