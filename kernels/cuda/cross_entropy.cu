// Weighted cross-entropy, one block per row, then one block for the total.
#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/rows.cuh"
#include "ops/cross_entropy.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy {
namespace {

/// logits (rows, classes): rows dense, at i * ld + j; other tensors are dense. Outputs share no memory with inputs.
template <class S>
struct CrossEntropy {
  Index rows, classes;
  const S* logits;
  Index ld;
  const std::int32_t* targets;
  const float* weights;
  float *loss, *total, *logsumexp, *normalizer;
  bool mean, aligned;
};

/// Loads logits j .. j + 3 of a row of n, with `beyond` past its end. `aligned`: rows start at multiples of 4 elements.
template <class S>
__device__ inline float4 four_logits(const S* row, Index j, Index n, bool aligned, float beyond) {
  if (aligned && j + 4 <= n) {
    const Four<S> v = *reinterpret_cast<const Four<S>*>(row + j);
    return make_float4(load(v.at[0]), load(v.at[1]), load(v.at[2]), load(v.at[3]));
  }
  return make_float4(j < n ? load(row[j]) : beyond, j + 1 < n ? load(row[j + 1]) : beyond,
                     j + 2 < n ? load(row[j + 2]) : beyond, j + 3 < n ? load(row[j + 3]) : beyond);
}

/// loss[i] = weights[y] ((m - x[y]) + log sum_j exp(x[j] - m)) in one pass over the row. A thread rescales its sum when
/// its maximum grows, at most once per 512 entries of the row, and once more for the row's maximum (softmax.cu gives
/// the source). Elements past the end count as -inf. Error: the contract's bound; the order depends on classes alone.
template <class S>
__global__ void __launch_bounds__(256) cross_entropy_row_kernel(CrossEntropy<S> c) {
  ASSAY_SHARED(float, tops, [8]);
  ASSAY_SHARED(float, sums, [8]);
  constexpr int kLoadsInFlight = 4;  // loads of four elements in flight together
  const Index row = blockIdx.x;
  const S* const x = c.logits + row * c.ld;
  const Index n = c.classes, step = Index{blockDim.x} * 4;
  float top = -INFINITY, sum = 0.0f;
  for (Index j = Index{threadIdx.x} * 4; j < n; j += kLoadsInFlight * step) {
    float4 v[kLoadsInFlight];
    float grown = top;
#pragma unroll
    for (int i = 0; i < kLoadsInFlight; ++i) v[i] = four_logits(x, j + i * step, n, c.aligned, -INFINITY);
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
  const float log_sum = logf(block_reduce(sum, Add{}, sums));
  if (threadIdx.x != 0) return;
  const Index y = c.targets[row];
  c.logsumexp[row] = m + log_sum;
  c.loss[row] = c.weights[y] * ((m - load(x[y])) + log_sum);
}

/// total = sum of the losses over the sum of the targets' weights, or over 1.
template <class S>
__global__ void __launch_bounds__(256) cross_entropy_total_kernel(CrossEntropy<S> c) {
  ASSAY_SHARED(float, losses, [8]);
  ASSAY_SHARED(float, weights, [8]);
  float loss = 0.0f, weight = 0.0f;
  for (Index i = threadIdx.x; i < c.rows; i += blockDim.x) {
    loss += c.loss[i];
    weight += c.weights[c.targets[i]];
  }
  loss = block_reduce(loss, Add{}, losses);
  weight = block_reduce(weight, Add{}, weights);
  if (threadIdx.x != 0) return;
  c.normalizer[0] = c.mean ? weight : 1.0f;
  c.total[0] = c.mean ? loss / weight : loss;
}

template <class S>
void run(const ops::CrossEntropyArgs& args, Device& device) {
  const auto* logits = static_cast<const S*>(args.logits.data());
  const CrossEntropy<S> c{args.rows,
                          args.classes,
                          logits,
                          args.logits.stride(0),
                          args.targets.data(),
                          args.weights.data(),
                          args.loss.data(),
                          args.total.data(),
                          args.logsumexp.data(),
                          args.normalizer.data(),
                          args.reduction == 1,
                          rows_aligned(logits, row_stride(args.logits))};
  launch(&cross_entropy_row_kernel<S>, {dim3(static_cast<unsigned>(args.rows)), dim3(row_threads(args.classes, 4))},
         device, c);
  launch(&cross_entropy_total_kernel<S>, {dim3(1), dim3(row_threads(args.rows, 1))}, device, c);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda, .online_tile = 512},
                             .storage = dtype_of<S>,
                             .summary = "one block a row, maximum and sum in one pass; one block for the total",
                             .run = &run_typed<ops::CrossEntropyArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("cross_entropy/" ASSAY_CUDA_NAME "/block_per_row"),
                                            add<Half>("cross_entropy/" ASSAY_CUDA_NAME "/block_per_row_f16"),
                                            add<BFloat16>("cross_entropy/" ASSAY_CUDA_NAME "/block_per_row_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy
