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
  exact,       ///< got == want as numbers (a zero may have either sign unless it is an empty sum); the want is a float
  bits,        ///< the same bits; where a NaN is expected, any NaN
  worst_case,  ///< |got - want| <= bound
  statistical, ///< |got - want| <= statistical bound
};

/// Compares the elements of one output. `want` is the bounded oracle's output, dense like `got`.
/// First the class (finite, +inf, -inf, NaN) must agree; where a float32 evaluation may overflow in some
/// order, +inf, -inf and NaN are accepted as well. Then the difference must satisfy the tier (written so that NaN fails).
/// Where an exact value is wanted of an output of 16 bits, it is the value rounded to them. An empty sum is +0. With `places`, ascending,
/// the oracle evaluated those positions alone, and want[i] is of the element at places[i].
Outcome compare(Tier tier, std::string_view tensor, const Shape& shape, std::span<const float> got,
                std::span<const Bounded> want, DType dtype = DType::f32, std::span<const std::size_t> places = {});

/// Where `want` is a NaN, `got` is that NaN bit for bit. Counts no elements: compare() has counted them.
Outcome compare_payloads(std::string_view tensor, const Shape& shape, std::span<const float> got, std::span<const float> want);

/// Bits of two runs.
Outcome compare_bits(std::string_view tensor, const Shape& shape, std::span<const float> got,
                     std::span<const float> want, std::string_view meaning);

/// |got[i] - want[i]| <= bound[i]; used by relations whose both sides come from kernels.
Outcome compare_within(std::string_view tensor, const Shape& shape, std::span<const double> got,
                       std::span<const double> want, std::span<const double> bound);

/// Values of an output in double.
std::vector<double> widened(const std::vector<float>& values);
/// The worst-case bounds of one output; infinite where a kernel may overflow.
std::vector<double> bounds_of(const std::vector<Bounded>& want);

/// Index of a dense row-major position.
Shape index_of(const Shape& shape, std::size_t position);

}  // namespace assay::falsify
