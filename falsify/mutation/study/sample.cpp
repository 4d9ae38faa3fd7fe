#include "falsify/mutation/study/sample.hpp"

#include <algorithm>
#include <compare>
#include <nlohmann/json.hpp>

#include "falsify/engine/random.hpp"
#include "falsify/mutation/study/parallel.hpp"
#include "falsify/mutation/study/report.hpp"

namespace assay::falsify {

namespace {

struct Drawn {
  std::size_t turn = 0;  ///< rank among its kernel's mutants
  std::uint64_t number = 0;
  const MutantSet* set = nullptr;
  std::size_t i = 0;
  auto operator<=>(const Drawn&) const = default;
};

/// Orders mutants by pseudorandom keys: the smallest keys are a uniform sample, independent of the order of the
/// mutants.
std::vector<Drawn> drawing_order(const Survey& survey, std::uint64_t seed) {
  std::map<std::string_view, std::vector<Drawn>> kernels;
  for (const auto& set : survey.sets) {
    const std::uint64_t own = derive(seed, set->original().id);
    for (std::size_t i = 0; i < set->size(); ++i)
      kernels[set->original().id].push_back({0, scramble(own ^ set->key(i)), set.get(), i});
  }
  std::vector<Drawn> order;
  for (auto& [id, list] : kernels) {
    std::ranges::sort(list);
    for (std::size_t turn = 0; turn < list.size(); ++turn) list[turn].turn = turn;
    order.insert(order.end(), list.begin(), list.end());
  }
  std::ranges::sort(order);
  return order;
}

}  // namespace

Sample draw_mutants(const Survey& survey, std::size_t count, std::uint64_t seed, std::string_view only) {
  Sample sample;
  for (const auto& set : survey.sets) sample.by_kernel[std::string(set->original().id)][0] += set->size();
  std::vector<Drawn> order = drawing_order(survey, seed);
  sample.generated = order.size();
  if (!only.empty()) std::erase_if(order, [&](const Drawn& d) { return !d.set->may_have(d.i, only); });
  for (std::size_t begin = 0; begin < order.size() && (count == 0 || sample.mutants.size() < count);) {
    const std::size_t left = order.size() - begin;
    const std::size_t n = count == 0 ? left : std::min(left, count - sample.mutants.size());
    MutantList made(n);
    in_parallel(n, [&](std::size_t i) { made[i] = order[begin + i].set->make(order[begin + i].i); });
    for (std::size_t i = 0; i < n; ++i) {
      if (made[i]) {
        sample.mutants.push_back(std::move(made[i]));
      } else {
        ++sample.invalid;
        ++sample.by_kernel[std::string(order[begin + i].set->original().id)][1];
      }
    }
    begin += n;
  }
  std::ranges::stable_sort(sample.mutants, {}, [](const auto& m) { return m->original->id; });
  return sample;
}

std::set<std::string> ended_in(const nlohmann::json& report, const std::string& file) {
  const char* const remedy = "name the output of `assay mutants --automatic --backend vulkan --json` on lavapipe";
  if (!report.is_object() || report.value("schema", "") != kAutomaticSchema)
    throw InputError(file, "is no report of automatic mutants of this version", remedy);
  if (!report.value("on_processor", false))
    throw InputError(file, "reports a run on a GPU: it screens nothing", remedy);
  std::set<std::string> ended;
  for (const auto& m : report.at("mutants"))
    if (m.at("ended").get<bool>()) ended.insert(m.at("hash").get<std::string>());
  return ended;
}

std::size_t screen(MutantList& mutants, const std::set<std::string>& ended) {
  return std::erase_if(mutants, [&](const auto& m) { return !ended.contains(m->hash); });
}

}  // namespace assay::falsify
