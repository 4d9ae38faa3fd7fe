// Gradients of rmsnorm: launches rmsnorm_backward.comp and rmsnorm_backward_weight.comp.
#include "kernels/vulkan/rmsnorm_backward.hpp"
#include "ops/rmsnorm_backward.hpp"
#include "shaders/rmsnorm_backward_rows.hpp"
#include "shaders/rmsnorm_backward_rows_bf16.hpp"
#include "shaders/rmsnorm_backward_rows_f16.hpp"

namespace assay::vulkan::of_rmsnorm_backward {
namespace {

using ops::RmsnormBackwardArgs;

void run(const RmsnormBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  dispatch_rmsnorm_backward<shaders::rmsnorm_backward_rows, shaders::rmsnorm_backward_rows_f16,
                            shaders::rmsnorm_backward_rows_bf16>(target, args, bind(target, args.rrms));
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = kShaderArithmetic,
       .storage = storage,
       .summary = "dx 64 invocations a row; dweight four invocations a column",
       .run = &run_typed<RmsnormBackwardArgs, &run>,
       .refuse = &refuse_typed<RmsnormBackwardArgs, &refuse_rmsnorm_backward<RmsnormBackwardArgs>>});
}

const KernelRegistration registrations[] = {add(DType::f32, "rmsnorm_backward/vulkan/rows"),
                                            add(DType::f16, "rmsnorm_backward/vulkan/rows_f16"),
                                            add(DType::bf16, "rmsnorm_backward/vulkan/rows_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_rmsnorm_backward
