#include "contract/certificates/q4_k_matmul_nt.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <vector>

#include "contract/certificates/freivalds_partial.hpp"
#include "core/q4_k.hpp"

namespace assay::contract {

Certified freivalds_q4_k_nt(View<const float> x, View<const std::uint8_t> blocks, View<const float> y) {
  const Index m = x.dim(0), k = x.dim(1), n = y.dim(1);
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  ExcludedLines left_out(m, n);
  std::vector<float> twice(at(m * 2 * k)), parts(at(n * 2 * k));
  double largest = 0;  // of d and dmin
  for (Index j = 0; j < n; ++j)
    for (Index p = 0; p < k; ++p) {
      const std::uint8_t* const block = &blocks(j, p / q4_k::kValues * q4_k::kBytes);
      for (const Index half : {0, 2}) {
        const double scale = std::fabs(widen(q4_k::half_at(block + half)));
        if (std::isinf(scale)) left_out.columns[at(j)] = true;
        else largest = std::max(largest, scale);  // NaN is not larger
      }
      const q4_k::Line line = q4_k::line_of(block, p % q4_k::kValues / q4_k::kSubBlock);
      parts[at(j * 2 * k + p)] = line.step * static_cast<float>(q4_k::code_at(block, p % q4_k::kValues));
      parts[at(j * 2 * k + k + p)] = -line.minimum;
    }
  for (Index i = 0; i < m; ++i) {
    double sum = 0;
    for (Index p = 0; p < k; ++p) {
      twice[at(i * 2 * k + p)] = twice[at(i * 2 * k + k + p)] = x(i, p);
      if (!std::isnan(x(i, p))) sum += std::fabs(x(i, p));
    }
    // The largest factors of x, and of d and dmin. A sum of magnitudes S is at most 2 S in any order.
    constexpr double kFactors = 63.0 * 15;
    if (2 * kFactors * std::max(1.0, largest) * sum > FLT_MAX) left_out.rows[at(i)] = true;
  }
  // A product of codes and x, their sum times a scale, and times d.
  const ProductTerms terms{.operations = 3, .range = std::max(1.0, largest)};
  return freivalds_partial(left_out, {twice.data(), {m, 2 * k}},
                           View<const float>(parts.data(), {n, 2 * k}).transposed(), y, terms);
}

}  // namespace assay::contract
