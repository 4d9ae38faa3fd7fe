// Euclidean norm of a gradient: launches global_grad_norm.comp and global_grad_norm_total.comp.
#include "kernels/vulkan/grad_norm.hpp"
#include "shaders/global_grad_norm_partial.hpp"
#include "shaders/global_grad_norm_total.hpp"

namespace assay::vulkan::of_global_grad_norm {
namespace {

const KernelRegistration two_stages{norm_kernel<shaders::global_grad_norm_partial, shaders::global_grad_norm_total>(
    "global_grad_norm/vulkan/two_stages")};

}  // namespace
}  // namespace assay::vulkan::of_global_grad_norm
