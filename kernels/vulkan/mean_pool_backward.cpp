// The gradient of means over tokens: launches mean_pool_backward.comp. dx shares no memory with dy or lengths (the
// contract's clause). Error: that of one division, and the flushed subnormals.
#include "kernels/vulkan/mean_pool_backward.hpp"

#include "shaders/mean_pool_backward_rows.hpp"

namespace assay::vulkan::of_mean_pool_backward {
namespace {

const KernelRegistration rows_row{mean_pool_backward_row<shaders::mean_pool_backward_rows>(
    "mean_pool_backward/vulkan/rows", "kernels/vulkan/mean_pool_backward.comp",
    "four columns per invocation, one division for eight rows")};

}  // namespace
}  // namespace assay::vulkan::of_mean_pool_backward
