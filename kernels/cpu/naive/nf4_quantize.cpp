// q = the NF4 code of x / absmax on the CPU, in plain loops.
#include "ops/nf4_quantize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/nf4.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_nf4_quantize {
namespace {

using ops::Nf4QuantizeArgs;

/// absmax[j,b] = max |x[j,p]| over block b, q[j,p] = number of midpoints m with x[j,p] > m absmax[j, p/64]
///   x (n, k), codes (n, 32 b), absmax (n, b), b = ceil(k/64): row-major, any leading dimension; they share no memory.
/// The contract fixes the bits. Cost 4.6 n k bytes.
void naive(const Nf4QuantizeArgs& args, Device&) {
  for (Index j = 0; j < args.n; ++j)
    for (Index b = 0; b < nf4_blocks(args.k); ++b) {
      const Index first = b * kNf4Block, end = std::min(args.k, first + kNf4Block);
      float most = 0.0F;
      bool finite = true;
      for (Index p = first; p < end; ++p) {
        finite = finite && std::isfinite(args.x(j, p));
        most = std::max(most, std::fabs(args.x(j, p)));
      }
      const float scale = finite ? nf4_scale(most) : std::numeric_limits<float>::quiet_NaN();
      const auto code = [&](Index p) {
        if (p >= end || !(scale > 0)) return unsigned{kNf4Zero};
        unsigned above = 0;
        for (const float midpoint : kNf4Midpoints) above += args.x(j, p) > midpoint * scale ? 1U : 0U;
        return above;
      };
      args.absmax(j, b) = scale;
      for (Index i = 0; i < kNf4Bytes; ++i)
        args.codes(j, b * kNf4Bytes + i) =
            static_cast<std::uint8_t>(code(first + 2 * i) << 4U | code(first + 2 * i + 1));
    }
}

const KernelRegistration naive_kernel{{.id = "nf4_quantize/cpu/naive",
                                       .summary = "loops over blocks, 15 comparisons an element",
                                       .run = &run_typed<Nf4QuantizeArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_nf4_quantize
