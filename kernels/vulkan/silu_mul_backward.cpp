// Gradients of silu_mul: launches silu_mul_backward.comp.
#include "ops/silu_mul_backward.hpp"

#include "kernels/vulkan/silu_mul.hpp"
#include "shaders/silu_mul_backward_rows.hpp"

namespace assay::vulkan::of_silu_mul_backward {
namespace {

const KernelRegistration rows_kernel{silu_mul_backward_row<ops::SiluMulBackwardArgs, shaders::silu_mul_backward_rows>("silu_mul_backward/vulkan/rows")};

}  // namespace
}  // namespace assay::vulkan::of_silu_mul_backward
