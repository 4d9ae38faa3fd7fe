// Gradients of rmsnorm from x and eps alone with CUDA.
#include "kernels/cuda/rmsnorm_backward.cuh"
#include "ops/rmsnorm_eps_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm_eps_backward {
namespace {

/// Both sums of a row in one pass. Error: n terms in any order, rsqrtf.
template <class S>
void run(const ops::RmsnormEpsBackwardArgs& args, Device& device) {
  run_rmsnorm_backward<S, false>(args, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = {.functions = FunctionLibrary::cuda},
       .storage = dtype_of<S>,
       .summary =
           "one pass: a warp or a block takes every 132nd row or so and keeps its sums of dweight, which a second kernel adds",
       .run = &run_typed<ops::RmsnormEpsBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("rmsnorm_eps_backward/" ASSAY_CUDA_NAME "/rows"),
                                            add<Half>("rmsnorm_eps_backward/" ASSAY_CUDA_NAME "/rows_f16"),
                                            add<BFloat16>("rmsnorm_eps_backward/" ASSAY_CUDA_NAME "/rows_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm_eps_backward
