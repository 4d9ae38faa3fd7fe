// The launcher of softmax.
#include "kernels/vulkan/rows.hpp"
#include "ops/softmax.hpp"
#include "shaders/softmax_rows.hpp"
#include "shaders/softmax_rows_bf16.hpp"
#include "shaders/softmax_rows_f16.hpp"

namespace assay::vulkan::of_softmax {
namespace {

/// Push constants of softmax.comp.
struct SoftmaxPush {
  std::uint32_t rows, n, x_first, x_ld, y_first, y_ld;
};

void run(const ops::SoftmaxArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.x), bind(target, args.y)};
  const std::array vector{vectors(args.x, bindings[0]), vectors(args.y, bindings[1])};
  const SoftmaxPush push{u32(args.rows),  u32(args.n),       bindings[0].first,
                         step(args.x, 0), bindings[1].first, step(args.y, 0)};
  const Shader& shader =
      variant(args.x.dtype(), shaders::softmax_rows, shaders::softmax_rows_f16, shaders::softmax_rows_bf16);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.rows, kRowsOfGroup), 1, 1}});
}

std::optional<std::string> refuse(const ops::SoftmaxArgs& args) {
  if (auto why = refuse_rows(args.rows, args.n, 3)) return why;
  return refuse_large(args.x, args.y);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "64 invocations a row, three passes, tree reductions in shared memory",
                             .run = &run_typed<ops::SoftmaxArgs, &run>,
                             .refuse = &refuse_typed<ops::SoftmaxArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "softmax/vulkan/rows"),
                                            add(DType::f16, "softmax/vulkan/rows_f16"),
                                            add(DType::bf16, "softmax/vulkan/rows_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_softmax
