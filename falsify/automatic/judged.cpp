#include "falsify/automatic/judged.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include "core/errors.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

bool names(const Judgement& judgement, std::string_view kernel) {
  return fnmatch(judgement.kernel.c_str(), std::string(kernel).c_str(), 0) == 0;
}

/// False where all kernels that the entry names were surveyed, and none has this mutant.
bool may_exist(const Judgement& judgement, const Survey& survey) {
  std::set<std::string_view> surveyed;
  for (const auto& set : survey.sets) {
    const Kernel& kernel = set->original();
    surveyed.insert(kernel.id);
    if (!names(judgement, kernel.id)) continue;
    for (std::size_t i = 0; i < set->size(); ++i)
      if (const auto mutant = set->make(i); mutant && mutant->hash == judgement.hash) return true;
  }
  const auto all = kernels();
  const bool named = std::ranges::any_of(all, [&](const Kernel& k) { return names(judgement, k.id) && surveyed.contains(k.id); });
  return !named || std::ranges::any_of(all, [&](const Kernel& k) {
    const bool same_back_end = k.role == KernelRole::kernel && k.backend == survey.sets.front()->original().backend;
    return same_back_end && names(judgement, k.id) && !surveyed.contains(k.id);
  });
}

}  // namespace

std::vector<Judgement> read_judgements(const std::filesystem::path& file) {
  std::ifstream stream(file);
  const json document = json::parse(stream, nullptr, false, true);
  const auto wrong = [&](const std::string& what) {
    return InputError(file.string(), what, "give a JSON list of {\"hash\": .., \"kernel\": .., \"reason\": ..}");
  };
  if (!document.is_array()) throw wrong("cannot be read as a list of judgements");
  std::vector<Judgement> judgements;
  std::set<std::pair<std::string, std::string>> seen;
  for (const json& entry : document) {
    for (const char* key : {"hash", "kernel", "reason"})
      if (!entry.is_object() || entry.size() != 3 || !entry.contains(key) || !entry[key].is_string() || entry[key] == "")
        throw wrong("entry " + std::to_string(judgements.size() + 1) + " is no judgement: " + entry.dump());
    judgements.push_back({entry["hash"].get<std::string>(), entry["kernel"].get<std::string>(), entry["reason"].get<std::string>()});
    if (!seen.emplace(judgements.back().hash, judgements.back().kernel).second)
      throw wrong("two entries judge " + judgements.back().hash + " of " + judgements.back().kernel);
  }
  return judgements;
}

void judge(std::vector<json>& results, const std::vector<Judgement>& judgements, const Survey& survey, const std::string& file) {
  for (const Judgement& judgement : judgements) {
    const std::string what = "judgement of " + judgement.hash + " of " + judgement.kernel;
    if (!may_exist(judgement, survey))
      throw InputError(file, what + ": there is no such mutant", "remove the entry, or judge the mutant that took its place");
    int survived = 0;
    const json* killed = nullptr;
    for (json& m : results) {
      if (m["hash"] != judgement.hash || !names(judgement, m["kernel"].get<std::string>())) continue;
      if (m["status"] == "killed") killed = &m;
      else ++survived;
      if (m["status"] != "hole") continue;
      m["status"] = "judged";
      m["why"] = judgement.reason;
    }
    if (killed != nullptr && survived == 0)
      throw InputError(file, what + " is not needed: " + (*killed)["by"].get<std::string>() + " kills it", "remove the entry");
  }
}

}  // namespace assay::falsify
