// Gradients of rmsnorm from x and eps alone: launches rmsnorm_eps_backward.comp and rmsnorm_backward_weight.comp, with
// the reciprocal RMS of each row in scratch, which the device frees after use.
#include "kernels/vulkan/rmsnorm_backward.hpp"
#include "ops/rmsnorm_eps_backward.hpp"
#include "shaders/rmsnorm_eps_backward_rows.hpp"
#include "shaders/rmsnorm_eps_backward_rows_bf16.hpp"
#include "shaders/rmsnorm_eps_backward_rows_f16.hpp"

namespace assay::vulkan::of_rmsnorm_eps_backward {
namespace {

using ops::RmsnormEpsBackwardArgs;

void run(const RmsnormEpsBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const Buffer scratch = target.allocate(static_cast<std::size_t>(std::max<Index>(args.rows, 1)) * sizeof(float));
  dispatch_rmsnorm_backward<shaders::rmsnorm_eps_backward_rows, shaders::rmsnorm_eps_backward_rows_f16,
                            shaders::rmsnorm_eps_backward_rows_bf16>(
      target, args, target.bind(scratch.address(), scratch.bytes()), args.eps);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = kShaderArithmetic,
       .storage = storage,
       .summary = "rrms and dx 64 invocations a row; dweight four invocations a column",
       .run = &run_typed<RmsnormEpsBackwardArgs, &run>,
       .refuse = &refuse_typed<RmsnormEpsBackwardArgs, &refuse_rmsnorm_backward<RmsnormEpsBackwardArgs>>});
}

const KernelRegistration registrations[] = {add(DType::f32, "rmsnorm_eps_backward/vulkan/rows"),
                                            add(DType::f16, "rmsnorm_eps_backward/vulkan/rows_f16"),
                                            add(DType::bf16, "rmsnorm_eps_backward/vulkan/rows_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_rmsnorm_eps_backward
