// Wrong silu: silu.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/silu.hpp"

#include "shaders/mutant_silu_exp_of_x.hpp"
#include "shaders/mutant_silu_hard_sigmoid.hpp"
#include "shaders/mutant_silu_tail_unwritten.hpp"

namespace assay::falsify::silu_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return vulkan::map_mutant(vulkan::silu_row<shader>("", "falsify/mutants/vulkan/silu.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_silu_exp_of_x>("mutant/vulkan/silu/exp_of_x",
                                                            "exp(x) / (1 + exp(x)) everywhere: Inf / Inf for large x")),
    KernelRegistration(wrong<shaders::mutant_silu_hard_sigmoid>("mutant/vulkan/silu/hard_sigmoid",
                                                                "the piecewise linear approximation of sigmoid")),
    KernelRegistration(wrong<shaders::mutant_silu_tail_unwritten>(
        "mutant/vulkan/silu/tail_unwritten", "columns past the last whole group of four unwritten (bug 8)")),
};

}  // namespace
}  // namespace assay::falsify::silu_mutants
