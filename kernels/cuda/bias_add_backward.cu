// dx = dy and dbias = sums of the columns of dy.
#include "kernels/cuda/column_sum.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "ops/bias_add_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add_backward {
namespace {

/// dx[i,j] = dy[i,j] and dbias[j] = sum_i dy[i,j]; dy, dx (m,n) float32, row-major, any leading dimension; dbias (n);
/// all apart. One pass, 8 m n bytes. Error at most m·u·sum_i |dy[i,j]|.
void run(const ops::BiasAddBackwardArgs& args, Device& device) {
  column_sums({1, args.m, args.n, args.dy.data(), 0, leading(args.dy), nullptr, args.dbias.data(), 0, args.dx.data(),
               leading(args.dx)},
              device);
}

const KernelRegistration stripes_kernel{
    {.id = "bias_add_backward/" ASSAY_CUDA_NAME "/stripes",
     .arithmetic = {.functions = FunctionLibrary::cuda},
     .summary = "a block per tile of columns, stripes of rows added in a fixed order",
     .run = &run_typed<ops::BiasAddBackwardArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add_backward
