#include "contract/certificates/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "contract/certificates/elements.hpp"
#include "contract/certificates/convex_hull.hpp"

namespace assay::contract {
namespace {

/// Returns, for each t, the hull of the first t values of one column.
std::vector<Hull> hulls(const StorageView& v, Index b, Index g, Index c) {
  std::vector<Hull> spans(1);
  for (Index j = 0; j < v.dim(1); ++j) {
    Hull hull = spans.back();
    hull.add(element(v, b, j, g, c));
    spans.push_back(hull);
  }
  return spans;
}

}  // namespace

Certified within_hull(const StorageView& v, View<const std::int32_t> lengths, View<const std::int32_t> starts,
                      const StorageView& y, View<const float> logsumexp, double causal) {
  const Index batch = y.dim(0), s = y.dim(1), heads = y.dim(2), d = y.dim(3), group = heads / v.dim(2);
  const MeanBound bound(v.dtype(), y.dtype(), v.dim(1));
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
              return {false, fmt::format("logsumexp[{}, {}, {}] = {}, and the query sees no key", b, h, i,
                                         logsumexp(b, h, i))};
            if (masked && result != 0)
              return {false, fmt::format("y[{}, {}, {}, {}] = {}, and its logsumexp is -inf", b, i, h, c, result)};
            const Hull& hull = spans[static_cast<std::size_t>(keys)];
            if (masked || std::isnan(logsumexp(b, h, i)) || logsumexp(b, h, i) == INFINITY) continue;
            if (const auto least = bound.violated(hull, keys, result, std::fabs(logsumexp(b, h, i))))
              return {false,
                      fmt::format(
                          "y[{}, {}, {}, {}] = {:.9g} lies outside of the visible values, {:.9g} to {:.9g}, by more "
                          "than {:.4g}",
                          b, i, h, c, result, hull.least, hull.largest, *least)};
          }
      }
  return {};
}

}  // namespace assay::contract
