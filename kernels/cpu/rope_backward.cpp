// Gradient of rope on the CPU: the rotation back.
#include "ops/rope_backward.hpp"

#include "kernels/cpu/rotary.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::RopeBackwardArgs;

/// Rotates every pair of every head: core/rotary.hpp has the angles, kernels/rotary.hpp their cosines and sines.
///   (rows,heads,d) twice: float32, binary16 or bfloat16, heads dense; they share no memory.
void naive(const RopeBackwardArgs& args, Device&) { rotate_naive(rotary_of(args)); }
void highway(const RopeBackwardArgs& args, Device&) { rotate_highway(rotary_of(args)); }

template <void (*run)(const RopeBackwardArgs&, Device&)>
KernelRegistration add(DType storage, FunctionLibrary functions, std::string_view id, std::string_view summary, int priority) {
  return KernelRegistration({.op = "rope_backward",
                             .id = id,
                             .arithmetic = {.functions = functions},
                             .storage = storage,
                             .source = "kernels/cpu/rotary.cpp",
                             .summary = summary,
                             .run = &run_typed<RopeBackwardArgs, run>,
                             .priority = priority});
}

constexpr std::string_view kNaive = "one pair after another, cosine and sine in double",
                           kHighway = "cosines and sines once a row, then SIMD over heads";
constexpr FunctionLibrary kC = FunctionLibrary::c_library, kOctant = FunctionLibrary::octant;
const KernelRegistration registrations[] = {
    add<&naive>(DType::f32, kC, "rope_backward/cpu/naive", kNaive, 0),
    add<&naive>(DType::f16, kC, "rope_backward/cpu/naive_f16", kNaive, 0),
    add<&naive>(DType::bf16, kC, "rope_backward/cpu/naive_bf16", kNaive, 0),
    add<&highway>(DType::f32, kOctant, "rope_backward/cpu/highway", kHighway, 1),
    add<&highway>(DType::f16, kOctant, "rope_backward/cpu/highway_f16", kHighway, 1),
    add<&highway>(DType::bf16, kOctant, "rope_backward/cpu/highway_bf16", kHighway, 1),
};

}  // namespace
}  // namespace assay::cpu
