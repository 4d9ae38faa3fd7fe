// Parsing of option values, with one clear sentence for a malformed value.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::cli {

/// Help of the option --limit.
inline constexpr const char* kLimitHelp =
    "A call that takes longer is a hang; six times as long on cuda-host, which takes threads in turn";

/// Parses "1500ms", "90s", "10m" or "2h". Throws InputError.
std::chrono::milliseconds parse_duration(const std::string& option, const std::string& text);
/// Parses a 64-bit decimal integer. Throws InputError.
std::uint64_t parse_seed(const std::string& text);

struct Shard {
  std::size_t index = 0;  ///< from 0
  std::size_t count = 1;
};
/// Parses "2/4", the second of four. Throws InputError.
Shard parse_shard(const std::string& text);

template <class T>
std::vector<T> shard_of(const std::vector<T>& all, Shard shard) {
  std::vector<T> part;
  for (std::size_t i = shard.index; i < all.size(); i += shard.count) part.push_back(all[i]);
  return part;
}

/// Throws InputError unless the text is UTF-8: reports are UTF-8 and quote it.
void expect_utf8(const std::string& where, const std::string& text);

/// Returns `requested`, or the number of processors for 0.
int jobs_for(int requested);

}  // namespace assay::cli
