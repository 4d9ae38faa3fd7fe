#include "contract/certificates/linear.hpp"

#include "contract/certificates/concatenated.hpp"

namespace assay::contract {

Certified freivalds_linear(View<const float> x, View<const float> weight, View<const float> bias, View<const float> y) {
  if (bias.dim(0) == 0) return freivalds(x, weight.transposed(), y);
  const Concatenated left(x.dim(0), {x, ones_for(bias, x.dim(0))});
  const Concatenated right(weight.dim(0), {weight, bias.transposed()});
  return freivalds(left.view(), right.view().transposed(), y);
}

}  // namespace assay::contract
