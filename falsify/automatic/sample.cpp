#include "falsify/automatic/sample.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "falsify/automatic/report.hpp"
#include "falsify/engine/random.hpp"

namespace assay::falsify {

Sample draw_mutants(const Survey& survey, std::size_t count, std::uint64_t seed) {
  // The smallest of numbers that look random are a uniform sample, whatever the order of the mutants.
  std::vector<std::tuple<std::uint64_t, const MutantSet*, std::size_t>> order;
  Sample sample;
  for (const auto& set : survey.sets) {
    const std::uint64_t own = derive(seed, set->original().id);
    sample.by_kernel[std::string(set->original().id)][0] += set->size();
    for (std::size_t i = 0; i < set->size(); ++i) order.emplace_back(scramble(own ^ set->key(i)), set.get(), i);
  }
  sample.generated = order.size();
  std::ranges::sort(order);
  for (const auto& [number, set, i] : order) {
    if (count > 0 && sample.mutants.size() == count) break;
    if (auto mutant = set->make(i)) {
      sample.mutants.push_back(std::move(mutant));
    } else {
      ++sample.invalid;
      ++sample.by_kernel[std::string(set->original().id)][1];
    }
  }
  std::ranges::stable_sort(sample.mutants, {}, [](const auto& m) { return m->original->id; });
  return sample;
}

std::set<std::string> ended_in(const nlohmann::json& report, const std::string& file) {
  const char* const remedy = "name the output of `assay mutants --automatic --backend vulkan --json` on lavapipe";
  if (!report.is_object() || report.value("schema", "") != kAutomaticSchema)
    throw InputError(file, "is no report of automatic mutants of this version", remedy);
  if (!report.value("on_processor", false)) throw InputError(file, "reports a run on a GPU: it screens nothing", remedy);
  std::set<std::string> ended;
  for (const auto& m : report.at("mutants"))
    if (m.at("ended").get<bool>()) ended.insert(m.at("hash").get<std::string>());
  return ended;
}

std::size_t screen(MutantList& mutants, const std::set<std::string>& ended) {
  return std::erase_if(mutants, [&](const auto& m) { return !ended.contains(m->hash); });
}

}  // namespace assay::falsify
