// dx = dy times the derivative of x sigmoid(x): launches silu_backward.comp. dx shares no memory with x or dy (the
// contract's clause).
#include "kernels/vulkan/elementwise.hpp"
#include "ops/silu_backward.hpp"
#include "shaders/silu_backward_vectors.hpp"
#include "shaders/silu_backward_vectors_bf16.hpp"
#include "shaders/silu_backward_vectors_f16.hpp"

namespace assay::vulkan::of_silu_backward {
namespace {

void run(const ops::SiluBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<2>(variant(args.dx.dtype(), shaders::silu_backward_vectors, shaders::silu_backward_vectors_f16,
                     shaders::silu_backward_vectors_bf16),
             target, args.m, args.n, 0, map_tensor(target, args.dx),
             {map_tensor(target, args.x), map_tensor(target, args.dy)});
}

std::optional<std::string> refuse(const ops::SiluBackwardArgs& args) { return refuse_large(args.x, args.dy, args.dx); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "one pass, 16 bytes an invocation where rows are aligned",
                             .run = &run_typed<ops::SiluBackwardArgs, &run>,
                             .refuse = &refuse_typed<ops::SiluBackwardArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "silu_backward/vulkan/vectors"),
                                            add(DType::f16, "silu_backward/vulkan/vectors_f16"),
                                            add(DType::bf16, "silu_backward/vulkan/vectors_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_silu_backward
