#include "contract/certificates/lora_linear.hpp"

#include <algorithm>
#include <vector>

#include "contract/certificates/beside.hpp"

namespace assay::contract {

Certified freivalds_lora(View<const float> x, View<const float> weight, View<const float> bias, View<const float> t,
                         View<const float> b, double alpha, View<const float> y) {
  const Index s = x.dim(0), out = weight.dim(0), r = t.dim(1);
  const float scale = static_cast<float>(alpha) / static_cast<float>(r);
  std::vector<float> scaled(static_cast<std::size_t>(out * r));
  for (Index o = 0; o < out; ++o)
    for (Index q = 0; q < r; ++q) scaled[static_cast<std::size_t>(o * r + q)] = scale * b(o, q);
  const SideBySide left(s, {x, t, ones_for(bias, s)});
  const SideBySide right(out, {weight, View<const float>(scaled.data(), {out, r}), bias.transposed()});
  const double size = scale;
  return freivalds(left.view(), right.view().transposed(), y,
                   {.operations = 3, .absolute = 0x1p-150, .range = std::max({1.0, size, 1 / size})});
}

}  // namespace assay::contract
