// The launcher of softmax_backward.
#include "kernels/vulkan/rows.hpp"
#include "ops/softmax_backward.hpp"
#include "shaders/softmax_backward_rows.hpp"
#include "shaders/softmax_backward_rows_bf16.hpp"
#include "shaders/softmax_backward_rows_f16.hpp"

namespace assay::vulkan::of_softmax_backward {
namespace {

/// Push constants of softmax_backward.comp.
struct SoftmaxBackwardPush {
  std::uint32_t rows, n, y_first, y_ld, dy_first, dy_ld, dx_first, dx_ld;
};

void run(const ops::SoftmaxBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.y), bind(target, args.dy), bind(target, args.dx)};
  const std::array vector{vectors(args.y, bindings[0]), vectors(args.dy, bindings[1]), vectors(args.dx, bindings[2])};
  const SoftmaxBackwardPush push{u32(args.rows),    u32(args.n),      bindings[0].first, step(args.y, 0),
                                 bindings[1].first, step(args.dy, 0), bindings[2].first, step(args.dx, 0)};
  const Shader& shader = variant(args.y.dtype(), shaders::softmax_backward_rows, shaders::softmax_backward_rows_f16,
                                 shaders::softmax_backward_rows_bf16);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.rows, kRowsOfGroup), 1, 1}});
}

std::optional<std::string> refuse(const ops::SoftmaxBackwardArgs& args) {
  if (auto why = refuse_rows(args.rows, args.n, 2)) return why;
  return refuse_large(args.y, args.dy, args.dx);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "64 invocations a row, two passes, tree reduction in shared memory",
                             .run = &run_typed<ops::SoftmaxBackwardArgs, &run>,
                             .refuse = &refuse_typed<ops::SoftmaxBackwardArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "softmax_backward/vulkan/rows"),
                                            add(DType::f16, "softmax_backward/vulkan/rows_f16"),
                                            add(DType::bf16, "softmax_backward/vulkan/rows_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_softmax_backward
