// dx = dy and dbias = sums of the columns of dy.
#include "kernels/cuda/column_sum.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "ops/bias_add_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add_backward {
namespace {

/// dx[i,j] = dy[i,j] and dbias[j] = sum_i dy[i,j]; dy, dx (m,n) S, row-major, any leading dimension; dbias (n);
/// all apart. One pass, 8 m n bytes. Error at most m·u·sum_i |dy[i,j]|.
template <class S>
void run(const ops::BiasAddBackwardArgs& args, Device& device) {
  const ColumnSums<S> sums{1,
                           args.m,
                           args.n,
                           static_cast<const S*>(args.dy.data()),
                           0,
                           leading(args.dy),
                           nullptr,
                           args.dbias.data(),
                           0,
                           static_cast<S*>(args.dx.data()),
                           leading(args.dx)};
  column_sums(sums, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "a block per tile of columns, stripes of rows added in a fixed order",
                             .run = &run_typed<ops::BiasAddBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("bias_add_backward/" ASSAY_CUDA_NAME "/stripes"),
                                            add<Half>("bias_add_backward/" ASSAY_CUDA_NAME "/stripes_f16"),
                                            add<BFloat16>("bias_add_backward/" ASSAY_CUDA_NAME "/stripes_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add_backward
