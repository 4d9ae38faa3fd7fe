// dst = src between any two layouts: launches tensor_layout.comp. src and dst share no memory, and dst's
// elements are apart (the contract's clauses). Every bit is kept.
#include "kernels/vulkan/tensor_layout.hpp"

#include "shaders/tensor_layout_strided.hpp"

namespace assay::vulkan::of_tensor_layout {
namespace {

using ops::TensorLayoutArgs;

const KernelRegistration strided{
    {.op = "tensor_layout",
     .id = "tensor_layout/vulkan/strided",
     .backend = Backend::vulkan,
     .source = "kernels/vulkan/tensor_layout.comp",
     .summary = "one element per invocation, along the destination's memory",
     .run = &run_typed<TensorLayoutArgs, &run_tensor_layout<shaders::tensor_layout_strided>>,
     .refuse = &refuse_typed<TensorLayoutArgs, &refuse_tensor_layout>,
     .automatic_above = kNeverAutomatic}};

}  // namespace
}  // namespace assay::vulkan::of_tensor_layout
