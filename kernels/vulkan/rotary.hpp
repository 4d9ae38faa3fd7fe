// The launcher of rope and of its gradient.
#pragma once

#include "kernels/rotary.hpp"
#include "kernels/vulkan/rows.hpp"

namespace assay::vulkan {

/// Push constants of rotary.glsl.
struct RotaryPush {
  std::uint32_t rows, heads, half_d, x_first, x_row, x_head, y_first, y_row, y_head, interleaved, float32_angle, position;
};

/// Launches with the frequencies of the call in a buffer of their own.
inline void run_rotary(const Shader& shader, const Rotary& call, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const View<float> x = f32(call.from), y = f32(call.to);
  if (x.size() == 0) return;
  const std::vector<RotaryFrequency>& table = rotary_frequencies(call.theta, call.d, call.float32_angle);
  const Buffer frequencies = target.allocate(table.size() * sizeof(RotaryFrequency));
  target.upload(frequencies.address(), table.data(), frequencies.bytes());
  const std::array bindings{bind(target, x), bind(target, y), target.bind(frequencies.address(), frequencies.bytes())};
  const RotaryPush push{u32(call.rows),    u32(call.heads),    u32(call.d / 2), bindings[0].first,
                        step(x, 0),        step(x, 1),         bindings[1].first, step(y, 0),
                        step(y, 1),        call.interleaved,   call.float32_angle, u32(call.position)};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(call.rows * call.d / 2, 64), 1, 1}});
}

inline std::optional<std::string> refuse_rotary(const Rotary& call) {
  if (auto why = refuse_long((call.rows * call.d / 2 / (64 * kMaxGroups) + 1) * (call.heads + 1))) return why;
  return refuse_large(f32(call.from), f32(call.to));
}

}  // namespace assay::vulkan
