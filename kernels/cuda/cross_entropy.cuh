// Weighted cross-entropy, one block a row, then one block for the total.
#pragma once

#include "kernels/cuda/block_reduce.cuh"
#include "ops/cross_entropy.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class LossFault {
  none,
  tail_dropped,
  padded_with_zero,
  no_barrier,
  half_the_lanes_lost,
  first_row_only,
  mean_over_rows,
  one_warp_of_rows
};

template <LossFault fault>
inline constexpr ReduceFault loss_reduction =
    fault == LossFault::no_barrier            ? ReduceFault::no_barrier
    : fault == LossFault::half_the_lanes_lost ? ReduceFault::half_the_lanes_lost
                                              : ReduceFault::none;

/// logits (rows, classes): rows dense, at i * ld + j; the rest is dense. Outputs share no memory with inputs.
struct CrossEntropy {
  Index rows, classes;
  const float* logits;
  Index ld;
  const std::int32_t* targets;
  const float* weights;
  float *loss, *total, *logsumexp, *normalizer;
  bool mean;
};

/// loss[i] = weights[y] ((m - x[y]) + log sum_j exp(x[j] - m)). Two passes over the row, of which the second finds it
/// in the cache. Elements past the end count as -inf. Error: the contract's bound; the order depends on classes alone.
template <LossFault fault>
__global__ void __launch_bounds__(256) cross_entropy_row_kernel(CrossEntropy c) {
  ASSAY_SHARED(float, tops, [8]);
  ASSAY_SHARED(float, sums, [8]);
  const Index row = blockIdx.x;
  const float* const x = c.logits + row * c.ld;
  const bool aligned = aligned16(x);
  const float beyond = fault == LossFault::padded_with_zero ? 0.0f : -INFINITY;
  const Index n = fault == LossFault::tail_dropped && c.classes > 4 ? c.classes / 4 * 4 : c.classes;
  float top = -INFINITY;
  for (Index j = Index{threadIdx.x} * 4; j < n; j += Index{blockDim.x} * 4) {
    const float4 v = load4(x, n, j, aligned, beyond);
    top = fmaxf(fmaxf(top, fmaxf(v.x, v.y)), fmaxf(v.z, v.w));
  }
  const float m = block_reduce<loss_reduction<fault>>(top, Larger{}, tops);
  float sum = 0.0f;
  for (Index j = Index{threadIdx.x} * 4; j < n; j += Index{blockDim.x} * 4) {
    const float4 v = load4(x, n, j, aligned, beyond);
    sum += expf(v.x - m);
    // What is past the end is no part of the sum, even where m is -inf.
    if (j + 1 < n || fault == LossFault::padded_with_zero) sum += expf(v.y - m);
    if (j + 2 < n || fault == LossFault::padded_with_zero) sum += expf(v.z - m);
    if (j + 3 < n || fault == LossFault::padded_with_zero) sum += expf(v.w - m);
  }
  const float log_sum = logf(block_reduce<loss_reduction<fault>>(sum, Plus{}, sums));
  if (threadIdx.x != 0) return;
  const Index y = c.targets[row];
  c.logsumexp[row] = m + log_sum;
  c.loss[row] = c.weights[y] * ((m - x[y]) + log_sum);
}

/// total = sum of the losses over the sum of the targets' weights, or over 1.
template <LossFault fault>
__global__ void __launch_bounds__(256) cross_entropy_total_kernel(CrossEntropy c) {
  ASSAY_SHARED(float, losses, [8]);
  ASSAY_SHARED(float, weights, [8]);
  float loss = 0.0f, weight = 0.0f;
  const Index rows = fault == LossFault::one_warp_of_rows ? min(c.rows, Index{32}) : c.rows;
  for (Index i = threadIdx.x; i < rows; i += blockDim.x) {
    loss += c.loss[i];
    weight += c.weights[c.targets[i]];
  }
  loss = block_reduce<loss_reduction<fault>>(loss, Plus{}, losses);
  weight = block_reduce<loss_reduction<fault>>(weight, Plus{}, weights);
  if (threadIdx.x != 0) return;
  if (fault == LossFault::mean_over_rows) weight = static_cast<float>(c.rows);
  c.normalizer[0] = c.mean ? weight : 1.0f;
  c.total[0] = c.mean ? loss / weight : loss;
}

template <LossFault fault = LossFault::none>
void cross_entropy_block_per_row(const ops::CrossEntropyArgs& args, Device& device) {
  const CrossEntropy c{
      args.rows,           args.classes,     args.logits.data(), args.logits.stride(0), args.targets.data(),
      args.weights.data(), args.loss.data(), args.total.data(),  args.logsumexp.data(), args.normalizer.data(),
      args.reduction == 1};
  const auto rows = static_cast<unsigned>(fault == LossFault::first_row_only ? 1 : args.rows);
  launch(&cross_entropy_row_kernel<fault>, {dim3(rows), dim3(row_threads(args.classes, 4))}, device, c);
  launch(&cross_entropy_total_kernel<fault>, {dim3(1), dim3(row_threads(args.rows, 1))}, device, c);
}

template <LossFault fault = LossFault::none>
Kernel cross_entropy_kernel(std::string_view id) {
  return {.op = "cross_entropy",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda},
          .source = "kernels/cuda/cross_entropy.cuh",
          .summary = "one block a row, maximum first; one block for the total",
          .run = &run_typed<ops::CrossEntropyArgs, &cross_entropy_block_per_row<fault>>};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
