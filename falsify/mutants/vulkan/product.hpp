// Mutants of the matrix products: the kernel's own shader compiled with a FAULT_* macro, or its launcher with one
// field changed. Numbers are those of the list of real bugs.
#pragma once

#include "kernels/vulkan/product.hpp"

namespace assay::falsify {

using vulkan::ProductLaunch;
using vulkan::Shader;

/// A mutant whose shader is wrong.
template <class Args, const Shader& shader, Index tile>
Kernel product_mutant(std::string_view op, std::string_view id, std::string_view source, std::string_view fault) {
  Kernel wrong = vulkan::product_kernel<Args, shader, tile>(op, id, source, "a wrong product");
  wrong.role = KernelRole::mutant;
  wrong.fault = fault;
  return wrong;
}

/// Runs the right shader with a wrong launch.
template <class Args, const Shader& shader, Index tile, void (*change)(ProductLaunch&)>
void run_changed(const Args& args, Device& device) {
  VulkanDevice& target = vulkan::vulkan_device(device);
  ProductLaunch launch = vulkan::plan_product(args, target, tile);
  change(launch);
  launch.run(shader, target);
}

/// A mutant whose launch is wrong.
template <class Args, const Shader& shader, Index tile, void (*change)(ProductLaunch&)>
Kernel launch_mutant(std::string_view op, std::string_view id, std::string_view source, std::string_view fault) {
  Kernel wrong = product_mutant<Args, shader, tile>(op, id, source, fault);
  wrong.run = &run_typed<Args, &run_changed<Args, shader, tile, change>>;
  return wrong;
}

}  // namespace assay::falsify
