// The gate of SwiGLU: launches silu_mul.comp.
#include "kernels/vulkan/silu_mul.hpp"
#include "ops/silu_mul.hpp"
#include "shaders/silu_mul_rows.hpp"

namespace assay::vulkan::of_silu_mul {
namespace {

void run(const ops::SiluMulArgs& args, Device& device) {
  run_over_rows<3>(shaders::silu_mul_rows, args.rows, args.n, {words(args.gate), words(args.up), words(args.y)},
                   device);
}

std::optional<std::string> refuse(const ops::SiluMulArgs& args) {
  if (auto why = refuse_rows(args.rows, args.n, 1)) return why;
  return refuse_large(words(args.gate), words(args.up), words(args.y));
}

const KernelRegistration rows_kernel{{.id = "silu_mul/vulkan/rows",
                                      .arithmetic = kShaderArithmetic,
                                      .summary = "one pass, four elements an invocation; f32 storage alone",
                                      .run = &run_typed<ops::SiluMulArgs, &run>,
                                      .refuse = &refuse_typed<ops::SiluMulArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_silu_mul
