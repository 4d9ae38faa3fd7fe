#include "core/rope.hpp"

#include <bit>
#include <boost/math/constants/constants.hpp>

#include "core/digits50.hpp"

namespace assay {
namespace {

RopeFrequency in_revolutions(const Digits50& frequency) {
  RopeFrequency turns{};
  Digits50 rest = frequency / boost::math::constants::two_pi<Digits50>();
  for (int w = 3; w >= 0; --w) {
    rest = ldexp(rest, 32);
    const Digits50 whole = floor(rest);
    turns.word[w] = static_cast<std::uint32_t>(whole);
    rest -= whole;
  }
  return turns;
}

}  // namespace

const std::vector<RopeFrequency>& rope_frequencies(double theta, Index d, bool float32_angle) {
  struct Table {
    double theta = 0;
    Index d = 0;
    bool float32_angle = false;
    std::vector<RopeFrequency> frequencies;
  };
  thread_local Table table;
  if (table.theta == theta && table.d == d && table.float32_angle == float32_angle) return table.frequencies;
  table = {theta, d, float32_angle, {}};
  const Digits50 ratio = pow(Digits50(theta), Digits50(-2) / d);
  Digits50 frequency = 1;
  for (Index i = 0; i < d / 2; ++i, frequency *= ratio)
    table.frequencies.push_back(
        float32_angle ? RopeFrequency{{std::bit_cast<std::uint32_t>(static_cast<float>(frequency)), 0, 0, 0}}
                      : in_revolutions(frequency));
  return table.frequencies;
}

}  // namespace assay
