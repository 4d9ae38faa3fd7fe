#include "contract/certificates/linear.hpp"

#include "contract/certificates/concatenated.hpp"
#include "contract/certificates/elements.hpp"

namespace assay::contract {

Certified freivalds_linear(const StorageView& x, const StorageView& weight, const StorageView& bias,
                           const StorageView& y) {
  if (bias.dim(0) == 0) return freivalds(x, weight.transposed(), y);
  const Widened rows(x), columns(weight), added(bias), result(y);
  const Concatenated left(x.dim(0), {rows.view(), ones_for(added.view(), x.dim(0))});
  const Concatenated right(weight.dim(0), {columns.view(), added.view().transposed()});
  return freivalds(left.view(), right.view().transposed(), result.view(), {.result = y.dtype()});
}

}  // namespace assay::contract
