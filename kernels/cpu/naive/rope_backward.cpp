// Gradient of rope on the CPU, in plain loops: the inverse rotation.
#include "ops/rope_backward.hpp"

#include "kernels/cpu/naive/rotary.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_rope_backward {
namespace {

using ops::RopeBackwardArgs;

/// Rotates every pair of every head by the negated angles of core/rotary.hpp.
///   (rows,heads,d) twice: float32, binary16 or bfloat16, heads dense; they share no memory.
template <class S>
void naive(const RopeBackwardArgs& args, Device&) {
  rotate_each<S>(rotary_of(args));
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "one pair after another, cosine and sine in double",
                             .run = &run_typed<RopeBackwardArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "rope_backward/cpu/naive"), add<Half>(DType::f16, "rope_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "rope_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_rope_backward
