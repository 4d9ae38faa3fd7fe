// y = A · x: launches gemv.comp and gemv_naive.comp. y shares no memory with a or x (the contract's clause).
// Error: k terms in any order, at most k*u*sum|a||x| and the flushed subnormals. k = 0 writes zeros.
#include "ops/gemv.hpp"

#include "kernels/vulkan/launch.hpp"
#include "shaders/gemv_cooperative.hpp"
#include "shaders/gemv_naive.hpp"

namespace assay::vulkan::of_gemv {
namespace {

using ops::GemvArgs;

/// Push constants of gemv.comp.
struct GemvPush {
  std::uint32_t m, k, a_first, a_ld, x_first, x_stride, y_first, y_stride;
};

/// A workgroup computes `rows` outputs at a time.
template <const Shader& shader, Index rows>
void run(const GemvArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const StorageBinding a = bind(target, args.a), x = bind(target, args.x), y = bind(target, args.y);
  const GemvPush push{static_cast<std::uint32_t>(args.m),
                      static_cast<std::uint32_t>(args.k),
                      a.first,
                      step(args.a, 0),
                      x.first,
                      step(args.x, 0),
                      y.first,
                      step(args.y, 0)};
  const std::array vector{vectors(args.a, a), vectors(args.x, x)};
  const std::array bindings{a, x, y};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.m, rows), 1, 1}});
}

/// Counts one iteration per `terms` terms, and eight for the reduction, for every row of an invocation.
template <Index rows, Index terms>
std::optional<std::string> refuse(const GemvArgs& args) {
  const Index passes = (args.m + rows * kMaxGroups - 1) / (rows * kMaxGroups);
  if (auto why = refuse_long(passes * ((args.k + terms - 1) / terms + 10))) return why;
  return refuse_large(args.a, args.x, args.y);
}

const KernelRegistration naive{{.id = "gemv/vulkan/naive",
                                .arithmetic = kShaderArithmetic,
                                .summary = "one row per invocation, terms in order",
                                .run = &run_typed<GemvArgs, &run<shaders::gemv_naive, 64>>,
                                .refuse = &refuse_typed<GemvArgs, &refuse<64, 1>>,
                                .automatic_above = kProductVolume}};
const KernelRegistration cooperative{{.id = "gemv/vulkan/cooperative",
                                      .arithmetic = kShaderArithmetic,
                                      .summary = "64 invocations per row, tree reduction in shared memory",
                                      .run = &run_typed<GemvArgs, &run<shaders::gemv_cooperative, 4>>,
                                      .refuse = &refuse_typed<GemvArgs, &refuse<4, 256>>,
                                      .priority = 1,
                                      .automatic_above = kProductVolume}};

}  // namespace
}  // namespace assay::vulkan::of_gemv
