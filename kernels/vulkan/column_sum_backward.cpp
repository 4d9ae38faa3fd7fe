// dx = dy in every row: launches column_sum_backward.comp. dx shares no memory with dy (the contract's clause).
#include "kernels/vulkan/elementwise.hpp"
#include "ops/column_sum_backward.hpp"
#include "shaders/column_sum_backward_vectors.hpp"

namespace assay::vulkan::of_column_sum_backward {
namespace {

void run(const ops::ColumnSumBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<1>(shaders::column_sum_backward_vectors, target, args.m, args.n, 0, map_tensor(target, args.dx),
             {MapTensor{bind(target, args.dy), 0}});
}

std::optional<std::string> refuse(const ops::ColumnSumBackwardArgs& args) { return refuse_large(args.dy, args.dx); }

const KernelRegistration vectors_kernel{{.id = "column_sum_backward/vulkan/vectors",
                                         .arithmetic = kShaderArithmetic,
                                         .summary = "one pass, 16 bytes an invocation where rows are aligned",
                                         .run = &run_typed<ops::ColumnSumBackwardArgs, &run>,
                                         .refuse = &refuse_typed<ops::ColumnSumBackwardArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_column_sum_backward
