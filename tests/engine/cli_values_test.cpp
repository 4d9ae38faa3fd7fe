#include "cli/values.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/errors.hpp"

namespace assay::cli::cli_values_test {
namespace {

TEST(Values, Durations) {
  EXPECT_EQ(parse_duration("--time", "90s").count(), 90'000);
  EXPECT_EQ(parse_duration("--time", "250ms").count(), 250);
  EXPECT_EQ(parse_duration("--time", "2h").count(), 7'200'000);
  for (const char* bad : {"", "5", "s", "-3s", "1.5m", "10 s", "10d", "99999999999999999999s", "0s"})
    EXPECT_THROW(parse_duration("--time", bad), InputError) << bad;
}

TEST(Values, Seeds) {
  EXPECT_EQ(parse_seed("18446744073709551615"), 18446744073709551615u);
  for (const char* bad : {"", "-1", "0x1", "18446744073709551616", "1 "})
    EXPECT_THROW(parse_seed(bad), InputError) << bad;
}

TEST(Values, ShardsAreDisjointAndComplete) {
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6};
  std::vector<int> seen;
  for (const char* text : {"1/3", "2/3", "3/3"})
    for (int x : shard_of(all, parse_shard(text))) seen.push_back(x);
  std::ranges::sort(seen);
  EXPECT_EQ(seen, all);
  for (const char* bad : {"", "1", "0/3", "4/3", "a/b", "1/0", "1/3/5"})
    EXPECT_THROW(parse_shard(bad), InputError) << bad;
}

}  // namespace
}  // namespace assay::cli::cli_values_test
