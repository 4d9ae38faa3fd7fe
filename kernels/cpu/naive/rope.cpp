// Rotary position embedding and its gradient, the rotation back, on the CPU in plain loops.
#include "ops/rope.hpp"

#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/rope.hpp"
#include "kernels/storage.hpp"
#include "ops/rope_backward.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_rope {
namespace {

/// The angle in double, reduced exactly: by turns for an exact angle, by the C library for a float.
double angle_of(const RopeFrequency& f, Index position, bool float32_angle) {
  if (float32_angle) return static_cast<float>(position) * std::bit_cast<float>(f.word[0]);
  const std::uint64_t phase =
      phase_of(static_cast<std::uint64_t>(position), static_cast<std::uint64_t>(f.word[3]) << 32 | f.word[2],
               static_cast<std::uint64_t>(f.word[1]) << 32 | f.word[0]);
  return static_cast<double>(static_cast<std::int64_t>(phase)) * (0x1p-63 * std::numbers::pi);
}

/// One pair after another, cosine and sine of the exact angle by the C library in double.
template <class S>
void rotate_each(const RopeCall& call) {
  const std::vector<RopeFrequency>& frequencies = rope_frequencies(call.theta, call.d, call.float32_angle);
  const View<const S> x = call.from.as<const S>();
  const View<S> y = call.to.as<S>();
  const Index half = call.d / 2;
  for (Index row = 0; row < call.rows; ++row)
    for (Index head = 0; head < call.heads; ++head)
      for (Index i = 0; i < half; ++i) {
        const double angle =
            angle_of(frequencies[static_cast<std::size_t>(i)], call.positions(row), call.float32_angle);
        const auto c = static_cast<float>(std::cos(angle)),
                   s = static_cast<float>(std::sin(call.inverse ? -angle : angle));
        const Index first = call.interleaved ? 2 * i : i, second = call.interleaved ? 2 * i + 1 : i + half;
        const float x1 = widen(x(row, head, first)), x2 = widen(x(row, head, second));
        y(row, head, first) = narrow<S>(x1 * c - x2 * s);
        y(row, head, second) = narrow<S>(x2 * c + x1 * s);
      }
}

/// Rotates every pair of every head by the angles of core/rope.hpp.
///   (rows,heads,d) twice: float32, binary16 or bfloat16, heads dense; positions (rows) from 0 to 2^20 - 1; no memory
///   is shared.
template <class Args, class S>
void naive(const Args& args, Device&) {
  rotate_each<S>(rope_call(args));
}

template <class Args>
struct Naive {
  template <class S>
  static KernelRegistration of(std::string_view id) {
    return KernelRegistration({.id = id,
                               .storage = dtype_of<S>,
                               .summary = "one pair after another, cosine and sine in double",
                               .run = &run_typed<Args, &naive<Args, S>>});
  }
};

using Forward = Naive<ops::RopeArgs>;
using Backward = Naive<ops::RopeBackwardArgs>;
const KernelRegistration registrations[] = {
    Forward::of<float>("rope/cpu/naive"),
    Forward::of<Half>("rope/cpu/naive_f16"),
    Forward::of<BFloat16>("rope/cpu/naive_bf16"),
    Backward::of<float>("rope_backward/cpu/naive"),
    Backward::of<Half>("rope_backward/cpu/naive_f16"),
    Backward::of<BFloat16>("rope_backward/cpu/naive_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_rope
