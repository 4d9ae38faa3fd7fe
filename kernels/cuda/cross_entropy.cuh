// Rows of the cross-entropy and their gradients, a block per row; and the total, by one block.
#pragma once

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// logits, gradient (rows, classes): rows dense, at i * ld + j and i * gradient_ld + j; other tensors are dense.
/// Outputs share no memory with inputs. cross_entropy forms no gradient.
template <class S>
struct CrossEntropy {
  Index rows, classes;
  const S* logits;
  Index ld;
  const std::int32_t* targets;
  const float* weights;
  float *loss, *total, *logsumexp, *normalizer;
  bool mean, aligned;
  S* gradient = nullptr;
  Index gradient_ld = 0;
  bool gradient_aligned = false;
};

/// Returns scale (exp(logit - shift) - [at_target]): an element of the gradient, where shift is the row's logsumexp.
__device__ inline float logit_gradient(float logit, float shift, bool at_target, float scale) {
  const float p = expf(logit - shift);
  return (at_target ? p - 1.0f : p) * scale;
}

/// The maximum of a row's logits, and the logarithm of sum_j exp(x[j] - maximum).
struct RowSum {
  float maximum, log_sum;
};

/// Returns the sum of a row x of n in one pass, in every thread of its block. A thread rescales its sum when its maximum
/// grows, at most once per 512 entries of the row, and once more for the row's maximum (softmax.cu gives the source).
/// Elements past the end count as -inf. Error: the contract's bound; the order depends on n alone.
template <class S>
__device__ inline RowSum sum_row(const S* x, Index n, bool aligned, float* tops, float* sums) {
  constexpr int kLoadsInFlight = 4;  // loads of four elements in flight together
  const Index step = Index{blockDim.x} * 4;
  float top = -INFINITY, sum = 0.0f;
  for (Index j = Index{threadIdx.x} * 4; j < n; j += kLoadsInFlight * step) {
    float4 v[kLoadsInFlight];
    float grown = top;
#pragma unroll
    for (int i = 0; i < kLoadsInFlight; ++i) v[i] = load4(x, j + i * step, n, aligned, -INFINITY);
#pragma unroll
    for (int i = 0; i < kLoadsInFlight; ++i) grown = fmaxf(fmaxf(grown, fmaxf(v[i].x, v[i].y)), fmaxf(v[i].z, v[i].w));
    if (top < grown) sum *= expf(top - grown);
    top = grown;
    const float shift = top == -INFINITY ? 0.0f : top;  // -inf only so far: the sum stays 0, or NaN after a NaN
#pragma unroll
    for (int i = 0; i < kLoadsInFlight; ++i)
      sum += expf(v[i].x - shift) + expf(v[i].y - shift) + (expf(v[i].z - shift) + expf(v[i].w - shift));
  }
  const float m = block_reduce(top, Max{}, tops);
  sum *= expf(top - m);  // NaN if the whole row is -inf or the row holds +inf
  return {m, logf(block_reduce(sum, Add{}, sums))};
}

/// loss[i] = weights[y] ((m - x[y]) + log sum_j exp(x[j] - m)) and logsumexp[i]; with_gradient: gradient[i,j] =
/// weights[y] (exp(x[j] - logsumexp[i]) - [j = y]) / normalizer[0], too, in a second pass over the row.
template <class S, bool with_gradient>
__global__ void __launch_bounds__(256) cross_entropy_row_kernel(CrossEntropy<S> c) {
  ASSAY_SHARED(float, tops, [8]);
  ASSAY_SHARED(float, sums, [8]);
  const Index n = c.classes, row = blockIdx.x;
  const S* const x = c.logits + row * c.ld;
  const RowSum all = sum_row(x, n, c.aligned, tops, sums);
  const Index y = c.targets[row];
  const float weight = c.weights[y], logsumexp = all.maximum + all.log_sum;
  if (threadIdx.x == 0) {
    c.logsumexp[row] = logsumexp;
    c.loss[row] = weight * ((all.maximum - load(x[y])) + all.log_sum);
  }
  if constexpr (with_gradient) {
    S* const gradient = c.gradient + row * c.gradient_ld;
    const float scale = weight / c.normalizer[0];
    for (Index j = Index{threadIdx.x} * 4; j < n; j += Index{blockDim.x} * 4) {
      const float4 v = load4(x, j, n, c.aligned);
      store4(gradient, j, n, c.gradient_aligned,
             make_float4(
                 logit_gradient(v.x, logsumexp, j == y, scale), logit_gradient(v.y, logsumexp, j + 1 == y, scale),
                 logit_gradient(v.z, logsumexp, j + 2 == y, scale), logit_gradient(v.w, logsumexp, j + 3 == y, scale)));
    }
  }
}

/// normalizer = sum of the targets' weights, or 1; of_losses: total = sum of the losses over it, too.
template <class S, bool of_losses>
__global__ void __launch_bounds__(256) cross_entropy_total_kernel(CrossEntropy<S> c) {
  ASSAY_SHARED(float, losses, [8]);
  ASSAY_SHARED(float, weights, [8]);
  float loss = 0.0f, weight = 0.0f;
  for (Index i = threadIdx.x; i < c.rows; i += blockDim.x) {
    if constexpr (of_losses) loss += c.loss[i];
    weight += c.weights[c.targets[i]];
  }
  if constexpr (of_losses) loss = block_reduce(loss, Add{}, losses);
  weight = block_reduce(weight, Add{}, weights);
  if (threadIdx.x != 0) return;
  c.normalizer[0] = c.mean ? weight : 1.0f;
  if constexpr (of_losses) c.total[0] = c.mean ? loss / weight : loss;
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
