// y = x + bias: launches bias_add.comp. y shares no memory with x or bias (the contract's clause). One rounding.
#include "kernels/vulkan/bias_add.hpp"

#include "shaders/bias_add_vectors.hpp"

namespace assay::vulkan::of_bias_add {
namespace {

const KernelRegistration vectors_row{
    bias_add_row<shaders::bias_add_vectors>("bias_add/vulkan/vectors", "kernels/vulkan/bias_add.comp",
                                            "one pass, 16 bytes an invocation where rows are aligned")};

}  // namespace
}  // namespace assay::vulkan::of_bias_add
