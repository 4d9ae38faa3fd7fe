// y = W·x for W in Q4_K super-blocks: launches q4_k_gemv.comp. y shares no memory with blocks or x (the contract's clause).
// Error: k terms in any order, at most k*u*sum|w||x| and the flushed subnormals. k = 0 writes zeros.
#include "kernels/vulkan/q4_k_gemv.hpp"

#include "shaders/q4_k_gemv_cooperative.hpp"

namespace assay::vulkan::of_q4_k_gemv {
namespace {

const KernelRegistration cooperative_row{q4k_gemv_row<shaders::q4_k_gemv_cooperative>(
    "q4_k_gemv/vulkan/cooperative", "kernels/vulkan/q4_k_gemv.comp", "64 invocations per row, tree reduction in shared memory")};

}  // namespace
}  // namespace assay::vulkan::of_q4_k_gemv
