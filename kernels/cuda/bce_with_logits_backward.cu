// Gradient of the binary cross-entropy, one pass over logits and targets.
#include <algorithm>

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/rows.cuh"
#include "ops/bce_with_logits_backward.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bce_with_logits_backward {
namespace {

/// logits, targets and dlogits (rows, classes): rows dense, each of its own leading dimension; other tensors are dense.
struct LabelGradient {
  Index rows, classes;
  const float* logits;
  Index ld;
  const float* targets;
  Index targets_ld;
  const float *pos_weight, *dloss;
  float* dlogits;
  Index dld;
};

/// Returns share ((1 - t) s - w t (1 - s)), s = sigmoid(x). With z = exp(-|x|), s and 1 - s are 1 / (1 + z) and z / (1
/// + z), in an order set by the sign of x.
__device__ float label_gradient(float x, float t, float w, float share) {
  const float z = expf(-fabsf(x)), near_one = 1.0f / (1.0f + z), far_off = z * near_one;
  const float s = x < 0.0f ? far_off : near_one, rest = x < 0.0f ? near_one : far_off;
  return ((1.0f - t) * s - w * t * rest) * share;
}

/// Blocks in x walk a row, four elements a thread; blocks in y walk rows.
__global__ void __launch_bounds__(256) bce_backward_kernel(LabelGradient c) {
  const Index n = c.classes;
  const Index first = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * 4;
  if (first >= n) return;
  const float4 w = load4(c.pos_weight, first, n, aligned16(c.pos_weight), 0.0f);
  for (Index row = blockIdx.y; row < c.rows; row += gridDim.y) {
    const float* const x = c.logits + row * c.ld;
    const float* const t = c.targets + row * c.targets_ld;
    float* const dx = c.dlogits + row * c.dld;
    const float share = c.dloss[row] / static_cast<float>(c.classes);
    const float4 vx = load4(x, first, n, aligned16(x), 0.0f), vt = load4(t, first, n, aligned16(t), 0.0f);
    const float4 g = make_float4(label_gradient(vx.x, vt.x, w.x, share), label_gradient(vx.y, vt.y, w.y, share),
                                 label_gradient(vx.z, vt.z, w.z, share), label_gradient(vx.w, vt.w, w.w, share));
    store4(dx, first, n, aligned16(dx), g);
  }
}

void run(const ops::BceWithLogitsBackwardArgs& args, Device& device) {
  if (args.rows == 0) return;
  const LabelGradient c{args.rows,           args.classes,           args.logits.data(),     args.logits.stride(0),
                        args.targets.data(), args.targets.stride(0), args.pos_weight.data(), args.dloss.data(),
                        args.dlogits.data(), args.dlogits.stride(0)};
  const auto blocks = static_cast<unsigned>(std::min<Index>(args.rows, 65535));
  const unsigned threads = row_threads(args.classes, 4);
  launch(&bce_backward_kernel, {dim3(blocks_for(args.classes, 4 * Index{threads}), blocks), dim3(threads)}, device, c);
}

const KernelRegistration four_per_thread{{.id = "bce_with_logits_backward/" ASSAY_CUDA_NAME "/four_per_thread",
                                          .arithmetic = {.functions = FunctionLibrary::cuda},
                                          .summary = "four elements a thread, one pass",
                                          .run = &run_typed<ops::BceWithLogitsBackwardArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bce_with_logits_backward
