// The one comparator of the project.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/bounded.hpp"
#include "core/shape.hpp"
#include "falsify/engine/outcome.hpp"

namespace assay::falsify {

/// Tiers of DESIGN: bits (T0), worst case (T2), statistical (T1).
enum class Tier {
  exact,        ///< got == want as numbers (either sign of zero unless the sum is empty); want is a float
  bits,         ///< equal bits; any NaN matches an expected NaN
  worst_case,   ///< |got - want| <= bound
  statistical,  ///< |got - want| <= statistical bound
};

/// Compares the elements of one output. `want` is the bounded oracle's output, dense like `got`.
/// First the class (finite, +inf, -inf, NaN) must agree; if a float32 evaluation may overflow in some
/// order, +inf, -inf and NaN are accepted as well. Then the difference must satisfy the tier (written so that NaN
/// fails). For a 16-bit output, an expected exact value is rounded to the format. An empty sum is +0. With `places`,
/// ascending, the oracle evaluated only those positions, and want[i] belongs to the element at places[i].
Outcome compare(Tier tier, std::string_view tensor, const Shape& shape, std::span<const float> got,
                std::span<const Bounded> want, DType dtype = DType::f32, std::span<const std::size_t> places = {});

/// Requires every NaN of `want` bit for bit in `got`. Counts no elements: compare() has counted them.
Outcome compare_payloads(std::string_view tensor, const Shape& shape, std::span<const float> got,
                         std::span<const float> want);

/// Compares the bits of two runs.
Outcome compare_bits(std::string_view tensor, const Shape& shape, std::span<const float> got,
                     std::span<const float> want, std::string_view meaning);

/// Checks |got[i] - want[i]| <= bound[i]; for relations with kernel results on both sides.
Outcome compare_within(std::string_view tensor, const Shape& shape, std::span<const double> got,
                       std::span<const double> want, std::span<const double> bound);

/// Returns the values of an output in double.
std::vector<double> widened(const std::vector<float>& values);
/// Returns the worst-case bounds of one output; infinite where a kernel may overflow.
std::vector<double> bounds_of(const std::vector<Bounded>& want);

/// Returns the index of a dense row-major position.
Shape index_of(const Shape& shape, std::size_t position);

}  // namespace assay::falsify
