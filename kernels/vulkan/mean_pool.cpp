// Means over tokens: launches mean_pool.comp. y shares no memory with x or lengths (the contract's clause).
// Error: lengths[b] terms in a fixed order and a division, and the flushed subnormals. Reads no padding.
#include "kernels/vulkan/mean_pool.hpp"

#include "shaders/mean_pool_stripes.hpp"

namespace assay::vulkan::of_mean_pool {
namespace {

const KernelRegistration stripes_row{
    mean_pool_row<shaders::mean_pool_stripes>("mean_pool/vulkan/stripes", "kernels/vulkan/mean_pool.comp",
                                              "32 columns per workgroup, eight stripes of tokens added in order")};

}  // namespace
}  // namespace assay::vulkan::of_mean_pool
