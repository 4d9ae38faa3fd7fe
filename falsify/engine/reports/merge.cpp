#include "falsify/engine/reports/merge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "core/errors.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/fields.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

struct ShardIndex {
  int index = 0, count = 0;  ///< of a shard: index from 1
};

[[noreturn]] void fail(const std::string& file, const std::string& problem, const std::string& remedy) {
  throw InputError(file, problem, remedy);
}

ShardIndex place_of(const ShardReport& s) {
  const std::string text = s.report["settings"].value("shard", "");
  const std::size_t slash = text.find('/');
  ShardIndex place;
  if (slash != std::string::npos && s.report.contains("whole")) {
    std::from_chars(text.data(), text.data() + slash, place.index);
    std::from_chars(text.data() + slash + 1, text.data() + text.size(), place.count);
  }
  if (place.count < 1 || place.index < 1 || place.index > place.count)
    fail(s.file, "is not the report of a shard", "name reports of `assay falsify --shard I/N --report DIR`");
  return place;
}

/// Checks that settings, whole and version are the same in all shards.
void expect_same_run(const ShardReport& first, const ShardReport& other, int count) {
  const auto differ = [&](const std::string& what, const std::string& remedy) {
    fail(other.file, fmt::format("{} is not that of {}", what, first.file), remedy);
  };
  const char* const same = "run every shard with the same program and options";
  if (place_of(other).count != count)
    differ(fmt::format("--shard {}: the number of shards", text_of(other.report["settings"], "shard")), same);
  if (other.report["version"] != first.report["version"]) differ("the version", same);
  for (const auto& [key, value] : first.report["settings"].items())
    if (key != "shard" && other.report["settings"].value(key, json()) != value) differ("--" + key, same);
  for (const auto& [key, value] : first.report["whole"].items()) {
    if (other.report["whole"].value(key, json()) == value) continue;
    if (key == "kernels") differ("the list of kernels", "run every shard where the same back ends and kernels are");
    differ(key == "program" ? "the program (its SHA-256)" : "--" + key, same);
  }
}

/// Returns the files by index, and checks that each of 1 to `count` occurs once.
std::map<int, const ShardReport*> in_order(const std::vector<ShardReport>& shards, int count) {
  std::map<int, const ShardReport*> by_index;
  for (const ShardReport& s : shards)
    if (const auto [at, fresh] = by_index.emplace(place_of(s).index, &s); !fresh)
      fail(s.file, fmt::format("is shard {} of {}, and so is {}", at->first, count, at->second->file),
           "name each shard once");
  std::vector<int> missing;
  for (int i = 1; i <= count; ++i)
    if (!by_index.contains(i)) missing.push_back(i);
  if (!missing.empty())
    fail("assay merge",
         fmt::format("of {} shards {} missing: {}", count,
                     missing.size() == 1 ? "one is" : fmt::format("{} are", missing.size()), fmt::join(missing, ", ")),
         fmt::format("run it (--shard {}/{}) and name its report too", missing.front(), count));
  return by_index;
}

/// Returns the results of all shards, and checks that every kernel of the whole occurs once.
std::vector<json> kernels_of(const std::map<int, const ShardReport*>& shards) {
  std::map<std::string, const ShardReport*> owners;
  std::vector<json> kernels;
  const ShardReport& first = *shards.begin()->second;
  for (const json& id : first.report["whole"]["kernels"]) owners.emplace(id.get<std::string>(), nullptr);
  for (const auto& [index, shard] : shards)
    for (const json& k : shard->report["kernels"]) {
      const std::string id = text_of(k, "kernel");
      const auto owner = owners.find(id);
      if (owner == owners.end())
        fail(shard->file, fmt::format("{} is none of the run's kernels", id), "run that shard again");
      if (owner->second != nullptr)
        fail(shard->file, fmt::format("holds {}, as {} does", id, owner->second->file), "run both shards again");
      owner->second = shard;
      kernels.push_back(k);
    }
  for (const auto& [id, owner] : owners)
    if (owner == nullptr) fail("assay merge", fmt::format("{} is in no shard", id), "run the shards again");
  return kernels;
}

}  // namespace

json merge_reports(const std::vector<ShardReport>& shards) {
  const ShardReport& first = shards.at(0);
  const int count = place_of(first).count;
  double seconds = 0;
  for (const ShardReport& s : shards) {
    expect_same_run(first, s, count);
    seconds = std::max(seconds, s.report["seconds"].get<double>());
  }
  std::vector<json> kernels = kernels_of(in_order(shards, count));
  json settings = first.report["settings"];
  settings["shard"] = "";
  return make_report(std::move(kernels), settings, seconds);
}

}  // namespace assay::falsify
