// Gradients of silu_mul: launches silu_mul_backward.comp.
#include "kernels/vulkan/silu_mul.hpp"
#include "ops/silu_mul_backward.hpp"
#include "shaders/silu_mul_backward_rows.hpp"
#include "shaders/silu_mul_backward_rows_bf16.hpp"
#include "shaders/silu_mul_backward_rows_f16.hpp"

namespace assay::vulkan::of_silu_mul_backward {
namespace {

void run(const ops::SiluMulBackwardArgs& args, Device& device) {
  run_over_rows<5>(variant(args.dy.dtype(), shaders::silu_mul_backward_rows, shaders::silu_mul_backward_rows_f16,
                           shaders::silu_mul_backward_rows_bf16),
                   args.rows, args.n, {args.gate, args.up, args.dy, args.dgate, args.dup}, device);
}

std::optional<std::string> refuse(const ops::SiluMulBackwardArgs& args) {
  if (auto why = refuse_rows(args.rows, args.n, 1)) return why;
  return refuse_large(args.gate, args.up, args.dy, args.dgate, args.dup);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "both gradients in one pass, four elements an invocation",
                             .run = &run_typed<ops::SiluMulBackwardArgs, &run>,
                             .refuse = &refuse_typed<ops::SiluMulBackwardArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "silu_mul_backward/vulkan/rows"),
                                            add(DType::f16, "silu_mul_backward/vulkan/rows_f16"),
                                            add(DType::bf16, "silu_mul_backward/vulkan/rows_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_silu_mul_backward
