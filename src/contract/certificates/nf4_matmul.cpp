#include "contract/certificates/nf4_matmul.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <vector>

#include "contract/certificates/freivalds_partial.hpp"
#include "core/arithmetic.hpp"
#include "core/nf4.hpp"

namespace assay::contract {
namespace {

std::vector<float> decoded(View<const std::uint8_t> codes, View<const float> absmax, Index n, Index k) {
  const bool small_kept = current_arithmetic().loses == Loss::small_scale;
  std::vector<float> weights(static_cast<std::size_t>(n * k));
  for (Index j = 0; j < n; ++j)
    for (Index p = 0; p < k; ++p)
      weights[static_cast<std::size_t>(j * k + p)] =
          kNf4[nf4_code(&codes(j, 0), p)] *
          (small_kept ? absmax(j, p / kNf4Block) : nf4_scale(absmax(j, p / kNf4Block)));
  return weights;
}

/// Returns the largest magnitude among the finite scales of row j.
double largest_scale(View<const float> absmax, Index j) {
  double largest = 0;
  for (Index block = 0; block < absmax.dim(1); ++block)
    if (const double scale = std::fabs(absmax(j, block)); scale <= FLT_MAX) largest = std::max(largest, scale);
  return largest;
}

/// Three factors in any order; W holds products of two of them, rounded once. The scale may be the last factor.
ProductTerms terms_of(View<const float> absmax) {
  ProductTerms terms{.operations = 3};
  for (Index j = 0; j < absmax.dim(0); ++j) terms.range = std::max(terms.range, largest_scale(absmax, j));
  return terms;
}

}  // namespace

Certified freivalds_nf4(View<const float> dy, View<const std::uint8_t> codes, View<const float> absmax,
                        View<const float> dx) {
  const Index n = dy.dim(1), k = dx.dim(1);
  // A kernel that scales dy first may overflow before an entry of the codebook reduces the product.
  ExcludedLines left_out(dy.dim(0), k);
  for (Index j = 0; j < n; ++j) {
    const double largest = largest_scale(absmax, j);
    for (Index i = 0; i < dy.dim(0); ++i)
      if (const double x = std::fabs(dy(i, j)); x <= FLT_MAX && x * largest > FLT_MAX)
        left_out.rows[static_cast<std::size_t>(i)] = true;
  }
  const std::vector<float> weights = decoded(codes, absmax, n, k);
  return freivalds_partial(left_out, dy, View<const float>(weights.data(), {n, k}), dx, terms_of(absmax));
}

Certified freivalds_nf4_nt(View<const float> x, View<const std::uint8_t> codes, View<const float> absmax,
                           View<const float> y) {
  const Index n = y.dim(1), k = x.dim(1);
  // In a kernel that multiplies the sum of a block's products by the block's scale, 0 times an infinite scale need not
  // occur, and the sum may overflow before a small scale is applied.
  ExcludedLines left_out(x.dim(0), n);
  for (Index j = 0; j < n; ++j)
    for (Index block = 0; block < absmax.dim(1); ++block)
      if (std::isinf(absmax(j, block))) left_out.columns[static_cast<std::size_t>(j)] = true;
  for (Index i = 0; i < x.dim(0); ++i) {
    double sum = 0;
    for (Index p = 0; p < k; ++p)
      if (std::isfinite(x(i, p))) sum += std::fabs(x(i, p));
    // A sum of magnitudes S is at most S (1 + g) in any order, g = (k - 1) u / (1 - (k - 1) u) < 1 for every k of the
    // contract.
    constexpr double kRoundings = 2;
    if (kRoundings * sum > FLT_MAX) left_out.rows[static_cast<std::size_t>(i)] = true;
  }
  const std::vector<float> weights = decoded(codes, absmax, n, k);
  return freivalds_partial(left_out, x, View<const float>(weights.data(), {n, k}).transposed(), y, terms_of(absmax));
}

}  // namespace assay::contract
