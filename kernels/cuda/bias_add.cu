// y = x + bias for every row.
#include "kernels/cuda/elementwise.cuh"
#include "ops/bias_add.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add {
namespace {

struct BiasAdd {
  __device__ float operator()(const float (&x)[2]) const { return x[0] + x[1]; }
};

/// y[i,j] = x[i,j] + bias[j]; x, y (m,n) S, row-major, any leading dimension, apart; bias (n). One rounding. 8 m
/// n bytes.
template <class S>
void run(const ops::BiasAddArgs& args, Device& device) {
  const Map<2, S, float> sums{
      args.m,         args.n, {args.x.data(), args.bias.data()}, {leading(args.x), 0}, static_cast<S*>(args.y.data()),
      leading(args.y)};
  map(sums, BiasAdd{}, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "one pass, 16 bytes a thread where rows are aligned",
                             .run = &run_typed<ops::BiasAddArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("bias_add/" ASSAY_CUDA_NAME "/vectors"),
                                            add<Half>("bias_add/" ASSAY_CUDA_NAME "/vectors_f16"),
                                            add<BFloat16>("bias_add/" ASSAY_CUDA_NAME "/vectors_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add
