// Compares results of tests with results recorded in *.json; ASSAY_RECORD=1 records them anew.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "contract/descriptor.hpp"
#include "falsify/engine/random.hpp"

namespace assay::falsify::recorded {

using nlohmann::json;

// One unit of the ninth digit, the last recorded; math libraries differ in the seventeenth.
inline constexpr double kSame = 1e-8;

inline json number(double x) {
  if (!std::isfinite(x)) return fmt::format("{}", x);
  return std::strtod(fmt::format("{:.9g}", x).c_str(), nullptr);
}

inline bool same(double x, double y, double apart) {
  return std::fabs(x - y) <= apart * std::max(std::fabs(x), std::fabs(y));
}

/// Returns the first difference of two documents (numbers: by more than `apart`, relative); empty if they are the same.
inline std::string difference(const json& now, const json& before, double apart, const std::string& where = "") {
  if (now.is_number() && before.is_number()) {
    if (same(now.get<double>(), before.get<double>(), apart)) return "";
  } else if (now.is_array() && before.is_array() && now.size() == before.size()) {
    for (std::size_t i = 0; i < now.size(); ++i)
      if (std::string found = difference(now[i], before[i], apart, fmt::format("{}/{}", where, i)); !found.empty())
        return found;
    return "";
  } else if (now.is_object() && before.is_object()) {
    for (const auto& [key, value] : now.items())
      if (!before.contains(key)) return fmt::format("{}/{} is new", where, key);
      else if (std::string found = difference(value, before[key], apart, where + "/" + key); !found.empty())
        return found;
    for (const auto& [key, value] : before.items())
      if (!now.contains(key)) return fmt::format("{}/{} is gone", where, key);
    return "";
  } else if (now == before) {
    return "";
  }
  return fmt::format("{} is {}, recorded is {}", where, now.dump(), before.dump());
}

inline std::filesystem::path file_of(std::string_view name) {
  return std::filesystem::path(ASSAY_RECORDED) / fmt::format("{}.json", name);
}

/// Returns the result of f in a process of its own: certificates derive signs from a call counter, which starts there.
template <class F>
json apart(const F& f) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    try {
      text = f().dump();
    } catch (const std::exception& e) {
      text = json(e.what()).dump();
    }
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t written = ::write(ends[1], text.data() + at, text.size() - at);
      if (written <= 0) break;
      at += static_cast<std::size_t>(written);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? json::parse(text) : json("the process ended");
}

/// Entries of a part that are recorded in full: the shortest. Of every other entry, a digest is recorded.
inline constexpr std::size_t kInFull = 20;

/// Sums to which every element contributes, including small ones; weights distinguish places.
inline json summary(const std::vector<double>& values) {
  double sum = 0, logs = 0;
  Index zeros = 0, infinite = 0, nan = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i], weight = 1 + static_cast<double>(i % 13) / 16;
    nan += std::isnan(x), infinite += std::isinf(x), zeros += x == 0;
    if (!std::isfinite(x) || x == 0) continue;
    sum += x > 0 ? weight : -weight;
    logs += weight * std::log2(std::fabs(x));
  }
  return {values.size(), zeros, infinite, nan, number(sum), number(logs)};
}

/// Moves the floating-point numbers of a document into `numbers`.
inline void take_numbers(json& document, std::vector<double>& numbers) {
  if (document.is_number_float()) {
    numbers.push_back(document.get<double>());
    document = nullptr;
  } else if (document.is_structured()) {
    for (json& member : document) take_numbers(member, numbers);
  }
}

/// A hash of the entry without its floating-point numbers, and their summary, which compares with a tolerance as
/// numbers do.
inline json digest(json entry) {
  std::vector<double> numbers;
  take_numbers(entry, numbers);
  return {{"digest", fmt::format("{:016x}", derive(0, entry.dump()))}, {"numbers", summary(numbers)}};
}

inline bool is_digest(const json& entry) { return entry.is_object() && entry.contains("digest"); }

/// Replaces all but the shortest entries by their digests.
inline json shortened(const json& entries) {
  std::vector<std::size_t> lengths;
  for (const json& entry : entries) lengths.push_back(entry.dump().size());
  if (lengths.size() <= kInFull) return entries;
  std::vector<std::size_t> sorted = lengths;
  std::ranges::nth_element(sorted, sorted.begin() + kInFull);
  json all = json::array();
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    json short_form = digest(entries[i]);
    all.push_back(lengths[i] < sorted[kInFull] || lengths[i] <= short_form.dump().size() ? entries[i]
                                                                                         : std::move(short_form));
  }
  return all;
}

/// Entries in the form in which `recorded` holds them.
inline json as_recorded(const json& entries, const json& recorded) {
  json all = json::array();
  for (std::size_t i = 0; i < entries.size(); ++i)
    all.push_back(i < recorded.size() && is_digest(recorded[i]) ? digest(entries[i]) : entries[i]);
  return all;
}

/// Compares one part of a file, or records it.
inline void expect_recorded(const std::filesystem::path& file, const std::string& part, const json& now,
                            double apart_by = kSame) {
  ASSERT_TRUE(now.is_array()) << now;
  json all = json::object();
  if (std::ifstream in(file); in) all = json::parse(in);
  if (std::getenv("ASSAY_RECORD") != nullptr) {
    all[part] = shortened(now);
    std::ofstream out(file);
    const char* before_part = "{\n";
    for (const auto& [name, entries] : all.items()) {  // one entry per line
      out << std::exchange(before_part, ",\n") << json(name) << ": [";
      const char* before_entry = "\n";
      for (const json& entry : entries) out << std::exchange(before_entry, ",\n") << entry;
      out << "\n]";
    }
    out << "\n}\n";
    return;
  }
  ASSERT_TRUE(all.contains(part)) << file << " lacks this part: run this test with ASSAY_RECORD=1";
  const std::string found = difference(as_recorded(now, all[part]), all[part], apart_by);
  EXPECT_EQ(found, "") << "if that is meant, run this test with ASSAY_RECORD=1 and commit what has changed";
}

template <class F>
void expect_recorded(const OpDescriptor& op, const std::string& part, const F& compute, double apart_by = kSame) {
  expect_recorded(file_of(op.name), part, apart([&] { return compute(op); }), apart_by);
}

}  // namespace assay::falsify::recorded
