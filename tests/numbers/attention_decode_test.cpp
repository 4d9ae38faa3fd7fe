// One step of decoding by hand: queries of multiples of log 2 make weights powers of 2, so that every mean is a simple
// fraction. Places past the end hold NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reference/attention_decode.hpp"

namespace assay::numbers::attention_decode_test {
namespace {

TEST(GoldenAttentionDecode, TwoSequencesAtTheirOwnPlaces) {
  const double log2 = std::log(2.0), none = std::numeric_limits<double>::quiet_NaN();
  // [2, 4, 2]: at scale 1/2, head 0 weighs by 2^(first element), head 1 by 2^(second), head 2 by the first, head 3
  // uniformly.
  const std::vector<double> q{2 * log2, 0, 0, 2 * log2, 2 * log2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<double> k{2, 0, 1, 3, 1, 1, 1, 1}, v{21, 0, 2, 2, 5, 6, -1, 9}, lengths{2, 0};
  // [2, 4, 2, 2]: places, then heads.
  std::vector<double> k_cache{0, 1, 0, 0, 1, 0, 2, 0}, v_cache{7, 4, 1, -1, 14, 8, 3, 5};
  k_cache.resize(32, none);
  v_cache.resize(32, none);
  std::vector<double> y(16);
  const Shape rows{2, 4, 2}, shared{2, 2, 2}, cache{2, 4, 2, 2};
  reference::attention_decode<double>({q.data(), rows}, {k.data(), shared}, {v.data(), shared},
                                      {lengths.data(), Shape{2}}, {k_cache.data(), cache}, {v_cache.data(), cache},
                                      {y.data(), rows}, 0.5);
  // Weights 1 2 4, 2 1 1, 1 4 2 and 1 1 1; a sequence that starts sees only itself.
  const std::vector<double> want{(7.0 + 28 + 84) / 7,
                                 (4.0 + 16) / 7,
                                 (14.0 + 14 + 21) / 4,
                                 (8.0 + 8) / 4,
                                 (1.0 + 12 + 4) / 7,
                                 (-1.0 + 20 + 4) / 7,
                                 2,
                                 2,
                                 5,
                                 6,
                                 5,
                                 6,
                                 -1,
                                 9,
                                 -1,
                                 9};
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(y[i], want[i], 0x1p-47) << "element " << i;
  const std::vector<double> k_new(k_cache.begin() + 8, k_cache.begin() + 12),
      v_new(v_cache.begin() + 16, v_cache.begin() + 20);
  EXPECT_EQ(k_new, (std::vector<double>{2, 0, 1, 3}));
  EXPECT_EQ(v_new, (std::vector<double>{5, 6, -1, 9}));
  for (std::size_t i = 12; i < 16; ++i) EXPECT_TRUE(std::isnan(k_cache[i])) << "place 3 has changed";
  for (std::size_t i = 20; i < 32; ++i) EXPECT_TRUE(std::isnan(v_cache[i])) << "places past the end have changed";
}

}  // namespace
}  // namespace assay::numbers::attention_decode_test
