// Root mean square normalization: launches rmsnorm.comp.
#include "kernels/vulkan/rows.hpp"
#include "ops/rmsnorm.hpp"
#include "shaders/rmsnorm_rows.hpp"
#include "shaders/rmsnorm_rows_bf16.hpp"
#include "shaders/rmsnorm_rows_f16.hpp"

namespace assay::vulkan::of_rmsnorm {
namespace {

/// Push constants of rmsnorm.comp.
struct RmsnormPush {
  std::uint32_t rows, n, x_first, x_ld, weight_first, y_first, y_ld, rrms_first;
  float eps;
};

void run(const ops::RmsnormArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const StorageView& x = args.x;
  const StorageView& y = args.y;
  const std::array bindings{bind(target, x), bind(target, args.weight), bind(target, y), bind(target, args.rrms)};
  const std::array vector{vectors(x, bindings[0]), vectors(args.weight, bindings[1]), vectors(y, bindings[2])};
  const RmsnormPush push{u32(args.rows), u32(args.n),       bindings[0].first,
                         step(x, 0),     bindings[1].first, bindings[2].first,
                         step(y, 0),     bindings[3].first, static_cast<float>(args.eps)};
  const Shader& shader =
      variant(args.x.dtype(), shaders::rmsnorm_rows, shaders::rmsnorm_rows_f16, shaders::rmsnorm_rows_bf16);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.rows, kRowsOfGroup), 1, 1}});
}

std::optional<std::string> refuse(const ops::RmsnormArgs& args) {
  if (auto why = refuse_rows(args.rows, args.n, 2)) return why;
  return refuse_large(args.x, args.y);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "64 invocations a row, tree reduction in shared memory",
                             .run = &run_typed<ops::RmsnormArgs, &run>,
                             .refuse = &refuse_typed<ops::RmsnormArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "rmsnorm/vulkan/rows"),
                                            add(DType::f16, "rmsnorm/vulkan/rows_f16"),
                                            add(DType::bf16, "rmsnorm/vulkan/rows_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_rmsnorm
