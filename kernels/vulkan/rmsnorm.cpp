// Root mean square normalization: launches rmsnorm.comp. Buffers are bound as 4-byte words: f32 storage alone.
#include "kernels/vulkan/rmsnorm.hpp"

#include "shaders/rmsnorm_rows.hpp"

namespace assay::vulkan::of_rmsnorm {
namespace {

const KernelRegistration rows_kernel{rmsnorm_row<shaders::rmsnorm_rows>("rmsnorm/vulkan/rows")};

}  // namespace
}  // namespace assay::vulkan::of_rmsnorm
