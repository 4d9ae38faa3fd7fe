// Wrong mean_pool: mean_pool.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/mean_pool.hpp"

#include "shaders/mutant_mean_pool_divided_by_rows.hpp"
#include "shaders/mutant_mean_pool_no_barrier.hpp"

namespace assay::falsify::mean_pool_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return vulkan::map_mutant(vulkan::mean_pool_row<shader>("", "falsify/mutants/vulkan/mean_pool.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_mean_pool_divided_by_rows>("mutant/vulkan/mean_pool/divided_by_rows",
                                                                        "divided by s in place of the length")),
    KernelRegistration(wrong<shaders::mutant_mean_pool_no_barrier>(
        "mutant/vulkan/mean_pool/no_barrier", "the sums of the stripes are read before all are stored (bug 28)")),
};

}  // namespace
}  // namespace assay::falsify::mean_pool_mutants
