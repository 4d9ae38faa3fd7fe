// Gradient of rope with CUDA: the inverse rotation.
#include "kernels/cuda/rotary.cuh"
#include "ops/rope_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rope_backward {
namespace {

template <class S>
void run(const ops::RopeBackwardArgs& args, Device& device) {
  run_rotary<S>(rotary_of(args), device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::octant},
                             .storage = dtype_of<S>,
                             .summary = "a block a position: cosines and sines once, then four elements a thread over all heads",
                             .run = &run_typed<ops::RopeBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("rope_backward/" ASSAY_CUDA_NAME "/rows"), add<Half>("rope_backward/" ASSAY_CUDA_NAME "/rows_f16"),
                                            add<BFloat16>("rope_backward/" ASSAY_CUDA_NAME "/rows_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rope_backward
