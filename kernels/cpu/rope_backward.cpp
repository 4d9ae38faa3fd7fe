// Gradient of rope on the CPU: the inverse rotation.
#include "ops/rope_backward.hpp"

#include "kernels/cpu/rotary.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::RopeBackwardArgs;

/// Rotates every pair of every head by the negated angles of core/rotary.hpp; kernels/rotary.hpp computes their cosines
/// and sines.
///   (rows,heads,d) twice: float32, binary16 or bfloat16, heads dense; they share no memory.
void highway(const RopeBackwardArgs& args, Device&) { rotate_highway(rotary_of(args)); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::octant},
                             .storage = storage,
                             .summary = "cosines and sines once a row, then SIMD over heads",
                             .run = &run_typed<RopeBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "rope_backward/cpu/highway"),
    add(DType::f16, "rope_backward/cpu/highway_f16"),
    add(DType::bf16, "rope_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu
