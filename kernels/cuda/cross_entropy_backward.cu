// Gradient of the weighted cross-entropy, one pass over the logits.
#include <algorithm>

#include "kernels/cuda/cross_entropy.cuh"
#include "ops/cross_entropy_backward.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy_backward {
namespace {

/// logits and dlogits (rows, classes): rows dense, at i * ld + j and i * dld + j; other tensors are dense.
template <class S>
struct CrossEntropyGradient {
  Index rows, classes;
  const S* logits;
  Index ld;
  const std::int32_t* targets;
  const float *weights, *logsumexp, *normalizer, *dloss, *dtotal;
  S* dlogits;
  Index dld;
  bool aligned, d_aligned;
};

/// dlogits[i,j] = (exp(x[j] - logsumexp[i]) - [j = y]) (weights[y] (dloss[i] + dtotal / normalizer)). Blocks in x walk
/// a row, four elements a thread; blocks in y walk rows.
template <class S>
__global__ void __launch_bounds__(256) cross_entropy_backward_kernel(CrossEntropyGradient<S> c) {
  const float share = c.dtotal[0] / c.normalizer[0];
  const Index n = c.classes;
  const Index first = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * 4;
  if (first >= n) return;
  for (Index row = blockIdx.y; row < c.rows; row += gridDim.y) {
    const S* const x = c.logits + row * c.ld;
    S* const dx = c.dlogits + row * c.dld;
    const Index y = c.targets[row];
    const float scale = c.weights[y] * (c.dloss[row] + share), shift = c.logsumexp[row];
    const float4 v = load4<S>(x, first, n, c.aligned);
    const auto term = [&](float logit, Index j) { return logit_gradient(logit, shift, j == y, scale); };
    const float4 g = make_float4(term(v.x, first), term(v.y, first + 1), term(v.z, first + 2), term(v.w, first + 3));
    store4<S>(dx, first, n, c.d_aligned, g);
  }
}

template <class S>
void run(const ops::CrossEntropyBackwardArgs& args, Device& device) {
  const auto* logits = static_cast<const S*>(args.logits.data());
  auto* dlogits = static_cast<S*>(args.dlogits.data());
  const CrossEntropyGradient<S> c{args.rows,
                                  args.classes,
                                  logits,
                                  args.logits.stride(0),
                                  args.targets.data(),
                                  args.weights.data(),
                                  args.logsumexp.data(),
                                  args.normalizer.data(),
                                  args.dloss.data(),
                                  args.dtotal.data(),
                                  dlogits,
                                  args.dlogits.stride(0),
                                  rows_aligned(logits, row_stride(args.logits)),
                                  rows_aligned(dlogits, row_stride(args.dlogits))};
  const auto rows = static_cast<unsigned>(std::min<Index>(args.rows, 65535));
  launch(&cross_entropy_backward_kernel<S>, {dim3(blocks_for(args.classes, 1024), rows), dim3(256)}, device, c);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "four elements a thread, one pass",
                             .run = &run_typed<ops::CrossEntropyBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {
    add<float>("cross_entropy_backward/" ASSAY_CUDA_NAME "/four_per_thread"),
    add<Half>("cross_entropy_backward/" ASSAY_CUDA_NAME "/four_per_thread_f16"),
    add<BFloat16>("cross_entropy_backward/" ASSAY_CUDA_NAME "/four_per_thread_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy_backward
