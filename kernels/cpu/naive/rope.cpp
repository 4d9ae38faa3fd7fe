// Rotary position embedding on the CPU, in plain loops.
#include "ops/rope.hpp"

#include "kernels/cpu/naive/rotary.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_rope {
namespace {

using ops::RopeArgs;

/// Rotates every pair of every head by the angles of core/rotary.hpp.
///   (rows,heads,d) twice: float32, binary16 or bfloat16, heads dense; they share no memory.
template <class S>
void naive(const RopeArgs& args, Device&) {
  rotate_each<S>(rotary_of(args));
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "one pair after another, cosine and sine in double",
                             .run = &run_typed<RopeArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "rope/cpu/naive"), add<Half>(DType::f16, "rope/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "rope/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_rope
