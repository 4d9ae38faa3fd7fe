// y = value: launches fill.comp. Nothing is rounded.
#include <bit>

#include "kernels/vulkan/launch.hpp"
#include "ops/fill.hpp"
#include "shaders/fill_rows.hpp"

namespace assay::vulkan::of_fill {
namespace {

/// Push constants of fill.comp.
struct FillPush {
  std::uint32_t m, n, y_first, y_ld, value;
};

void run(const ops::FillArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.y)};
  const FillPush push{static_cast<std::uint32_t>(args.m), static_cast<std::uint32_t>(args.n), bindings[0].first,
                      step(args.y, 0), std::bit_cast<std::uint32_t>(static_cast<float>(args.value))};
  target.dispatch({.name = shaders::fill_rows.name,
                   .module = shaders::fill_rows.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 32), groups(args.m, 8), 1}});
}

std::optional<std::string> refuse(const ops::FillArgs& args) { return refuse_large(args.y); }

const KernelRegistration rows_kernel{{.id = "fill/vulkan/rows",
                                      .arithmetic = kShaderArithmetic,
                                      .summary = "one column per invocation at a time",
                                      .run = &run_typed<ops::FillArgs, &run>,
                                      .refuse = &refuse_typed<ops::FillArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_fill
