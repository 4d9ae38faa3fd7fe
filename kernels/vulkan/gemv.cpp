// y = A · x: launches gemv.comp and gemv_naive.comp. y shares no memory with a or x (the contract's clause).
// Error: k terms in any order, at most k*u*sum|a||x| and the flushed subnormals. k = 0 writes zeros.
#include "kernels/vulkan/gemv.hpp"

#include "shaders/gemv_cooperative.hpp"
#include "shaders/gemv_naive.hpp"

namespace assay::vulkan::of_gemv {
namespace {

using ops::GemvArgs;

const KernelRegistration naive{{.op = "gemv",
                                .id = "gemv/vulkan/naive",
                                .backend = Backend::vulkan,
                                .arithmetic = kShaderArithmetic,
                                .source = "kernels/vulkan/gemv_naive.comp",
                                .summary = "one row per invocation, terms in order",
                                .run = &run_typed<GemvArgs, &run_gemv<shaders::gemv_naive, 64>>,
                                .refuse = &refuse_typed<GemvArgs, &refuse_gemv<64, 1>>,
                                .automatic_above = kProductVolume}};
const KernelRegistration cooperative{{.op = "gemv",
                                      .id = "gemv/vulkan/cooperative",
                                      .backend = Backend::vulkan,
                                      .arithmetic = kShaderArithmetic,
                                      .source = "kernels/vulkan/gemv.comp",
                                      .summary = "64 invocations per row, tree reduction in shared memory",
                                      .run = &run_typed<GemvArgs, &run_gemv<shaders::gemv_cooperative, 4>>,
                                      .refuse = &refuse_typed<GemvArgs, &refuse_gemv<4, 256>>,
                                      .priority = 1,
                                      .automatic_above = kProductVolume}};

}  // namespace
}  // namespace assay::vulkan::of_gemv
