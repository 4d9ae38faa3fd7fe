// q = the 8-bit code of (absmax - mean) / absmax2: launches nf4_absmax_quantize_sum.comp, then nf4_absmax_quantize.comp
// or its naive neighbour. Tensors share no memory; codes, absmax2 and offset are dense (the contract's clauses). What
// counts is 0 or large enough that no limit is subnormal: bits are the contract's.
#include "kernels/vulkan/nf4_absmax_quantize.hpp"

#include "shaders/nf4_absmax_quantize_groups.hpp"
#include "shaders/nf4_absmax_quantize_naive.hpp"
#include "shaders/nf4_absmax_quantize_sum.hpp"

namespace assay::vulkan::of_nf4_absmax_quantize {
namespace {

const KernelRegistration naive{
    nf4_absmax_quantize_row<shaders::nf4_absmax_quantize_sum, shaders::nf4_absmax_quantize_naive, 64>(
        "nf4_absmax_quantize/vulkan/naive", "kernels/vulkan/nf4_absmax_quantize_naive.comp",
        "one invocation a group of 256")};
const KernelRegistration in_groups{
    preferred(nf4_absmax_quantize_row<shaders::nf4_absmax_quantize_sum, shaders::nf4_absmax_quantize_groups, 1>(
        "nf4_absmax_quantize/vulkan/groups", "kernels/vulkan/nf4_absmax_quantize.comp",
        "one workgroup a group of 256, limits in shared memory, searched by halves"))};

}  // namespace
}  // namespace assay::vulkan::of_nf4_absmax_quantize
