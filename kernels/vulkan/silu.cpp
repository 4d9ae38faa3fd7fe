// y = x sigmoid(x): launches silu.comp. y shares no memory with x (the contract's clause). Vulkan's exp errs by 3 +
// 2|x| units.
#include "kernels/vulkan/elementwise.hpp"
#include "ops/silu.hpp"
#include "shaders/silu_vectors.hpp"
#include "shaders/silu_vectors_bf16.hpp"
#include "shaders/silu_vectors_f16.hpp"

namespace assay::vulkan::of_silu {
namespace {

void run(const ops::SiluArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<1>(variant(args.y.dtype(), shaders::silu_vectors, shaders::silu_vectors_f16, shaders::silu_vectors_bf16),
             target, args.m, args.n, 0, map_tensor(target, args.y), {map_tensor(target, args.x)});
}

std::optional<std::string> refuse(const ops::SiluArgs& args) { return refuse_large(args.x, args.y); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "one pass, 16 bytes an invocation where rows are aligned",
                             .run = &run_typed<ops::SiluArgs, &run>,
                             .refuse = &refuse_typed<ops::SiluArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "silu/vulkan/vectors"),
                                            add(DType::f16, "silu/vulkan/vectors_f16"),
                                            add(DType::bf16, "silu/vulkan/vectors_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_silu
