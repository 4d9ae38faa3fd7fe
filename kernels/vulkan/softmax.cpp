// Softmax of rows: launches softmax.comp.
#include "kernels/vulkan/softmax.hpp"

#include "shaders/softmax_rows.hpp"

namespace assay::vulkan::of_softmax {
namespace {

const KernelRegistration rows_kernel{softmax_row<shaders::softmax_rows>("softmax/vulkan/rows")};

}  // namespace
}  // namespace assay::vulkan::of_softmax
