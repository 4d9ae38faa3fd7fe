#include "falsify/mutation/study/judged.hpp"

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

bool names(const Judgement& judgement, std::string_view kernel) {
  return fnmatch(judgement.kernel.c_str(), std::string(kernel).c_str(), FNM_EXTMATCH) == 0;
}

/// False if all kernels that the entry names were surveyed, and none has this mutant.
bool may_exist(const Judgement& judgement, const Survey& survey) {
  std::set<std::string_view> surveyed;
  for (const auto& set : survey.sets) {
    const Kernel& kernel = set->original();
    surveyed.insert(kernel.id);
    if (!names(judgement, kernel.id)) continue;
    for (std::size_t i = 0; i < set->size(); ++i) {
      if (!set->may_have(i, judgement.hash)) continue;
      if (const auto mutant = set->make(i); mutant && mutant->hash == judgement.hash) return true;
    }
  }
  const auto all = kernels();
  const bool named = std::ranges::any_of(all, [&](const Kernel& k) { return names(judgement, k.id) && surveyed.contains(k.id); });
  return !named || std::ranges::any_of(all, [&](const Kernel& k) {
    const bool same_back_end = k.role == KernelRole::kernel && k.backend == survey.sets.front()->original().backend;
    return same_back_end && names(judgement, k.id) && !surveyed.contains(k.id);
  });
}

/// Returns the results of mutants that the entry names.
auto named(auto& results, const Judgement& judgement) {
  return results | std::views::filter([&](const json& m) { return m["hash"] == judgement.hash && names(judgement, m["kernel"].template get<std::string>()); });
}

InputError wrong(const std::string& file, const Judgement& judgement, const std::string& what, const std::string& remedy) {
  return InputError(file, "judgement of " + judgement.hash + " of " + judgement.kernel + what, remedy);
}

}  // namespace

std::vector<Judgement> read_judgements(const std::filesystem::path& file) {
  constexpr const char* kList = "give a JSON list of {\"hash\": .., \"kernel\": .., \"reason\": ..}";
  const auto no_list = [&](const std::string& what) { return InputError(file.string(), what, kList); };
  const json document = json::parse(files::read(file, kList), nullptr, false, true);
  if (!document.is_array()) throw no_list("cannot be read as a list of judgements");
  std::vector<Judgement> judgements;
  std::set<std::pair<std::string, std::string>> seen;
  for (const json& entry : document) {
    for (const char* key : {"hash", "kernel", "reason"})
      if (!entry.is_object() || entry.size() != 3 || !entry.contains(key) || !entry[key].is_string() || entry[key] == "")
        throw no_list("entry " + std::to_string(judgements.size() + 1) + " is no judgement: " + entry.dump());
    judgements.push_back({entry["hash"].get<std::string>(), entry["kernel"].get<std::string>(), entry["reason"].get<std::string>()});
    if (!seen.emplace(judgements.back().hash, judgements.back().kernel).second)
      throw no_list("two entries judge " + judgements.back().hash + " of " + judgements.back().kernel);
  }
  return judgements;
}

void expect_mutants(const std::vector<Judgement>& judgements, const Survey& survey, const std::string& file) {
  for (const Judgement& judgement : judgements)
    if (!may_exist(judgement, survey))
      throw wrong(file, judgement, ": there is no such mutant", "remove the entry, or judge the mutant that took its place");
}

void judge(std::vector<json>& results, const std::vector<Judgement>& judgements) {
  for (const Judgement& judgement : judgements)
    for (json& m : named(results, judgement)) {
      if (status_of(m) != MutantStatus::hole) continue;
      m["status"] = name(MutantStatus::judged);
      m["why"] = judgement.reason;
    }
}

void expect_needed(const std::vector<json>& results, const std::vector<Judgement>& judgements, const std::string& file) {
  for (const Judgement& judgement : judgements) {
    auto tried = named(results, judgement);
    if (tried.empty() || !std::ranges::all_of(tried, [](const json& m) { return status_of(m) == MutantStatus::killed; })) continue;
    throw wrong(file, judgement, " is not needed: " + tried.front()["by"].get<std::string>() + " kills it", "remove the entry");
  }
}

}  // namespace assay::falsify
