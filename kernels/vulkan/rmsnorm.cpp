// Root mean square normalization: launches rmsnorm.comp. Buffers are bound as 4-byte words: f32 storage only.
#include "kernels/vulkan/rows.hpp"
#include "ops/rmsnorm.hpp"
#include "shaders/rmsnorm_rows.hpp"

namespace assay::vulkan::of_rmsnorm {
namespace {

/// Push constants of rmsnorm.comp.
struct RmsnormPush {
  std::uint32_t rows, n, x_first, x_ld, weight_first, y_first, y_ld, rrms_first;
  float eps;
};

void run(const ops::RmsnormArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const View<float> x = f32(args.x), y = f32(args.y);
  const std::array bindings{bind(target, x), bind(target, args.weight), bind(target, y), bind(target, args.rrms)};
  const std::array vector{vectors(x, bindings[0]), vectors(args.weight, bindings[1]), vectors(y, bindings[2])};
  const RmsnormPush push{u32(args.rows), u32(args.n),       bindings[0].first,
                         step(x, 0),     bindings[1].first, bindings[2].first,
                         step(y, 0),     bindings[3].first, static_cast<float>(args.eps)};
  target.dispatch({.name = shaders::rmsnorm_rows.name,
                   .module = shaders::rmsnorm_rows.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.rows, kRowsOfGroup), 1, 1}});
}

std::optional<std::string> refuse(const ops::RmsnormArgs& args) {
  if (auto why = refuse_rows(args.rows, args.n, 2)) return why;
  return refuse_large(f32(args.x), f32(args.y));
}

const KernelRegistration rows{{.id = "rmsnorm/vulkan/rows",
                               .arithmetic = kShaderArithmetic,
                               .summary = "64 invocations a row, tree reduction in shared memory; f32 storage alone",
                               .run = &run_typed<ops::RmsnormArgs, &run>,
                               .refuse = &refuse_typed<ops::RmsnormArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_rmsnorm
