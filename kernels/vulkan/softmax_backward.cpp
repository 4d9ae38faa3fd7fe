// The launcher of softmax_backward.
#include "kernels/vulkan/rows.hpp"
#include "ops/softmax_backward.hpp"
#include "shaders/softmax_backward_rows.hpp"

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
  target.dispatch({.name = shaders::softmax_backward_rows.name,
                   .module = shaders::softmax_backward_rows.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.rows, kRowsOfGroup), 1, 1}});
}

std::optional<std::string> refuse(const ops::SoftmaxBackwardArgs& args) {
  if (auto why = refuse_rows(args.rows, args.n, 2)) return why;
  return refuse_large(args.y, args.dy, args.dx);
}

const KernelRegistration rows{{.id = "softmax_backward/vulkan/rows",
                               .arithmetic = kShaderArithmetic,
                               .summary = "64 invocations a row, two passes, tree reduction in shared memory",
                               .run = &run_typed<ops::SoftmaxBackwardArgs, &run>,
                               .refuse = &refuse_typed<ops::SoftmaxBackwardArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_softmax_backward
