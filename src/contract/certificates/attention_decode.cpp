#include "contract/certificates/attention_decode.hpp"

#include <fmt/format.h>

#include <bit>
#include <cfloat>

#include "contract/certificates/convex_hull.hpp"

namespace assay::contract {
namespace {

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint32_t bits_of(Half x) { return x.bits; }
std::uint32_t bits_of(BFloat16 x) { return x.bits; }

template <class S>
Certified holds(View<const S> row, View<const std::int32_t> lengths, View<const S> cache) {
  for (Index b = 0; b < row.dim(0); ++b)
    for (Index g = 0; g < row.dim(1); ++g)
      for (Index c = 0; c < row.dim(2); ++c) {
        const std::uint32_t want = bits_of(row(b, g, c)), got = bits_of(cache(b, lengths(b), g, c));
        if (got != want)
          return {false,
                  fmt::format("place {} of sequence {}, head {}, element {} has the bits {:#x}; the new row has {:#x}",
                              lengths(b), b, g, c, got, want)};
      }
  return {};
}

}  // namespace

Certified appended(const StorageView& row, View<const std::int32_t> lengths, const StorageView& cache) {
  switch (row.dtype()) {
    case DType::f16: return holds(row.as<const Half>(), lengths, cache.as<const Half>());
    case DType::bf16: return holds(row.as<const BFloat16>(), lengths, cache.as<const BFloat16>());
    default: return holds(row.as<const float>(), lengths, cache.as<const float>());
  }
}

namespace {

/// Returns an upper bound of the head's scores and of all factors and products in them; infinite if one is not finite.
double largest_score(const StorageView& q, const StorageView& k_cache, Index b, Index h, Index g, Index keys,
                     double scale) {
  Hull query, key;
  for (Index c = 0; c < q.dim(2); ++c) {
    query.add(std::fabs(element(q, b, h, c)));
    for (Index j = 0; j < keys; ++j) key.add(std::fabs(element(k_cache, b, j, g, c)));
  }
  if (!query.finite || !key.finite) return INFINITY;
  return static_cast<double>(q.dim(2)) * std::max(1.0, query.largest) * std::max(1.0, key.largest) *
         std::max(1.0, scale);
}

}  // namespace

Certified within_cache(const StorageView& q, const StorageView& k_cache, const StorageView& v_cache,
                       View<const std::int32_t> lengths, double scale, const StorageView& y) {
  const Index group = y.dim(1) / v_cache.dim(2);
  Index most = 0;
  for (Index b = 0; b < y.dim(0); ++b) most = std::max<Index>(most, lengths(b) + 1);
  const MeanBound bound(v_cache.dtype(), y.dtype(), most);
  for (Index b = 0; b < y.dim(0); ++b)
    for (Index g = 0; g < v_cache.dim(2); ++g)
      for (Index c = 0; c < y.dim(2); ++c) {
        const Index keys = lengths(b) + 1;
        Hull hull;
        for (Index j = 0; j < keys; ++j) hull.add(element(v_cache, b, j, g, c));
        for (Index h = g * group; h < (g + 1) * group; ++h) {
          const double mean = element(y, b, h, c);
          if (!bound.violated(hull, keys, mean, 0)) continue;
          const auto least = bound.violated(hull, keys, mean, largest_score(q, k_cache, b, h, g, keys, scale));
          if (!least) continue;
          return {false,
                  fmt::format(
                      "y[{}, {}, {}] = {:.9g} lies outside of the values in the cache, {:.9g} to {:.9g}, by more than "
                      "{:.4g}",
                      b, h, c, mean, hull.least, hull.largest, *least)};
        }
      }
  return {};
}

}  // namespace assay::contract
