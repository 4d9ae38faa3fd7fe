// The global norm of a gradient, and clipping by it: partial sums of blocks, one block that adds them, one pass to
// scale.
#pragma once

#include <algorithm>

#include "kernels/cuda/block_reduce.cuh"
#include "ops/clip_grad_norm.hpp"
#include "ops/global_grad_norm.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class NormFault { none, tail_dropped, no_barrier, last_block_lost, squared, per_block, scales_up, not_scaled };

template <NormFault fault>
inline constexpr ReduceFault norm_reduction =
    fault == NormFault::no_barrier ? ReduceFault::no_barrier : ReduceFault::none;

/// g (n): dense. partial holds a float for each block.
struct GradNorm {
  Index n;
  const float* g;
  float* partial;
  float* norm;
};

/// partial[b] = sum of the squares of block b's elements: groups of four, every 256 * blocks-th one a thread.
template <NormFault fault>
__global__ void __launch_bounds__(256) squares_kernel(GradNorm a) {
  ASSAY_SHARED(float, sums, [8]);
  const bool aligned = aligned16(a.g);
  const Index n = fault == NormFault::tail_dropped && a.n > 4 ? a.n / 4 * 4 : a.n;
  float sum = 0.0f;
  for (Index i = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * 4; i < n; i += Index{gridDim.x} * blockDim.x * 4) {
    const float4 v = load4(a.g, n, i, aligned, 0.0f);
    sum += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
  }
  sum = block_reduce<norm_reduction<fault>>(sum, Plus{}, sums);
  if (threadIdx.x == 0) a.partial[blockIdx.x] = sum;
}

/// norm = sqrt(sum of the partial sums). One block.
template <NormFault fault>
__global__ void __launch_bounds__(256) norm_kernel(GradNorm a, Index blocks) {
  ASSAY_SHARED(float, sums, [8]);
  float sum = 0.0f;
  for (Index b = threadIdx.x; b < (fault == NormFault::last_block_lost && blocks > 1 ? blocks - 1 : blocks);
       b += blockDim.x)
    sum += a.partial[b];
  sum = block_reduce<norm_reduction<fault>>(sum, Plus{}, sums);
  if (threadIdx.x == 0) a.norm[0] = fault == NormFault::squared ? sum : sqrtf(sum);
}

/// g[i] *= limit / norm[0], unless the norm is at most the limit.
template <NormFault fault>
__global__ void __launch_bounds__(256)
    clip_kernel(Index n, float* g, const float* norm, const float* partial, float limit) {
  const float length = fault == NormFault::squared     ? norm[0] * norm[0]
                       : fault == NormFault::per_block ? sqrtf(partial[blockIdx.x])
                                                       : norm[0];
  if ((length <= limit && fault != NormFault::scales_up) || fault == NormFault::not_scaled) return;
  const float by = limit / length;
  const bool aligned = aligned16(g);
  for (Index i = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * 4; i < n; i += Index{gridDim.x} * blockDim.x * 4) {
    const float4 v = load4(g, n, i, aligned, 0.0f);
    store4(g, n, i, aligned, make_float4(v.x * by, v.y * by, v.z * by, v.w * by));
  }
}

/// Blocks of `threads` that a vector is given: a thousand fill any device, and one block adds their sums.
inline unsigned norm_blocks(Index n, unsigned threads) {
  return static_cast<unsigned>(std::clamp<Index>((n + 4 * Index{threads} - 1) / (4 * Index{threads}), 1, 1024));
}

/// Scratch of at most 4 KiB, given back when the device is done with it (Device::allocate).
template <NormFault fault>
void launch_norm(Index n, const float* g, float* norm, float* partial, unsigned blocks, unsigned threads,
                 Device& device) {
  const GradNorm a{n, g, partial, norm};
  launch(&squares_kernel<fault>, {dim3(blocks), dim3(threads)}, device, a);
  launch(&norm_kernel<fault>, {dim3(1), dim3(row_threads(blocks, 1))}, device, a, Index{blocks});
}

template <NormFault fault = NormFault::none>
void norm_in_blocks(const ops::GlobalGradNormArgs& args, Device& device) {
  const unsigned threads = row_threads(args.n, 4), blocks = norm_blocks(args.n, threads);
  const Buffer partial = device.allocate(blocks * sizeof(float));
  launch_norm<fault>(args.n, args.g.data(), args.norm.data(), static_cast<float*>(partial.address()), blocks, threads,
                     device);
}

template <NormFault fault = NormFault::none>
void clip_in_blocks(const ops::ClipGradNormArgs& args, Device& device) {
  const unsigned threads = row_threads(args.n, 4), blocks = norm_blocks(args.n, threads);
  const Buffer scratch = device.allocate(blocks * sizeof(float));
  auto* const partial = static_cast<float*>(scratch.address());
  constexpr NormFault of_norm = fault == NormFault::squared ? NormFault::none : fault;
  launch_norm<of_norm>(args.n, args.g.data(), args.norm.data(), partial, blocks, threads, device);
  launch(&clip_kernel<fault>, {dim3(blocks), dim3(threads)}, device, args.n, args.g.data(), args.norm.data(), partial,
         static_cast<float>(args.max_norm));
}

template <NormFault fault = NormFault::none>
Kernel norm_row(std::string_view id) {
  return {.op = "global_grad_norm",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda},
          .source = "kernels/cuda/grad_norm.cuh",
          .summary = "partial sums of up to 1024 blocks, added by one",
          .run = &run_typed<ops::GlobalGradNormArgs, &norm_in_blocks<fault>>};
}

template <NormFault fault = NormFault::none>
Kernel clip_row(std::string_view id) {
  return {.op = "clip_grad_norm",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda},
          .source = "kernels/cuda/grad_norm.cuh",
          .summary = "partial sums of up to 1024 blocks, added by one; one pass to scale",
          .run = &run_typed<ops::ClipGradNormArgs, &clip_in_blocks<fault>>};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
