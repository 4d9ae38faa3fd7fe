// Wrong bias_add: bias_add.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/bias_add.hpp"

#include "shaders/mutant_bias_add_bias_dropped.hpp"
#include "shaders/mutant_bias_add_first_row_only.hpp"

namespace assay::falsify::bias_add_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return vulkan::map_mutant(vulkan::bias_add_row<shader>("", "falsify/mutants/vulkan/bias_add.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_bias_add_bias_dropped>("mutant/vulkan/bias_add/bias_dropped",
                                                                    "the bias is left out (bug 42)")),
    KernelRegistration(wrong<shaders::mutant_bias_add_first_row_only>("mutant/vulkan/bias_add/first_row_only",
                                                                      "a single row is launched for a batch (bug 43)")),
};

}  // namespace
}  // namespace assay::falsify::bias_add_mutants
