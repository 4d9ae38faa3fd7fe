// y = x · Wᵀ + bias on the CPU.
#include "kernels/linear.hpp"

#include "kernels/cpu/affine_product.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::LinearArgs;

std::optional<std::string> refusal(const LinearArgs& args) { return openblas_refuses(args.x, args.weight, args.y); }

const KernelRegistration openblas_kernel{{.id = "linear/cpu/openblas",
                                          .batch_invariant = false,
                                          .summary = kOpenblas,
                                          .run = &run_typed<LinearArgs, &linear_by<&multiply_openblas>>,
                                          .refuse = &refuse_typed<LinearArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.id = "linear/cpu/highway_tiled",
                                       .summary = kHighwayTiled,
                                       .run = &run_typed<LinearArgs, &linear_by<&multiply_tiled>>}};
const KernelRegistration dispatch_kernel{{.id = "linear/cpu/dispatch",
                                          .batch_invariant = false,
                                          .summary = kDispatch,
                                          .run = &run_typed<LinearArgs, &linear_by<&multiply_dispatch>>,
                                          .priority = 1}};

KernelRegistration widened_kernel(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = widened_arithmetic(storage),
                             .storage = storage,
                             .summary = kWidened,
                             .run = &run_typed<LinearArgs, &linear_by<&multiply_widened>>,
                             .priority = 1});
}
const KernelRegistration widened_kernels[] = {widened_kernel(DType::f16, "linear/cpu/highway_tiled_f16"),
                                              widened_kernel(DType::bf16, "linear/cpu/highway_tiled_bf16")};

}  // namespace
}  // namespace assay::cpu
