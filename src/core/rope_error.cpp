// Error of frequencies and angles of rotary embeddings that kernels form in float32 or in double.
#include <algorithm>
#include <cmath>

#include "core/bounded.hpp"
#include "core/rope.hpp"

namespace assay {

// Relative to the frequency, with e = 2i/d, p the library's error of pow and x that of exp:
//   - one power each: the exponent e is rounded, or e log(theta) is (its constant, e and the product): 3 u e
//     log(theta); then max(p, x), and u for the reciprocal of theta^e.
//   - products of s = theta^(-2/d): s errs by 3 u (2/d) log(theta) + max(p, x) + u, and i factors s by i times that.
//     Each product is rounded, or the power s^i is computed as one: i u + p. Starting with the position adds no
//     rounding.
// The product with the position is rounded: u. A float nearest to a frequency, and to its product with the position, is
// off by 2 u.
// Kernels that declare exact frequencies may form them in double in either way: the same with u = 2^-53, and pow and
// exp within two units in the last place. The error is visible where a cosine or sine is near 0 (ggml's positions
// beyond 10^5).
double rope_error(double position, double theta, Index i, Index d, bool float32_angle) {
  const Roundings& r = Roundings::current();
  const bool exact = r.of.frequencies == Frequencies::exact;
  if (exact && float32_angle) return 0;
  const double unit = exact ? 0x1p-53 : r.unit;
  const double e = 2 * static_cast<double>(i) / static_cast<double>(d), step = 2 / static_cast<double>(d),
               logarithm = std::log(theta);
  const auto relative = [&](Function function, double x) {
    return exact ? 4 * unit : accuracy(r.of.functions, function).relative(x);
  };
  const double pow = relative(Function::pow, 0);
  const auto power = [&](double of) {
    return 3 * unit * of * logarithm + std::max(pow, relative(Function::exp, of * logarithm)) + unit;
  };
  const double by_power = i > 0 ? power(e) : 0, by_products = static_cast<double>(i) * (power(step) + unit) + pow;
  const double frequency = exact                                       ? std::max(by_power, by_products)
                           : r.of.frequencies == Frequencies::products ? by_products
                                                                       : by_power;
  const double angle = position * std::pow(theta, -e);
  return angle * (frequency + unit * (float32_angle ? 3 : 1)) * (1 + 0x1p-10);
}

}  // namespace assay
