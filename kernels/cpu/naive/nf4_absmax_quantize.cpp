// q = the 8-bit code of (absmax - mean) / absmax2 on the CPU, in plain loops.
#include "ops/nf4_absmax_quantize.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/nf4_absmax.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_nf4_absmax_quantize {
namespace {

using ops::Nf4AbsmaxQuantizeArgs;

/// offset = mean of absmax, absmax2[g] = max |absmax - offset| over group g, q[i] = number of midpoints m with
/// absmax[i] - offset > m absmax2[i/256]
///   absmax (n, b): row-major, any leading dimension; codes (256 g), absmax2 (g), offset (1), g = ceil(n b / 256):
///   dense; they share no memory. The contract fixes the bits. Cost 5 n b bytes read twice.
void naive(const Nf4AbsmaxQuantizeArgs& args, Device&) {
  const Index count = args.n * args.b;
  const auto value = [&](Index i) { return absmax_value(args.absmax(i / args.b, i % args.b)); };
  std::vector<float> terms;
  for (Index i = 0; i < count; ++i) terms.push_back(value(i));
  for (Index size = count; size > 1; size = absmax_groups(size)) {
    terms.resize(static_cast<std::size_t>(absmax_groups(size) * kAbsmaxGroup));
    for (Index g = 0; g < absmax_groups(size); ++g) {
      float* const group = terms.data() + g * kAbsmaxGroup;
      for (Index width = kAbsmaxGroup / 2; width > 0; width /= 2)
        for (Index i = 0; i < width; ++i) group[i] += group[i + width];
      terms[static_cast<std::size_t>(g)] = group[0];
    }
    std::fill(terms.begin() + absmax_groups(size), terms.end(), 0.0F);
  }
  const float offset = count == 0 ? 0.0F : absmax_offset(terms[0], absmax_reciprocal(count));
  args.offset(0) = offset;
  for (Index g = 0; g < absmax_groups(count); ++g) {
    const Index first = g * kAbsmaxGroup, end = std::min(count, first + kAbsmaxGroup);
    float most = 0.0F;
    for (Index i = first; i < end; ++i) most = std::max(most, std::fabs(value(i) - offset));
    const float scale = std::isnan(offset) ? offset : absmax_scale(most);
    args.absmax2(g) = scale;
    for (Index i = first; i < first + kAbsmaxGroup; ++i) {
      unsigned above = i < end && scale > 0 ? 0U : unsigned{kAbsmaxZero};
      if (i < end && scale > 0)
        for (const float midpoint : kAbsmaxMidpoints) above += value(i) - offset > midpoint * scale ? 1U : 0U;
      args.codes(i) = static_cast<std::uint8_t>(above);
    }
  }
}

const KernelRegistration naive_kernel{{.id = "nf4_absmax_quantize/cpu/naive",
                                       .summary = "loops over groups, 255 comparisons an element",
                                       .run = &run_typed<Nf4AbsmaxQuantizeArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_nf4_absmax_quantize
