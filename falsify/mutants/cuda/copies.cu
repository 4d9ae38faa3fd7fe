// Wrong copies: transpose and tensor_layout.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/copies.cuh"
#include "ops/tensor_layout.hpp"
#include "ops/transpose.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_copies {
namespace {

using F = CopyFault;

template <void (*run)(const StridedCopy&, Device&)>
KernelRegistration transpose(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(copy_kernel<ops::TransposeArgs, true, true, run>("transpose", "", ""), id, fault));
}
template <void (*run)(const StridedCopy&, Device&)>
KernelRegistration layout(std::string_view id, std::string_view fault) {
  return KernelRegistration(
      mutant(copy_kernel<ops::TensorLayoutArgs, false, false, run>("tensor_layout", "", ""), id, fault));
}

const KernelRegistration rows[] = {
    transpose<&tiled32<F::no_barrier>>(ASSAY_MUTANT("transpose", "no_barrier"),
                                       "no __syncthreads between filling the tile and reading it (bug 28)"),
    transpose<&tiled32<F::tail_unwritten>>(ASSAY_MUTANT("transpose", "tail_unwritten"),
                                           "columns of dst past the last whole tile unwritten (bug 8)"),
    transpose<&tiled32<F::columns_unchecked>>(ASSAY_MUTANT("transpose", "columns_unchecked"),
                                              "the last tile writes past the end of dst (bug 16)"),
    layout<&elementwise<F::copied_as_sum>>(ASSAY_MUTANT("tensor_layout", "copied_as_sum"),
                                           "copied as x + 0: negative zeros and signalling NaNs change"),
    layout<&elementwise<F::inner_step_ignored>>(ASSAY_MUTANT("tensor_layout", "inner_step_ignored"),
                                                "the inner stride of src taken as 1 (bug 6)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_copies
