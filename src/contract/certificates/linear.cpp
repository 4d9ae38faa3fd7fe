#include "contract/certificates/linear.hpp"

#include "contract/certificates/beside.hpp"

namespace assay::contract {

Certified freivalds_linear(View<const float> x, View<const float> weight, View<const float> bias, View<const float> y) {
  if (bias.dim(0) == 0) return freivalds(x, weight.transposed(), y);
  const SideBySide left(x.dim(0), {x, ones_for(bias, x.dim(0))});
  const SideBySide right(weight.dim(0), {weight, bias.transposed()});
  return freivalds(left.view(), right.view().transposed(), y);
}

}  // namespace assay::contract
