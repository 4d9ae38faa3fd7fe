// Gradients of rmsnorm: launches rmsnorm_backward.comp and rmsnorm_backward_weight.comp.
#include "kernels/vulkan/rmsnorm_backward.hpp"

#include "shaders/rmsnorm_backward_rows.hpp"
#include "shaders/rmsnorm_backward_weight.hpp"

namespace assay::vulkan::of_rmsnorm_backward {
namespace {

const KernelRegistration rows_kernel{
    rmsnorm_backward_row<shaders::rmsnorm_backward_rows, shaders::rmsnorm_backward_weight>("rmsnorm_backward/vulkan/rows")};

}  // namespace
}  // namespace assay::vulkan::of_rmsnorm_backward
