#include "contract/certificates/attention_decode.hpp"

#include <fmt/format.h>

#include <bit>

#include "core/half.hpp"

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
          return {false, fmt::format("place {} of sequence {}, head {}, element {} has the bits {:#x}; the new row has {:#x}",
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

}  // namespace assay::contract
