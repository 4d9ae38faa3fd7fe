#include "contract/certificates/nf4_matmul.hpp"

#include <cfloat>
#include <cmath>
#include <vector>

#include "contract/certificates/without.hpp"
#include "core/nf4.hpp"

namespace assay::contract {
namespace {

std::vector<float> decoded(View<const std::uint8_t> codes, View<const float> absmax, Index n, Index k) {
  std::vector<float> weights(static_cast<std::size_t>(n * k));
  for (Index j = 0; j < n; ++j)
    for (Index p = 0; p < k; ++p)
      weights[static_cast<std::size_t>(j * k + p)] =
          kNf4[nf4_code(&codes(j, 0), p)] * nf4_scale(absmax(j, p / kNf4Block));
  return weights;
}

}  // namespace

Certified freivalds_nf4(View<const float> dy, View<const std::uint8_t> codes, View<const float> absmax, View<const float> dx) {
  const Index n = dy.dim(1), k = dx.dim(1);
  const std::vector<float> weights = decoded(codes, absmax, n, k);
  return freivalds(dy, View<const float>(weights.data(), {n, k}), dx);
}

Certified freivalds_nf4_nt(View<const float> x, View<const std::uint8_t> codes, View<const float> absmax, View<const float> y) {
  const Index n = y.dim(1), k = x.dim(1);
  // Where the scale of a block multiplies the sum of its products, 0 times an infinite scale need not occur, and the sum may
  // overflow before a small one.
  LeftOut left_out(x.dim(0), n);
  for (Index j = 0; j < n; ++j)
    for (Index block = 0; block < absmax.dim(1); ++block)
      if (std::isinf(absmax(j, block))) left_out.columns[static_cast<std::size_t>(j)] = true;
  for (Index i = 0; i < x.dim(0); ++i) {
    double sum = 0;
    for (Index p = 0; p < k; ++p)
      if (std::isfinite(x(i, p))) sum += std::fabs(x(i, p));
    constexpr double kRoundings = 2;  // more than any order of evaluation adds
    if (kRoundings * sum > FLT_MAX) left_out.rows[static_cast<std::size_t>(i)] = true;
  }
  const std::vector<float> weights = decoded(codes, absmax, n, k);
  return freivalds_without(left_out, x, View<const float>(weights.data(), {n, k}).transposed(), y);
}

}  // namespace assay::contract
