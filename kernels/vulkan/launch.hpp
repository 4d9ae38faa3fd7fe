// Views as bindings and push constants, and refusals, shared by the launchers of Vulkan kernels.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "core/view.hpp"
#include "runtime/registry.hpp"
#include "runtime/vulkan/shader.hpp"
#include "runtime/vulkan/vulkan_device.hpp"

namespace assay::vulkan {

/// Largest extent of a view in elements: shaders index 32-bit words of a buffer of at most 4 GiB.
inline constexpr Index kMaxExtent = Index{1} << 30;
/// Workgroups that every device supports along an axis (Vulkan 1.2, table 53). Shaders that cover more loop.
inline constexpr Index kMaxGroups = 65535;
/// Limit on the iterations of all loops of one invocation together. llvmpipe silently ends loops after 65535
/// (LP_MAX_TGSI_LOOP_ITERATIONS), and a truncated sum looks like any other.
inline constexpr Index kMaxIterations = 65535;
/// Declared by every kernel that computes: the specification lets shaders flush subnormals.
inline constexpr Arithmetic kShaderArithmetic{.flushes_subnormals = true, .functions = FunctionLibrary::vulkan};

/// Automatic dispatch leaves products of m·k·n up to this to the CPU.
inline constexpr double kProductVolume = 32768;

inline VulkanDevice& vulkan_device(Device& device) { return static_cast<VulkanDevice&>(device); }

template <AnyView V>
StorageBinding bind(const VulkanDevice& device, const V& view) {
  const std::size_t element = element_bytes(view);  // bytes are read as words
  return device.bind(view.data(), static_cast<std::size_t>(view.extent()) * element, element == 2 ? 2 : 4);
}

/// Returns the variant of a shader for a storage format.
inline const Shader& variant(DType storage, const Shader& f32, const Shader& f16, const Shader& bf16) {
  return storage == DType::f16 ? f16 : storage == DType::bf16 ? bf16 : f32;
}

/// Returns the stride of an axis, or 0 for an axis of extent 1, whose stride is meaningless.
template <AnyView V>
std::uint32_t step(const V& view, int axis) {
  return view.dim(axis) > 1 ? static_cast<std::uint32_t>(view.stride(axis)) : 0;
}

/// Returns the distance between rows of bytes, in 32-bit words.
template <class T>
std::uint32_t word_step(const View<T>& bytes) {
  static_assert(sizeof(T) == 1);
  return step(bytes, 0) / 4;
}

/// Returns true if every row of a matrix (or the vector) has unit stride and starts at a multiple of four elements.
template <AnyView V>
std::uint32_t vectors(const V& view, const StorageBinding& binding) {
  const std::uint32_t inner = step(view, view.rank() - 1);
  return binding.first % 4 == 0 && inner <= 1 && (view.rank() == 1 || step(view, 0) % 4 == 0) ? 1 : 0;
}

/// Returns the number of workgroups for `count` items, `each` of them per workgroup, up to the number that every device
/// supports.
inline std::uint32_t groups(Index count, Index each) {
  return static_cast<std::uint32_t>(std::min((count + each - 1) / each, kMaxGroups));
}

template <class Push>
std::span<const std::byte> bytes_of(const Push& push) {
  return std::as_bytes(std::span(&push, 1));
}

/// Returns the refusal if a view extends beyond 32-bit indices.
template <AnyView... V>
std::optional<std::string> refuse_large(const V&... views) {
  const Index largest = std::max({views.extent()...});
  if (largest <= kMaxExtent) return std::nullopt;
  return "a tensor reaches over " + std::to_string(largest) + " elements; shaders index at most " +
         std::to_string(kMaxExtent);
}

/// Returns the refusal if the loops need too many iterations.
inline std::optional<std::string> refuse_long(Index turns) {
  if (turns <= kMaxIterations) return std::nullopt;
  return "its loops would turn " + std::to_string(turns) + " times; not every driver turns more than " +
         std::to_string(kMaxIterations) + " (llvmpipe)";
}

}  // namespace assay::vulkan
