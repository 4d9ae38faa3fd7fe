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
};

constexpr int kThreads = 256;

/// dlogits[i,j] = (exp(x[j] - logsumexp[i]) - [j = y]) (weights[y] (dloss[i] + dtotal / normalizer)). Blocks in x walk
/// a row, four packs a thread; blocks in y walk rows.
template <class S, bool whole>
__global__ void __launch_bounds__(kThreads) cross_entropy_backward_kernel(CrossEntropyGradient<S> c) {
  constexpr int kStep = kThreads * kPack<S>;
  const int n = static_cast<int>(c.classes);
  const int first = static_cast<int>(blockIdx.x) * kPacksInFlight * kStep + static_cast<int>(threadIdx.x) * kPack<S>;
  if (first >= n) return;
  for (Index row = blockIdx.y; row < c.rows; row += gridDim.y) {
    const Packs<S> logits = load_packs<whole>(c.logits + row * c.ld, first, kStep, n);
    const float share = c.dtotal[0] / c.normalizer[0];
    const int y = c.targets[row];
    const float scale = c.weights[y] * (c.dloss[row] + share), shift = c.logsumexp[row];
    store_gradients<whole>(logits, c.dlogits + row * c.dld, first, kStep, n, shift, y, scale);
  }
}

template <class S>
void run(const ops::CrossEntropyBackwardArgs& args, Device& device) {
  const CrossEntropyGradient<S> c{args.rows,
                                  args.classes,
                                  static_cast<const S*>(args.logits.data()),
                                  args.logits.stride(0),
                                  args.targets.data(),
                                  args.weights.data(),
                                  args.logsumexp.data(),
                                  args.normalizer.data(),
                                  args.dloss.data(),
                                  args.dtotal.data(),
                                  static_cast<S*>(args.dlogits.data()),
                                  args.dlogits.stride(0)};
  const LaunchShape shape{dim3(blocks_for(args.classes, kThreads * kPacksInFlight * kPack<S>),
                               static_cast<unsigned>(std::min<Index>(args.rows, 65535))),
                          dim3(kThreads)};
  if (packed(c.logits, row_stride(args.logits), c.classes) && packed(c.dlogits, row_stride(args.dlogits), c.classes))
    launch(&cross_entropy_backward_kernel<S, true>, shape, device, c);
  else launch(&cross_entropy_backward_kernel<S, false>, shape, device, c);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "four packs of 16 bytes a thread, one pass",
                             .run = &run_typed<ops::CrossEntropyBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {
    add<float>("cross_entropy_backward/" ASSAY_CUDA_NAME "/four_per_thread"),
    add<Half>("cross_entropy_backward/" ASSAY_CUDA_NAME "/four_per_thread_f16"),
    add<BFloat16>("cross_entropy_backward/" ASSAY_CUDA_NAME "/four_per_thread_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy_backward
