// The mean of the first tokens of each sequence.
#include "kernels/cuda/column_sum.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "ops/mean_pool.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool {
namespace {

/// y[b,j] = sum_(i < lengths[b]) x[b,i,j] / lengths[b]; x (b,s,h), y (b,h) S, row-major, any outer strides;
/// lengths (b) from 1 to s; y apart. Reads no padding. Error at most lengths[b]·u·sum_i |x[b,i,j]| / lengths[b] + u|y|.
template <class S>
void run(const ops::MeanPoolArgs& args, Device& device) {
  const ColumnSums<S, S> means{args.b,
                               args.s,
                               args.h,
                               static_cast<const S*>(args.x.data()),
                               args.x.stride(0),
                               args.x.stride(1),
                               args.lengths.data(),
                               static_cast<S*>(args.y.data()),
                               leading(args.y),
                               nullptr,
                               0};
  column_sums(means, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = {.functions = FunctionLibrary::cuda},
       .storage = dtype_of<S>,
       .summary = "a block per sequence and tile of columns, stripes of tokens added in a fixed order",
       .run = &run_typed<ops::MeanPoolArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("mean_pool/" ASSAY_CUDA_NAME "/stripes"),
                                            add<Half>("mean_pool/" ASSAY_CUDA_NAME "/stripes_f16"),
                                            add<BFloat16>("mean_pool/" ASSAY_CUDA_NAME "/stripes_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool
