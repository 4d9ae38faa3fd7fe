// y = x sigmoid(x): launches silu.comp. y shares no memory with x (the contract's clause). Vulkan's exp errs by 3 +
// 2|x| units.
#include "kernels/vulkan/silu.hpp"

#include "shaders/silu_vectors.hpp"

namespace assay::vulkan::of_silu {
namespace {

const KernelRegistration vectors_row{silu_row<shaders::silu_vectors>(
    "silu/vulkan/vectors", "kernels/vulkan/silu.comp", "one pass, 16 bytes an invocation where rows are aligned")};

}  // namespace
}  // namespace assay::vulkan::of_silu
