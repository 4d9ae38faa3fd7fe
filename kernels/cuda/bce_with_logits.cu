// Binary cross-entropy of logits, one block per row.
#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/rows.cuh"
#include "ops/bce_with_logits.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bce_with_logits {
namespace {

/// logits and targets (rows, classes): rows dense, at i * ld + j and i * targets_ld + j; other tensors are dense.
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
__device__ float label_loss(float x, float t, float w) {
  const float beside = log1pf(expf(-fabsf(x)));
  return w * t * (fmaxf(-x, 0.0f) + beside) + (1.0f - t) * (fmaxf(x, 0.0f) + beside);
}

/// loss[i] = sum_j label_loss / classes. Four elements a thread at a time; elements past the end have t = 1 and weight
/// 0, which add nothing.
__global__ void __launch_bounds__(256) bce_row_kernel(Labels c) {
  ASSAY_SHARED(float, sums, [8]);
  const Index row = blockIdx.x;
  const float* const x = c.logits + row * c.ld;
  const float* const t = c.targets + row * c.targets_ld;
  const bool x_aligned = aligned16(x), t_aligned = aligned16(t), w_aligned = aligned16(c.pos_weight);
  const Index n = c.classes;
  float sum = 0.0f;
  for (Index j = Index{threadIdx.x} * 4; j < n; j += Index{blockDim.x} * 4) {
    const float4 vx = load4(x, j, n, x_aligned), vt = load4(t, j, n, t_aligned, 1.0f),
                 vw = load4(c.pos_weight, j, n, w_aligned);
    sum += (label_loss(vx.x, vt.x, vw.x) + label_loss(vx.y, vt.y, vw.y)) +
           (label_loss(vx.z, vt.z, vw.z) + label_loss(vx.w, vt.w, vw.w));
  }
  sum = block_reduce(sum, Add{}, sums);
  if (threadIdx.x == 0) c.loss[row] = sum / static_cast<float>(c.classes);
}

void run(const ops::BceWithLogitsArgs& args, Device& device) {
  if (args.rows == 0) return;
  const Labels c{args.rows,           args.classes,           args.logits.data(),     args.logits.stride(0),
                 args.targets.data(), args.targets.stride(0), args.pos_weight.data(), args.loss.data()};
  launch(&bce_row_kernel, {dim3(static_cast<unsigned>(args.rows)), dim3(row_threads(args.classes, 4))}, device, c);
}

const KernelRegistration block_per_row{{.id = "bce_with_logits/" ASSAY_CUDA_NAME "/block_per_row",
                                        .arithmetic = {.functions = FunctionLibrary::cuda},
                                        .summary = "one block a row",
                                        .run = &run_typed<ops::BceWithLogitsArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bce_with_logits
