// Weighted cross-entropy, one block per row, then one block for the total.
#include "kernels/cuda/cross_entropy.cuh"
#include "ops/cross_entropy.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy {
namespace {

template <class S>
void run(const ops::CrossEntropyArgs& args, Device& device) {
  const CrossEntropy<S> c{args.rows,
                          args.classes,
                          static_cast<const S*>(args.logits.data()),
                          args.logits.stride(0),
                          args.targets.data(),
                          args.weights.data(),
                          args.loss.data(),
                          args.total.data(),
                          args.logsumexp.data(),
                          args.normalizer.data(),
                          args.reduction == 1};
  launch_rows_of_entropy<S, false>(c, device);
  launch_total<S, true>(c, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda_exp2, .online_tile = 512},
                             .storage = dtype_of<S>,
                             .summary = "one block a row, maximum and sum in one pass; one block for the total",
                             .run = &run_typed<ops::CrossEntropyArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("cross_entropy/" ASSAY_CUDA_NAME "/block_per_row"),
                                            add<Half>("cross_entropy/" ASSAY_CUDA_NAME "/block_per_row_f16"),
                                            add<BFloat16>("cross_entropy/" ASSAY_CUDA_NAME "/block_per_row_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy
