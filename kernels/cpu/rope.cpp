// Rotary position embedding on the CPU.
#include "ops/rope.hpp"

#include "kernels/cpu/rotary.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::RopeArgs;

/// Rotates every pair of every head by the angles of core/rotary.hpp; kernels/rotary.hpp computes their cosines and
/// sines.
///   (rows,heads,d) twice: float32, binary16 or bfloat16, heads dense; they share no memory.
void highway(const RopeArgs& args, Device&) { rotate_highway(rotary_of(args)); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::octant},
                             .storage = storage,
                             .summary = "cosines and sines once a row, then SIMD over heads",
                             .run = &run_typed<RopeArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "rope/cpu/highway"),
    add(DType::f16, "rope/cpu/highway_f16"),
    add(DType::bf16, "rope/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu
