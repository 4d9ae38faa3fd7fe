// The gate of SwiGLU: launches silu_mul.comp.
#include "kernels/vulkan/silu_mul.hpp"
#include "ops/silu_mul.hpp"
#include "shaders/silu_mul_rows.hpp"
#include "shaders/silu_mul_rows_bf16.hpp"
#include "shaders/silu_mul_rows_f16.hpp"

namespace assay::vulkan::of_silu_mul {
namespace {

void run(const ops::SiluMulArgs& args, Device& device) {
  run_over_rows<3>(
      variant(args.y.dtype(), shaders::silu_mul_rows, shaders::silu_mul_rows_f16, shaders::silu_mul_rows_bf16),
      args.rows, args.n, {args.gate, args.up, args.y}, device);
}

std::optional<std::string> refuse(const ops::SiluMulArgs& args) {
  if (auto why = refuse_rows(args.rows, args.n, 1)) return why;
  return refuse_large(args.gate, args.up, args.y);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "one pass, four elements an invocation",
                             .run = &run_typed<ops::SiluMulArgs, &run>,
                             .refuse = &refuse_typed<ops::SiluMulArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "silu_mul/vulkan/rows"),
                                            add(DType::f16, "silu_mul/vulkan/rows_f16"),
                                            add(DType::bf16, "silu_mul/vulkan/rows_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_silu_mul
