// y = A · x: launches gemv.comp and gemv_naive.comp. y shares no memory with a or x (the contract's clause).
// Error: k terms in any order, at most k*u*sum|a||x| and the flushed subnormals, and half a unit of a 16-bit y.
// k = 0 writes zeros.
#include "ops/gemv.hpp"

#include "kernels/vulkan/launch.hpp"
#include "shaders/gemv_cooperative.hpp"
#include "shaders/gemv_cooperative_bf16.hpp"
#include "shaders/gemv_cooperative_f16.hpp"
#include "shaders/gemv_naive.hpp"
#include "shaders/gemv_naive_bf16.hpp"
#include "shaders/gemv_naive_f16.hpp"

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

constexpr std::string_view kNaive = "one row per invocation, terms in order";
constexpr std::string_view kCooperative = "64 invocations per row, tree reduction in shared memory";

/// A workgroup computes `rows` outputs at a time, an iteration takes `terms` terms.
template <const Shader& shader, Index rows, Index terms>
Kernel gemv_kernel(std::string_view id, std::string_view summary, DType storage = DType::f32) {
  return {.id = id,
          .arithmetic = kShaderArithmetic,
          .storage = storage,
          .summary = summary,
          .run = &run_typed<GemvArgs, &run<shader, rows>>,
          .refuse = &refuse_typed<GemvArgs, &refuse<rows, terms>>,
          .automatic_above = kProductVolume};
}

const KernelRegistration naive{gemv_kernel<shaders::gemv_naive, 64, 1>("gemv/vulkan/naive", kNaive)};
const KernelRegistration naive_f16{
    gemv_kernel<shaders::gemv_naive_f16, 64, 1>("gemv/vulkan/naive_f16", kNaive, DType::f16)};
const KernelRegistration naive_bf16{
    gemv_kernel<shaders::gemv_naive_bf16, 64, 1>("gemv/vulkan/naive_bf16", kNaive, DType::bf16)};
const KernelRegistration cooperative{
    preferred(gemv_kernel<shaders::gemv_cooperative, 4, 256>("gemv/vulkan/cooperative", kCooperative))};
const KernelRegistration cooperative_f16{preferred(
    gemv_kernel<shaders::gemv_cooperative_f16, 4, 256>("gemv/vulkan/cooperative_f16", kCooperative, DType::f16))};
const KernelRegistration cooperative_bf16{preferred(
    gemv_kernel<shaders::gemv_cooperative_bf16, 4, 256>("gemv/vulkan/cooperative_bf16", kCooperative, DType::bf16))};

}  // namespace
}  // namespace assay::vulkan::of_gemv
