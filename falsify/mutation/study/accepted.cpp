#include "falsify/mutation/study/accepted.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "falsify/mutation/study/summary.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

bool matches(const Accepted& entry, std::string_view kernel) {
  return fnmatch(entry.kernel.c_str(), std::string(kernel).c_str(), FNM_EXTMATCH) == 0;
}

/// False if all kernels that the entry names were surveyed, and none has this mutant.
bool may_exist(const Accepted& entry, const Survey& survey) {
  std::set<std::string_view> surveyed;
  for (const auto& set : survey.sets) {
    const Kernel& kernel = set->original();
    surveyed.insert(kernel.id);
    if (!matches(entry, kernel.id)) continue;
    for (std::size_t i = 0; i < set->size(); ++i) {
      if (!set->may_have(i, entry.hash)) continue;
      if (const auto mutant = set->make(i); mutant && mutant->hash == entry.hash) return true;
    }
  }
  const auto all = kernels();
  const bool named =
      std::ranges::any_of(all, [&](const Kernel& k) { return matches(entry, k.id) && surveyed.contains(k.id); });
  return !named || std::ranges::any_of(all, [&](const Kernel& k) {
    const bool same_back_end = k.role == KernelRole::kernel && k.backend == survey.sets.front()->original().backend;
    return same_back_end && matches(entry, k.id) && !surveyed.contains(k.id);
  });
}

/// Returns the results of mutants that the entry names.
auto results_of(auto& results, const Accepted& entry) {
  return results | std::views::filter([&](const json& m) {
           return m["hash"] == entry.hash && matches(entry, m["kernel"].template get<std::string>());
         });
}

InputError wrong(const std::string& file, const Accepted& entry, const std::string& what, const std::string& remedy) {
  return InputError(file, "accepted survivor " + entry.hash + " of " + entry.kernel + what, remedy);
}

}  // namespace

std::vector<Accepted> read_accepted(const std::filesystem::path& file) {
  constexpr const char* kList = "give a JSON list of {\"hash\": .., \"kernel\": .., \"reason\": ..}";
  const auto no_list = [&](const std::string& what) { return InputError(file.string(), what, kList); };
  const json document = json::parse(files::read(file, kList), nullptr, false, true);
  if (!document.is_array()) throw no_list("cannot be read as a list of accepted survivors");
  std::vector<Accepted> accepted;
  std::set<std::pair<std::string, std::string>> seen;
  for (const json& entry : document) {
    for (const char* key : {"hash", "kernel", "reason"})
      if (!entry.is_object() || entry.size() != 3 || !entry.contains(key) || !entry[key].is_string() ||
          entry[key] == "")
        throw no_list("entry " + std::to_string(accepted.size() + 1) + " is no accepted survivor: " + entry.dump());
    accepted.push_back(
        {entry["hash"].get<std::string>(), entry["kernel"].get<std::string>(), entry["reason"].get<std::string>()});
    if (!seen.emplace(accepted.back().hash, accepted.back().kernel).second)
      throw no_list("two entries accept " + accepted.back().hash + " of " + accepted.back().kernel);
  }
  return accepted;
}

void expect_mutants(const std::vector<Accepted>& accepted, const Survey& survey, const std::string& file) {
  for (const Accepted& entry : accepted)
    if (!may_exist(entry, survey))
      throw wrong(file, entry, ": there is no such mutant",
                  "remove the entry, or accept the mutant that took its place");
}

void accept(std::vector<json>& results, const std::vector<Accepted>& accepted) {
  for (const Accepted& entry : accepted)
    for (json& m : results_of(results, entry)) {
      if (status_of(m) != MutantStatus::survivor) continue;
      m["status"] = name(MutantStatus::accepted);
      m["why"] = entry.reason;
    }
}

void expect_needed(const std::vector<json>& results, const std::vector<Accepted>& accepted, const std::string& file) {
  for (const Accepted& entry : accepted) {
    auto tried = results_of(results, entry);
    if (tried.empty() ||
        !std::ranges::all_of(tried, [](const json& m) { return status_of(m) == MutantStatus::killed; }))
      continue;
    throw wrong(file, entry, " is not needed: " + tried.front()["by"].get<std::string>() + " kills it",
                "remove the entry");
  }
}

}  // namespace assay::falsify
