// Wrong scale: the right kernel with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/scale.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_scale {
namespace {

template <void (*run)(const ops::ScaleArgs&, Device&)>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return KernelRegistration(
      mutant(map_kernel_row<ops::ScaleArgs, run>("scale", "", "falsify/mutants/cuda/scale.cu", ""), id, fault));
}

const KernelRegistration rows[] = {
    wrong<&scale<ScaleFault::divides>>(ASSAY_MUTANT("scale", "divides"), "divided by the rounded reciprocal of alpha"),
    wrong<&scale<ScaleFault::zero_skipped>>(ASSAY_MUTANT("scale", "nan_swallowed"), "NaN and 0 times Inf give 0"),
    wrong<&scale<ScaleFault::none, MapFault::width_as_stride>>(
        ASSAY_MUTANT("scale", "width_as_stride"), "the width used as leading dimension of the first input (bug 39)"),
    wrong<&scale<ScaleFault::none, MapFault::tail_unwritten>>(
        ASSAY_MUTANT("scale", "tail_unwritten"), "columns past the last whole group of four unwritten (bug 8)"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_scale
