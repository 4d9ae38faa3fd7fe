// Softmax of rows with CUDA.
#include "kernels/cuda/softmax.cuh"
#include "ops/softmax.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax {
namespace {

const KernelRegistration online{softmax_row<ops::SoftmaxArgs>("softmax/" ASSAY_CUDA_NAME "/online")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax
