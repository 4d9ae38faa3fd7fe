// Gradients of silu_mul: launches silu_mul_backward.comp.
#include "kernels/vulkan/silu_mul.hpp"
#include "ops/silu_mul_backward.hpp"
#include "shaders/silu_mul_backward_rows.hpp"

namespace assay::vulkan::of_silu_mul_backward {
namespace {

void run(const ops::SiluMulBackwardArgs& args, Device& device) {
  run_over_rows<5>(shaders::silu_mul_backward_rows, args.rows, args.n,
                   {words(args.gate), words(args.up), words(args.dy), words(args.dgate), words(args.dup)}, device);
}

std::optional<std::string> refuse(const ops::SiluMulBackwardArgs& args) {
  if (auto why = refuse_rows(args.rows, args.n, 1)) return why;
  return refuse_large(args.gate, args.up, args.dy, args.dgate, args.dup);
}

const KernelRegistration rows_kernel{{.id = "silu_mul_backward/vulkan/rows",
                                      .arithmetic = kShaderArithmetic,
                                      .summary = "both gradients in one pass, four elements an invocation",
                                      .run = &run_typed<ops::SiluMulBackwardArgs, &run>,
                                      .refuse = &refuse_typed<ops::SiluMulBackwardArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_silu_mul_backward
