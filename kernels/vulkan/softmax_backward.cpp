// Gradient of softmax: launches softmax_backward.comp.
#include "kernels/vulkan/softmax_backward.hpp"

#include "shaders/softmax_backward_rows.hpp"

namespace assay::vulkan::of_softmax_backward {
namespace {

const KernelRegistration rows_kernel{softmax_backward_row<shaders::softmax_backward_rows>("softmax_backward/vulkan/rows")};

}  // namespace
}  // namespace assay::vulkan::of_softmax_backward
