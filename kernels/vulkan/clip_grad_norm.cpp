// Clipping of gradients by their global norm: launches the shaders of global_grad_norm, then clip_grad_norm.comp.
#include "shaders/clip_grad_norm.hpp"

#include "kernels/vulkan/grad_norm.hpp"
#include "shaders/global_grad_norm_partial.hpp"
#include "shaders/global_grad_norm_total.hpp"

namespace assay::vulkan::of_clip_grad_norm {
namespace {

const KernelRegistration two_stages{
    clip_kernel<shaders::global_grad_norm_partial, shaders::global_grad_norm_total, shaders::clip_grad_norm>(
        "clip_grad_norm/vulkan/two_stages")};

}  // namespace
}  // namespace assay::vulkan::of_clip_grad_norm
