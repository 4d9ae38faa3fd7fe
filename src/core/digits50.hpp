// Fifty decimal digits, for auditing the double oracle. A product of two floats has at most 48 bits, and double
// represents it exactly, but sums, divisions and library functions round. With 168 bits their rounding is 2^-115 of
// that in double, so a Digits50 result stands for the exact one.
#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>

namespace assay {

/// Binary, so that every float and double converts exactly; no expression templates, so that `auto` is safe.
using Digits50 = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<50>, boost::multiprecision::et_off>;

}  // namespace assay
