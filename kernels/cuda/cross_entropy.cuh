// Rows of the cross-entropy and their gradients, a block per row; and the total, by one block.
#pragma once

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/packs.cuh"

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
  bool mean;
  S* gradient = nullptr;
  Index gradient_ld = 0;
};

/// Returns scale (exp(logit - shift) - [at_target]): an element of the gradient, where shift is the row's logsumexp.
__device__ inline float logit_gradient(float logit, float shift, bool at_target, float scale) {
  const float p = expf(logit - shift);
  return (at_target ? p - 1.0f : p) * scale;
}

inline constexpr int kPacksInFlight = 4;     ///< that a thread loads together
inline constexpr int kEntropyThreads = 512;  ///< most of a block

/// Packs at j, j + step, .. of a row, with `beyond` past its end.
template <class S>
struct Packs {
  Pack<S> at[kPacksInFlight];
};
template <bool whole, class S>
__device__ inline Packs<S> load_packs(const S* row, int j, int step, int n, S beyond = S{}) {
  Packs<S> packs;
#pragma unroll
  for (int i = 0; i < kPacksInFlight; ++i) packs.at[i] = load_pack<whole>(row, j + i * step, n, beyond);
  return packs;
}

/// Stores the gradients of these logits at the same places of a row.
template <bool whole, class S>
__device__ inline void store_gradients(const Packs<S>& logits, S* row, int j, int step, int n, float shift, int target,
                                       float scale) {
#pragma unroll
  for (int i = 0; i < kPacksInFlight; ++i) {
    Elements<S> v = widened(logits.at[i]);
#pragma unroll
    for (int e = 0; e < kPack<S>; ++e) v.at[e] = logit_gradient(v.at[e], shift, j + i * step + e == target, scale);
    store_pack<whole>(row, j + i * step, n, v);
  }
}

/// Returns exp(x) by a multiplication and the exponential of base 2, of which results below 2^-126 are zeros: for sums
/// of at least 1. Error: FunctionLibrary::cuda_exp2 (PTX ISA, ex2.approx.ftz.f32: 2 ulp).
__device__ inline float exp_of_sum(float x) {
  const float y = x * 1.44269504f;  // log2 e
#if defined(__CUDACC__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(y));
  return power;
#else
  return exp2f(y);
#endif
}

/// The maximum of a row's logits, and the logarithm of sum_j exp(x[j] - maximum).
struct RowSum {
  float maximum, log_sum;
};

/// Returns the sum of a row x of n in one pass, in every thread of its block. A thread rescales its sum when its maximum
/// grows, at most once per 512 entries of the row, and once more for the row's maximum (softmax.cu gives the source).
/// Elements past the end count as -inf. Error: the contract's bound; the order depends on n alone.
template <bool whole, class S>
__device__ inline RowSum sum_row(const S* x, int n, float* tops, float* sums) {
  const int step = static_cast<int>(blockDim.x) * kPack<S>;
  S none;
  store(none, -INFINITY);
  float top = -INFINITY, sum = 0.0f;
  for (int j = static_cast<int>(threadIdx.x) * kPack<S>; j < n; j += kPacksInFlight * step) {
    const Packs<S> packs = load_packs<whole>(x, j, step, n, none);
    Elements<S> v[kPacksInFlight];
    float grown = top;
#pragma unroll
    for (int i = 0; i < kPacksInFlight; ++i) {
      v[i] = widened(packs.at[i]);
#pragma unroll
      for (int e = 0; e < kPack<S>; ++e) grown = fmaxf(grown, v[i].at[e]);
    }
    if (top < grown) sum *= exp_of_sum(top - grown);
    top = grown;
    const float shift = top == -INFINITY ? 0.0f : top;  // -inf only so far: the sum stays 0, or NaN after a NaN
#pragma unroll
    for (int i = 0; i < kPacksInFlight; ++i)
#pragma unroll
      for (int e = 0; e < kPack<S>; ++e) sum += exp_of_sum(v[i].at[e] - shift);
  }
  const float m = block_reduce(top, Max{}, tops);
  sum *= exp_of_sum(top - m);  // NaN if the whole row is -inf or the row holds +inf
  return {m, logf(block_reduce(sum, Add{}, sums))};
}

/// loss[i] = weights[y] ((m - x[y]) + log sum_j exp(x[j] - m)) and logsumexp[i]; with_gradient: gradient[i,j] =
/// weights[y] (exp(x[j] - logsumexp[i]) - [j = y]) / normalizer[0], too, in a second pass over the row.
template <class S, bool with_gradient, bool whole>
__global__ void __launch_bounds__(kEntropyThreads) cross_entropy_row_kernel(CrossEntropy<S> c) {
  ASSAY_SHARED(float, tops, [kEntropyThreads / 32]);
  ASSAY_SHARED(float, sums, [kEntropyThreads / 32]);
  const Index row = blockIdx.x;
  const int n = static_cast<int>(c.classes);
  const S* const x = c.logits + row * c.ld;
  let_next_begin();
  await_previous();
  const RowSum all = sum_row<whole>(x, n, tops, sums);
  const int y = c.targets[row];
  const float weight = c.weights[y], logsumexp = all.maximum + all.log_sum;
  if (threadIdx.x == 0) {
    c.logsumexp[row] = logsumexp;
    c.loss[row] = weight * ((all.maximum - load(x[y])) + all.log_sum);
  }
  if constexpr (with_gradient) {
    S* const gradient = c.gradient + row * c.gradient_ld;
    const int step = static_cast<int>(blockDim.x) * kPack<S>;
    const float scale = weight / c.normalizer[0];
    for (int j = static_cast<int>(threadIdx.x) * kPack<S>; j < n; j += kPacksInFlight * step)
      store_gradients<whole>(load_packs<whole>(x, j, step, n), gradient, j, step, n, logsumexp, y, scale);
  }
}

/// normalizer = sum of the targets' weights, or 1; of_losses: total = sum of the losses over it, too.
template <class S, bool of_losses>
__global__ void __launch_bounds__(1024) cross_entropy_total_kernel(CrossEntropy<S> c) {
  ASSAY_SHARED(float, losses, [32]);
  ASSAY_SHARED(float, weights, [32]);
  float loss = 0.0f, weight = 0.0f;
  let_next_begin();
  // No kernel writes weights and targets, so they are read before the losses are there.
  for (Index i = threadIdx.x; i < c.rows; i += blockDim.x) weight += c.weights[c.targets[i]];
  await_previous();
  if constexpr (of_losses) {
    for (Index i = threadIdx.x; i < c.rows; i += blockDim.x) loss += c.loss[i];
    loss = block_reduce(loss, Add{}, losses);
  }
  weight = block_reduce(weight, Add{}, weights);
  if (threadIdx.x != 0) return;
  c.normalizer[0] = c.mean ? weight : 1.0f;
  if constexpr (of_losses) c.total[0] = c.mean ? loss / weight : loss;
}

template <class S, bool of_losses>
void launch_total(const CrossEntropy<S>& c, Device& device) {
  const dim3 threads(static_cast<unsigned>(std::min<Index>((c.rows + 31) / 32 * 32, 1024)));
  launch_overlapping(&cross_entropy_total_kernel<S, of_losses>, {dim3(1), threads}, device, c);
}

template <class S, bool with_gradient>
void launch_rows_of_entropy(const CrossEntropy<S>& c, Device& device) {
  const Index packs = (c.classes + kPack<S> - 1) / kPack<S>;
  const LaunchShape shape{dim3(static_cast<unsigned>(c.rows)),
                          dim3(static_cast<unsigned>(std::min<Index>((packs + 31) / 32 * 32, kEntropyThreads)))};
  if (packed(c.logits, c.rows > 1 ? c.ld : 0, c.classes) &&
      (!with_gradient || packed(c.gradient, c.rows > 1 ? c.gradient_ld : 0, c.classes)))
    launch_overlapping(&cross_entropy_row_kernel<S, with_gradient, true>, shape, device, c);
  else launch_overlapping(&cross_entropy_row_kernel<S, with_gradient, false>, shape, device, c);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
