#include "contract/certificates/adamw_step.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "contract/certificates/elements.hpp"
#include "core/arithmetic.hpp"
#include "core/half.hpp"

namespace assay::contract {

Certified rounded_once(View<const float> p, const StorageView& rounded) {
  const double flushed = current_arithmetic().flushed_below(storage_rounding(rounded.dtype()).smallest);
  for (Index c = 0; c < rounded.dim(0); ++c)
    for (Index i = 0; i < rounded.dim(1); ++i) {
      const float want = stored(rounded.dtype(), p(i)), got = static_cast<float>(element(rounded, c, i));
      if (std::isnan(want) ? std::isnan(got) : std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want))
        continue;
      if (got == 0 && std::fabs(p(i)) < flushed) continue;
      return {false,
              fmt::format("rounded[{}, {}] = {:.9g}, and p[{}] = {:.9g} rounds to {:.9g}", c, i, got, i, p(i), want)};
    }
  return {};
}

}  // namespace assay::contract
