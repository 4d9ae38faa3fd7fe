// The mean of the first tokens of each sequence.
#include "kernels/cuda/column_sum.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "ops/mean_pool.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool {
namespace {

/// y[b,j] = sum_(i < lengths[b]) x[b,i,j] / lengths[b]; x (b,s,h), y (b,h) float32, row-major, any outer strides;
/// lengths (b) from 1 to s; y apart. Reads no padding. Error at most lengths[b]·u·sum_i |x[b,i,j]| / lengths[b] + u|y|.
void run(const ops::MeanPoolArgs& args, Device& device) {
  column_sums({args.b, args.s, args.h, args.x.data(), args.x.stride(0), args.x.stride(1), args.lengths.data(),
               args.y.data(), leading(args.y), nullptr, 0},
              device);
}

const KernelRegistration stripes_kernel{
    {.id = "mean_pool/" ASSAY_CUDA_NAME "/stripes",
     .arithmetic = {.functions = FunctionLibrary::cuda},
     .summary = "a block per sequence and tile of columns, stripes of tokens added in a fixed order",
     .run = &run_typed<ops::MeanPoolArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool
