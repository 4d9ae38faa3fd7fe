// The launcher of both gradients of rmsnorm, shared by the operation that is given the reciprocal RMS and the one that
// forms it.
#pragma once

#include "kernels/vulkan/rows.hpp"
#include "shaders/rmsnorm_backward_weight.hpp"
#include "shaders/rmsnorm_backward_weight_bf16.hpp"
#include "shaders/rmsnorm_backward_weight_f16.hpp"

namespace assay::vulkan {

/// Push constants of rmsnorm_backward.glsl; eps is that of shaders with OWN_RRMS.
struct RmsnormDxPush {
  std::uint32_t rows, n, x_first, x_ld, weight_first, rrms_first, dy_first, dy_ld, dx_first, dx_ld;
};
struct RmsnormOwnDxPush {
  RmsnormDxPush given;
  float eps;
};
/// Push constants of rmsnorm_backward_weight.comp.
struct RmsnormDweightPush {
  std::uint32_t rows, n, x_first, x_ld, rrms_first, dy_first, dy_ld, dweight_first;
};

/// Starts the shader of dx for the storage format with rrms, which it reads, or writes if it takes `eps`, then the shader
/// of dweight.
template <const Shader& f32, const Shader& f16, const Shader& bf16, class Args>
void dispatch_rmsnorm_backward(VulkanDevice& target, const Args& args, const StorageBinding& rrms,
                               std::optional<double> eps = {}) {
  const StorageBinding x = bind(target, args.x), weight = bind(target, args.weight), dy = bind(target, args.dy),
                       dx = bind(target, args.dx), dweight = bind(target, args.dweight);
  const std::array vector{vectors(args.x, x), vectors(args.weight, weight), vectors(args.dy, dy), vectors(args.dx, dx)};
  const std::array of_dx{x, weight, rrms, dy, dx};
  const RmsnormDxPush given{u32(args.rows), u32(args.n), x.first,          step(args.x, 0), weight.first,
                            rrms.first,     dy.first,    step(args.dy, 0), dx.first,        step(args.dx, 0)};
  const RmsnormOwnDxPush own{given, static_cast<float>(eps.value_or(0))};
  const Shader& shader_of_dx = variant(args.x.dtype(), f32, f16, bf16);
  target.dispatch({.name = shader_of_dx.name,
                   .module = shader_of_dx.module,
                   .specialization = vector,
                   .bindings = of_dx,
                   .push = eps ? bytes_of(own) : bytes_of(given),
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

/// Returns the refusal of a call whose rows a shader of dx passes over twice.
template <class Args>
std::optional<std::string> refuse_rmsnorm_backward(const Args& args) {
  if (auto why = refuse_rows(args.rows, args.n, 2)) return why;
  if (auto why = refuse_long((args.rows + 3) / 4)) return why;
  return refuse_large(args.x, args.dy, args.dx);
}

}  // namespace assay::vulkan
