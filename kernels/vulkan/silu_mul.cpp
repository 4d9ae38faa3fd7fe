// The gate of SwiGLU: launches silu_mul.comp.
#include "ops/silu_mul.hpp"

#include "kernels/vulkan/silu_mul.hpp"
#include "shaders/silu_mul_rows.hpp"

namespace assay::vulkan::of_silu_mul {
namespace {

const KernelRegistration rows_kernel{silu_mul_row<ops::SiluMulArgs, shaders::silu_mul_rows>("silu_mul/vulkan/rows")};

}  // namespace
}  // namespace assay::vulkan::of_silu_mul
