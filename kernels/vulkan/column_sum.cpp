// y = sums of the columns of x: launches column_sum.comp. Nothing shares memory (the contract's clause).
// Error: m terms in a fixed order, at most m*u*sum|x| and the flushed subnormals. m = 0 writes zeros.
#include "kernels/vulkan/launch.hpp"
#include "ops/column_sum.hpp"
#include "shaders/column_sum_stripes.hpp"

namespace assay::vulkan::of_column_sum {
namespace {

/// Push constants of column_sum.comp.
struct ColumnSumPush {
  std::uint32_t m, n, x_first, x_ld, y_first;
};

void run(const ops::ColumnSumArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.x), bind(target, args.y)};
  const ColumnSumPush push{static_cast<std::uint32_t>(args.m), static_cast<std::uint32_t>(args.n), bindings[0].first,
                           step(args.x, 0), bindings[1].first};
  target.dispatch({.name = shaders::column_sum_stripes.name,
                   .module = shaders::column_sum_stripes.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 32), 1, 1}});
}

std::optional<std::string> refuse(const ops::ColumnSumArgs& args) {
  if (auto why = refuse_long(args.m / 8 + 10)) return why;
  return refuse_large(args.x, args.y);
}

const KernelRegistration stripes_kernel{{.id = "column_sum/vulkan/stripes",
                                         .arithmetic = kShaderArithmetic,
                                         .summary = "32 columns per workgroup, eight stripes of rows added in order",
                                         .run = &run_typed<ops::ColumnSumArgs, &run>,
                                         .refuse = &refuse_typed<ops::ColumnSumArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_column_sum
