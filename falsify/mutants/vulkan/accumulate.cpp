// Wrong accumulate: accumulate.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/accumulate.hpp"

#include "shaders/mutant_accumulate_first_row_only.hpp"
#include "shaders/mutant_accumulate_overwrites.hpp"

namespace assay::falsify::accumulate_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return vulkan::map_mutant(vulkan::accumulate_row<shader>("", "falsify/mutants/vulkan/accumulate.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_accumulate_overwrites>("mutant/vulkan/accumulate/overwrites",
                                                                    "dst is overwritten instead of added to (bug 29)")),
    KernelRegistration(wrong<shaders::mutant_accumulate_first_row_only>(
        "mutant/vulkan/accumulate/first_row_only", "a single row is launched for a batch (bug 43)")),
};

}  // namespace
}  // namespace assay::falsify::accumulate_mutants
