// What frequencies of rotary embeddings that are formed in float32 cost.
#include <algorithm>
#include <cmath>

#include "core/bounded.hpp"
#include "core/rotary.hpp"

namespace assay {

// Relative to the frequency, with e = 2i/d, p what the library promises of pow and x of exp:
//   - a power each: the exponent e is rounded, or e log(theta) is: its constant, e and the product, 3 u e log(theta); then max(p, x), and u
//     where it is the reciprocal of theta^e.
//   - products of s = theta^(-2/d): s errs by 3 u (2/d) log(theta) + max(p, x) + u, and i factors of it by i times that; each product
//     is rounded, or the power s^i is computed as one: i u + p. The position may come first: no more roundings.
// The product with the position is rounded: u. A float nearest to a frequency, and to its product with the position, is 2 u off itself.
double rotary_error(double position, double theta, Index i, Index d, bool float32_angle) {
  const Roundings& r = Roundings::current();
  if (r.of.frequencies == Frequencies::exact) return 0;
  const double e = 2 * static_cast<double>(i) / static_cast<double>(d), step = 2 / static_cast<double>(d), logarithm = std::log(theta);
  const double pow = accuracy(r.of.functions, Function::pow).relative(0);
  const auto power = [&](double of) { return 3 * r.unit * of * logarithm + std::max(pow, accuracy(r.of.functions, Function::exp).relative(of * logarithm)) + r.unit; };
  const bool products = r.of.frequencies == Frequencies::products;
  const double frequency = products ? static_cast<double>(i) * (power(step) + r.unit) + pow : i > 0 ? power(e) : 0;
  const double angle = position * std::pow(theta, -e);
  return angle * (frequency + r.unit * (float32_angle ? 3 : 1)) * (1 + 0x1p-10);
}

}  // namespace assay
