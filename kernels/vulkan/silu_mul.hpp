// The launchers of silu_mul and of its gradients, shared with their mutants.
#pragma once

#include "kernels/vulkan/rows.hpp"

namespace assay::vulkan {

/// Binds matrices of one shape and dispatches over their rows: push constants are rows, n, and (first, leading dimension) of
/// each matrix in turn; specialization constants say which of them may be read by vectors.
template <const Shader& shader, std::size_t count>
void run_over_rows(Index rows, Index n, const std::array<View<float>, count>& matrices, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  std::array<StorageBinding, count> bindings;
  std::array<std::uint32_t, count> vector;
  std::array<std::uint32_t, 2 + 2 * count> push{u32(rows), u32(n)};
  for (std::size_t m = 0; m < count; ++m) {
    bindings[m] = bind(target, matrices[m]);
    vector[m] = vectors(matrices[m], bindings[m]);
    push[2 + 2 * m] = bindings[m].first;
    push[3 + 2 * m] = step(matrices[m], 0);
  }
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(rows, kRowsOfGroup), 1, 1}});
}

/// A tensor of the call, which a shader may write or not.
template <class V>
View<float> words(const V& view) {
  return {static_cast<float*>(const_cast<void*>(static_cast<const void*>(view.data()))), view.shape(), view.strides()};
}

/// Args: SiluMulArgs.
template <class Args, const Shader& shader>
Kernel silu_mul_row(std::string_view id) {
  return {.op = "silu_mul",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = kShaderArithmetic,
          .source = "kernels/vulkan/silu_mul.comp",
          .summary = "one pass, four elements an invocation; f32 storage alone",
          .run =
              [](const Call& call, Device& device) {
                const Args args = Args::unpack(call);
                run_over_rows<shader, 3>(args.rows, args.n, {words(args.gate), words(args.up), words(args.y)}, device);
              },
          .refuse = [](const Call& call) -> std::optional<std::string> {
            const Args args = Args::unpack(call);
            if (auto why = refuse_rows(args.rows, args.n, 1)) return why;
            return refuse_large(words(args.gate), words(args.up), words(args.y));
          }};
}

/// Args: SiluMulBackwardArgs.
template <class Args, const Shader& shader>
Kernel silu_mul_backward_row(std::string_view id) {
  return {.op = "silu_mul_backward",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = kShaderArithmetic,
          .source = "kernels/vulkan/silu_mul_backward.comp",
          .summary = "both gradients in one pass, four elements an invocation",
          .run =
              [](const Call& call, Device& device) {
                const Args args = Args::unpack(call);
                run_over_rows<shader, 5>(
                    args.rows, args.n,
                    {words(args.gate), words(args.up), words(args.dy), words(args.dgate), words(args.dup)}, device);
              },
          .refuse = [](const Call& call) -> std::optional<std::string> {
            const Args args = Args::unpack(call);
            if (auto why = refuse_rows(args.rows, args.n, 1)) return why;
            return refuse_large(args.gate, args.up, args.dy, args.dgate, args.dup);
          }};
}

}  // namespace assay::vulkan
