#include "cli/values.hpp"

#include <charconv>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/errors.hpp"

namespace assay::cli {
namespace {

template <class T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

}  // namespace

std::chrono::milliseconds parse_duration(const std::string& option, const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  const std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  const std::int64_t scale = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60'000 : unit == "h" ? 3'600'000 : 0;
  std::int64_t number = 0;
  if (scale == 0 || !parse_whole(std::string_view(text).substr(0, digits), number) || number <= 0 ||
      number > 10'000'000)
    throw InputError(option + " " + text, "is not a duration", "use a whole number with a unit: 500ms, 90s, 10m, 2h");
  return std::chrono::milliseconds(number * scale);
}

std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  if (!parse_whole(std::string_view(text), seed))
    throw InputError("--seed " + text, "is not a seed", "use a non-negative integer of 64 bits");
  return seed;
}

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  Shard shard;
  if (slash == std::string::npos || !parse_whole(std::string_view(text).substr(0, slash), shard.index) ||
      !parse_whole(std::string_view(text).substr(slash + 1), shard.count) || shard.index < 1 ||
      shard.index > shard.count)
    throw InputError("--shard " + text, "is not a shard", "use I/N with I from 1 to N, such as 2/4");
  --shard.index;
  return shard;
}

void expect_utf8(const std::string& where, const std::string& text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
  } catch (const nlohmann::json::type_error&) {
    throw InputError(where, "holds bytes that are not UTF-8", "use a name or text in UTF-8");
  }
}

int jobs_for(int requested) {
  return requested > 0 ? requested : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace assay::cli
