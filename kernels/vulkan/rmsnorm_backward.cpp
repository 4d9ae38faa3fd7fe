// Gradients of rmsnorm: launches rmsnorm_backward.comp and rmsnorm_backward_weight.comp.
#include "kernels/vulkan/rows.hpp"
#include "ops/rmsnorm_backward.hpp"
#include "shaders/rmsnorm_backward_rows.hpp"
#include "shaders/rmsnorm_backward_rows_bf16.hpp"
#include "shaders/rmsnorm_backward_rows_f16.hpp"
#include "shaders/rmsnorm_backward_weight.hpp"
#include "shaders/rmsnorm_backward_weight_bf16.hpp"
#include "shaders/rmsnorm_backward_weight_f16.hpp"

namespace assay::vulkan::of_rmsnorm_backward {
namespace {

/// Push constants of rmsnorm_backward.comp.
struct RmsnormDxPush {
  std::uint32_t rows, n, x_first, x_ld, weight_first, rrms_first, dy_first, dy_ld, dx_first, dx_ld;
};
/// Push constants of rmsnorm_backward_weight.comp.
struct RmsnormDweightPush {
  std::uint32_t rows, n, x_first, x_ld, rrms_first, dy_first, dy_ld, dweight_first;
};

void run(const ops::RmsnormBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const StorageBinding x = bind(target, args.x), weight = bind(target, args.weight), rrms = bind(target, args.rrms),
                       dy = bind(target, args.dy), dx = bind(target, args.dx), dweight = bind(target, args.dweight);
  const std::array vector{vectors(args.x, x), vectors(args.weight, weight), vectors(args.dy, dy), vectors(args.dx, dx)};
  const std::array of_dx{x, weight, rrms, dy, dx};
  const RmsnormDxPush dx_push{u32(args.rows), u32(args.n), x.first,          step(args.x, 0), weight.first,
                              rrms.first,     dy.first,    step(args.dy, 0), dx.first,        step(args.dx, 0)};
  const Shader& shader = variant(args.x.dtype(), shaders::rmsnorm_backward_rows, shaders::rmsnorm_backward_rows_f16,
                                 shaders::rmsnorm_backward_rows_bf16);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = of_dx,
                   .push = bytes_of(dx_push),
                   .groups = {groups(args.rows, kRowsOfGroup), 1, 1}});
  const std::array of_dweight{x, rrms, dy, dweight};
  const RmsnormDweightPush dweight_push{u32(args.rows), u32(args.n), x.first,          step(args.x, 0),
                                        rrms.first,     dy.first,    step(args.dy, 0), dweight.first};
  const Shader& shader_of_weight = variant(args.x.dtype(), shaders::rmsnorm_backward_weight,
                                           shaders::rmsnorm_backward_weight_f16, shaders::rmsnorm_backward_weight_bf16);
  target.dispatch({.name = shader_of_weight.name,
                   .module = shader_of_weight.module,
                   .bindings = of_dweight,
                   .push = bytes_of(dweight_push),
                   .groups = {groups(args.n, 64), 1, 1}});
}

std::optional<std::string> refuse(const ops::RmsnormBackwardArgs& args) {
  if (auto why = refuse_rows(args.rows, args.n, 2)) return why;
  if (auto why = refuse_long((args.rows + 3) / 4)) return why;
  return refuse_large(args.x, args.dy, args.dx);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "dx 64 invocations a row; dweight four invocations a column",
                             .run = &run_typed<ops::RmsnormBackwardArgs, &run>,
                             .refuse = &refuse_typed<ops::RmsnormBackwardArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "rmsnorm_backward/vulkan/rows"),
                                            add(DType::f16, "rmsnorm_backward/vulkan/rows_f16"),
                                            add(DType::bf16, "rmsnorm_backward/vulkan/rows_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_rmsnorm_backward
