// Weighted cross-entropy: launches cross_entropy.comp and cross_entropy_total.comp. Outputs share no memory with inputs
// (the contract's clauses). Error: the contract's bound, with the precision that Vulkan asks of exp, log and division.
#include "kernels/vulkan/cross_entropy.hpp"

#include "shaders/cross_entropy_row.hpp"
#include "shaders/cross_entropy_total.hpp"

namespace assay::vulkan::of_cross_entropy {
namespace {

const KernelRegistration workgroup_per_row{
    cross_entropy_kernel<shaders::cross_entropy_row, shaders::cross_entropy_total>(
        "cross_entropy/vulkan/workgroup_per_row")};

}  // namespace
}  // namespace assay::vulkan::of_cross_entropy
