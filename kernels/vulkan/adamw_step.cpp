// One step of AdamW: launches adamw_step.comp. No two tensors share memory (the contract's clause).
#include "kernels/vulkan/adamw_step.hpp"

#include "shaders/adamw_step.hpp"

namespace assay::vulkan::of_adamw_step {
namespace {

const KernelRegistration elementwise{adamw_kernel<shaders::adamw_step>("adamw_step/vulkan/elementwise")};

}  // namespace
}  // namespace assay::vulkan::of_adamw_step
