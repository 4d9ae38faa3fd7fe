#include "contract/certificates/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "contract/certificates/elements.hpp"
#include "core/bounded.hpp"

namespace assay::contract {
namespace {

struct Hull {
  double least = INFINITY, largest = -INFINITY;
  bool finite = true;
};

/// For each count of keys 0 .. t, what the first that many values of one column span.
std::vector<Hull> hulls(const StorageView& v, Index b, Index g, Index c) {
  std::vector<Hull> spans(1);
  for (Index j = 0; j < v.dim(1); ++j) {
    Hull hull = spans.back();
    const double x = element(v, b, j, g, c);
    hull.least = std::min(hull.least, x);
    hull.largest = std::max(hull.largest, x);
    hull.finite &= std::isfinite(x);
    spans.push_back(hull);
  }
  return spans;
}

/// |mean of n numbers up to 1, under computed weights - a point of their hull|: the numerator's products, the roundings of
/// weights that the divisor does not share, both sums and the quotient (core/attention_forms.cpp).
double rounding_of_mean(double n) {
  const Roundings& r = Roundings::current();
  const double rescalings = r.of.online_tile > 0 ? std::ceil(n / r.of.online_tile) : 0;
  const double weights = (1 + r.input_unit) * (1 + r.unit + r.division) * (1 + 2 * rescalings * r.unit * (1 + rescalings * 4 * r.unit));
  const double sums = (1 + r.growth(n)) / std::max(1 - r.growth(n), 0x1p-10);
  const double values = 1 + r.input_unit;
  return (weights * sums * values * (1 + r.unit) * (1 + r.unit + r.division) - 1) * (1 + 0x1p-10) +
         n * (r.underflow + r.flush + r.input_unit * (r.of.inputs == Format::f32 ? 0 : r.input_floor));
}

}  // namespace

Certified within_hull(const StorageView& v, View<const std::int32_t> lengths, View<const std::int32_t> starts,
                      const StorageView& y, View<const float> logsumexp, double causal) {
  const Index batch = y.dim(0), s = y.dim(1), heads = y.dim(2), d = y.dim(3), group = heads / v.dim(2);
  const StorageRounding stored = storage_rounding(y.dtype());
  const Roundings& arithmetic = Roundings::current();
  // A value below the smallest normal input loses an absolute part where the kernel takes it in a shorter format.
  const double shortened = v.dtype() == DType::f32 && arithmetic.of.inputs != Format::f32 ? arithmetic.input_unit * arithmetic.input_floor : 0;
  std::vector<double> roundings;
  for (Index n = 0; n <= v.dim(1); ++n) roundings.push_back(rounding_of_mean(static_cast<double>(n)));
  for (Index b = 0; b < batch; ++b)
    for (Index g = 0; g < v.dim(2); ++g)
      for (Index c = 0; c < d; ++c) {
        const std::vector<Hull> spans = hulls(v, b, g, c);
        for (Index h = g * group; h < (g + 1) * group; ++h)
          for (Index i = 0; i < s; ++i) {
            const Index length = lengths(b);
            const Index keys = causal != 0 ? std::clamp<Index>(starts(b) + i + 1, 0, length) : length;
            const double result = element(y, b, i, h, c);
            const bool masked = logsumexp(b, h, i) == -INFINITY;
            if (keys == 0 && !masked)
              return {false, fmt::format("logsumexp[{}, {}, {}] = {}, and the query sees no key", b, h, i, logsumexp(b, h, i))};
            if (masked && result != 0)
              return {false, fmt::format("y[{}, {}, {}, {}] = {}, and its logsumexp is -inf", b, i, h, c, result)};
            const Hull& hull = spans[static_cast<std::size_t>(keys)];
            const double size = std::max(std::fabs(hull.least), std::fabs(hull.largest));
            if (masked || !hull.finite || std::isnan(logsumexp(b, h, i)) || logsumexp(b, h, i) == INFINITY ||
                size * static_cast<double>(keys) > FLT_MAX / 2)
              continue;
            // A flush takes a subnormal value, or a subnormal mean, away whole.
            const double flushed = arithmetic.of.flushes_subnormals ? 2 * stored.smallest : 0;
            const double bound = roundings[static_cast<std::size_t>(keys)] * (size + stored.smallest) + stored.unit * size * (1 + 0x1p-10) +
                                 stored.unit * stored.smallest + flushed + shortened;
            if (result >= hull.least - bound && result <= hull.largest + bound) continue;
            return {false, fmt::format("y[{}, {}, {}, {}] = {:.9g} lies outside of the visible values, {:.9g} to {:.9g}, by more "
                                       "than {:.4g}", b, i, h, c, result, hull.least, hull.largest, bound)};
          }
      }
  return {};
}

}  // namespace assay::contract
