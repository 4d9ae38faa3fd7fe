// Weighted cross-entropy and the gradient of its total, one block per row.
#include "kernels/cuda/cross_entropy.cuh"
#include "ops/cross_entropy_with_gradient.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy_with_gradient {
namespace {

/// The normalizer, losses and gradients, and total. The device frees the scratch of one float after use.
template <class S>
void run(const ops::CrossEntropyWithGradientArgs& args, Device& device) {
  const Buffer normalizer = device.allocate(sizeof(float));
  const CrossEntropy<S> c{args.rows,
                          args.classes,
                          static_cast<const S*>(args.logits.data()),
                          args.logits.stride(0),
                          args.targets.data(),
                          args.weights.data(),
                          args.loss.data(),
                          args.total.data(),
                          args.logsumexp.data(),
                          static_cast<float*>(normalizer.address()),
                          args.reduction == 1,
                          static_cast<S*>(args.gradient.data()),
                          args.gradient.stride(0)};
  launch_total<S, false>(c, device);
  launch_rows_of_entropy<S, true>(c, device);
  launch_total<S, true>(c, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = {.functions = FunctionLibrary::cuda_exp2, .online_tile = 512},
       .storage = dtype_of<S>,
       .summary = "one block a row, maximum and sum in one pass, then its gradient; one block for the total",
       .run = &run_typed<ops::CrossEntropyWithGradientArgs, &run<S>>});
}

const KernelRegistration registrations[] = {
    add<float>("cross_entropy_with_gradient/" ASSAY_CUDA_NAME "/block_per_row"),
    add<Half>("cross_entropy_with_gradient/" ASSAY_CUDA_NAME "/block_per_row_f16"),
    add<BFloat16>("cross_entropy_with_gradient/" ASSAY_CUDA_NAME "/block_per_row_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy_with_gradient
