// Wrong mean_pool_backward: mean_pool_backward.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/mean_pool_backward.hpp"

#include "shaders/mutant_mean_pool_backward_divided_by_rows.hpp"
#include "shaders/mutant_mean_pool_backward_length_included.hpp"

namespace assay::falsify::mean_pool_backward_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return vulkan::map_mutant(
      vulkan::mean_pool_backward_row<shader>("", "falsify/mutants/vulkan/mean_pool_backward.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_mean_pool_backward_divided_by_rows>(
        "mutant/vulkan/mean_pool_backward/divided_by_rows", "divided by s in place of the length")),
    KernelRegistration(wrong<shaders::mutant_mean_pool_backward_length_included>(
        "mutant/vulkan/mean_pool_backward/length_included", "i <= length")),
};

}  // namespace
}  // namespace assay::falsify::mean_pool_backward_mutants
