// dst = srcᵀ: launches transpose.comp and transpose_naive.comp. src and dst share no memory (the contract's
// clause). Every bit is kept.
#include "kernels/vulkan/transpose.hpp"

#include "shaders/transpose_naive.hpp"
#include "shaders/transpose_tiled32.hpp"

namespace assay::vulkan::of_transpose {
namespace {

using ops::TransposeArgs;

const KernelRegistration naive{{.op = "transpose",
                                .id = "transpose/vulkan/naive",
                                .backend = Backend::vulkan,
                                .source = "kernels/vulkan/transpose_naive.comp",
                                .summary = "one element per invocation",
                                .run = &run_typed<TransposeArgs, &run_transpose<shaders::transpose_naive, 8>>,
                                .refuse = &refuse_typed<TransposeArgs, &refuse_transpose>,
                                .automatic_above = kNeverAutomatic}};
const KernelRegistration tiled32{{.op = "transpose",
                                  .id = "transpose/vulkan/tiled32",
                                  .backend = Backend::vulkan,
                                  .source = "kernels/vulkan/transpose.comp",
                                  .summary = "32x32 tiles in padded shared memory",
                                  .run = &run_typed<TransposeArgs, &run_transpose<shaders::transpose_tiled32, 32>>,
                                  .refuse = &refuse_typed<TransposeArgs, &refuse_transpose>,
                                  .priority = 1,
                                  .automatic_above = kNeverAutomatic}};

}  // namespace
}  // namespace assay::vulkan::of_transpose
