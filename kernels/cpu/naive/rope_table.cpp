// Rotary position embedding by given cosines and sines, and its gradient, on the CPU in plain loops.
#include "ops/rope_table.hpp"

#include "kernels/rope_table.hpp"
#include "kernels/storage.hpp"
#include "ops/rope_table_backward.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_rope_table {
namespace {

/// One pair after another.
template <class S>
void rotate_each(const RopeTableCall& call) {
  const View<const S> x = call.from.as<const S>();
  const View<S> y = call.to.as<S>();
  const Index half = call.d / 2;
  for (Index row = 0; row < call.rows; ++row) {
    const Index place = call.positions(row);
    for (Index head = 0; head < call.heads; ++head)
      for (Index i = 0; i < half; ++i) {
        const float c = call.cosines(place, i), s = call.inverse ? -call.sines(place, i) : call.sines(place, i);
        const Index first = call.interleaved ? 2 * i : i, second = call.interleaved ? 2 * i + 1 : i + half;
        const float x1 = widen(x(row, head, first)), x2 = widen(x(row, head, second));
        y(row, head, first) = narrow<S>(x1 * c - x2 * s);
        y(row, head, second) = narrow<S>(x2 * c + x1 * s);
      }
  }
}

/// y1 = x1 c - x2 s, y2 = x2 c + x1 s; the gradient negates s.
///   (rows,heads,d) twice: float32, binary16 or bfloat16, heads dense; tables (places,d/2): float32, rows dense;
///   positions (rows) from 0 to places - 1; the result shares no memory. Error: two products and a sum.
template <class Args, class S>
void naive(const Args& args, Device&) {
  rotate_each<S>(rope_table_call(args));
}

template <class Args>
struct Naive {
  template <class S>
  static KernelRegistration of(std::string_view id) {
    return KernelRegistration({.id = id,
                               .storage = dtype_of<S>,
                               .summary = "one pair after another",
                               .run = &run_typed<Args, &naive<Args, S>>});
  }
};

using Forward = Naive<ops::RopeTableArgs>;
using Backward = Naive<ops::RopeTableBackwardArgs>;
const KernelRegistration registrations[] = {
    Forward::of<float>("rope_table/cpu/naive"),
    Forward::of<Half>("rope_table/cpu/naive_f16"),
    Forward::of<BFloat16>("rope_table/cpu/naive_bf16"),
    Backward::of<float>("rope_table_backward/cpu/naive"),
    Backward::of<Half>("rope_table_backward/cpu/naive_f16"),
    Backward::of<BFloat16>("rope_table_backward/cpu/naive_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_rope_table
