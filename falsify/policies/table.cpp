#include "falsify/policies/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace assay::falsify::policies {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 7> kColumns{"indexing", "formula", "gradient", "precision",
                                                   "state",    "special", "races"};

/// Columns of classes of faults (falsify/mutation/faults.py) and of families of automatic mutants, except faults of the
/// formula.
constexpr std::pair<std::string_view, std::string_view> kColumnOf[] = {
    {"tile_edge", "indexing"},      {"joint_shape", "indexing"},
    {"narrow_counter", "indexing"}, {"rare_branch", "indexing"},
    {"mask", "indexing"},           {"head_map", "indexing"},
    {"vector_tail", "indexing"},    {"alignment", "indexing"},
    {"stride", "indexing"},         {"adversarial", "indexing"},
    {"comparison", "indexing"},     {"loop", "indexing"},
    {"branch", "indexing"},         {"index", "indexing"},
    {"component", "indexing"},      {"precision", "precision"},
    {"accumulation", "precision"},  {"fma", "precision"},
    {"half", "precision"},          {"bfloat16", "precision"},
    {"stale_memory", "state"},      {"store", "state"},
    {"duplicate", "state"},         {"overflow", "special"},
    {"nonfinite", "special"},       {"race", "races"},
    {"barrier", "races"},           {"subgroup", "races"}};

json to_json(const Judgement& judgement) {
  json j{{"covered", judgement.covered},
         {"cases", judgement.cases},
         {"refused", judgement.refused},
         {"seconds", judgement.seconds}};
  if (judgement.rejected) j["rejected"] = *judgement.rejected;
  if (!judgement.unavailable.empty()) j["unavailable"] = judgement.unavailable;
  return j;
}

/// True if the kernel ran under this policy at least once.
bool judged(const json& verdict) {
  return verdict["covered"] && !verdict.contains("unavailable") &&
         (verdict.contains("rejected") || verdict["cases"] > verdict["refused"]);
}

json totals(const std::string& policy, const std::vector<json>& kernels) {
  json missed = json::object();
  for (const std::string_view name : kColumns) missed[std::string(name)] = 0;
  int mutants = 0, covered = 0, killed = 0, right = 0, alarms = 0;
  std::int64_t cases = 0;
  double seconds = 0;
  std::set<std::string> ops;
  json alarming = json::array();
  for (const json& kernel : kernels) {
    const json& verdict = kernel["policies"][policy];
    const bool ran = judged(verdict), rejected = verdict.contains("rejected");
    if (verdict["covered"]) ops.insert(kernel["op"].get<std::string>());
    cases += verdict["cases"].get<std::int64_t>();
    seconds += verdict["seconds"].get<double>();
    if (!kernel["mutant"].get<bool>()) {
      right += ran, alarms += ran && rejected;
      if (ran && rejected) alarming.push_back({{"kernel", kernel["kernel"]}, {"says", verdict["rejected"]}});
      continue;
    }
    ++mutants, covered += ran, killed += ran && rejected;
    if (!ran || !rejected) {
      json& count = missed[kernel["class"].get<std::string>()];
      count = count.get<int>() + 1;
    }
  }
  return {{"policy", policy},     {"ops", ops.size()},
          {"mutants", mutants},   {"judged", covered},
          {"killed", killed},     {"missed", missed},
          {"right", right},       {"false_alarms", alarms},
          {"alarming", alarming}, {"cases", cases},
          {"seconds", seconds},   {"ms_per_case", cases > 0 ? 1000 * seconds / static_cast<double>(cases) : 0.0}};
}

}  // namespace

std::string_view column_of(std::string_view op, std::string_view fault_class) {
  for (const auto& [of, column] : kColumnOf)
    if (of == fault_class) return column;
  return op.ends_with("_backward") ? "gradient" : "formula";
}

json judge_all(const Kernel& kernel, std::string_view fault, std::string_view fault_class,
               const JudgeOptions& options) {
  const OpDescriptor& op = operation(kernel.op);
  const bool mutant = !fault.empty();
  json result{
      {"kernel", kernel.id}, {"op", kernel.op}, {"mutant", mutant}, {"fault", fault}, {"policies", json::object()}};
  if (mutant) result["class"] = column_of(kernel.op, fault_class);
  Worker worker(options.limit);
  for (const Policy* policy : policies())
    result["policies"][std::string(policy->name)] = to_json(judge(*policy, op, kernel, options, worker));
  return result;
}

json policy_report(std::vector<json> kernels, const json& settings) {
  std::ranges::sort(kernels, {}, [](const json& k) { return k["kernel"].get<std::string>(); });
  // Kernels that no policy could run (missing device) are excluded from all totals.
  const auto absent = [](const json& k) { return k["policies"]["assay"].contains("unavailable"); };
  json unavailable = json::array();
  for (const json& k : kernels)
    if (absent(k)) unavailable.push_back(k["kernel"]);
  std::erase_if(kernels, absent);
  json report{{"schema", "assay-policies/1"}, {"settings", settings}, {"unavailable", unavailable},
              {"policies", json::array()},    {"classes", kColumns},  {"beyond_ours", json::array()}};
  json sizes = json::object();
  for (const std::string_view name : kColumns) sizes[std::string(name)] = 0;
  for (const json& k : kernels)
    if (k["mutant"].get<bool>()) {
      json& count = sizes[k["class"].get<std::string>()];
      count = count.get<int>() + 1;
    }
  report["mutants_by_class"] = sizes;
  for (const Policy* policy : policies()) {
    json row = totals(std::string(policy->name), kernels);
    row["source"] = policy->source;
    row["notes"] = policy->notes;
    report["policies"].push_back(row);
    for (const json& k : kernels)
      if (k["mutant"].get<bool>() && !k["policies"]["assay"].contains("rejected") &&
          k["policies"][std::string(policy->name)].contains("rejected"))
        report["beyond_ours"].push_back({{"policy", policy->name},
                                         {"mutant", k["kernel"]},
                                         {"fault", k["fault"]},
                                         {"says", k["policies"][std::string(policy->name)]["rejected"]}});
  }
  report["kernels"] = std::move(kernels);
  return report;
}

std::string policy_table(const json& report) {
  const auto percent = [](int part, int whole) {
    return whole == 0 ? std::string("-") : fmt::format("{:.1f}%", 100.0 * part / whole);
  };
  const auto by_class = [&](const json& counts) {
    std::string text;
    for (const auto& c : report["classes"]) {
      const std::string name = c.get<std::string>();
      text += fmt::format("  {:>{}}", counts.is_null() ? name : std::to_string(counts[name].get<int>()), name.size());
    }
    return text;
  };
  std::string text = fmt::format("{:<18} {:>3} {:>7} {:>7} {:>7} {:>10}{}  {:>12} {:>8}\n", "policy", "ops", "judged",
                                 "killed", "of all", "of judged", by_class(nullptr), "false alarms", "ms/case");
  for (const auto& row : report["policies"]) {
    const int mutants = row["mutants"], judged = row["judged"], killed = row["killed"];
    text += fmt::format("{:<18} {:>3} {:>7} {:>7} {:>7} {:>10}{}  {:>12} {:>8.2f}\n", row["policy"].get<std::string>(),
                        row["ops"].get<int>(), judged, killed, percent(killed, mutants), percent(killed, judged),
                        by_class(row["missed"]),
                        fmt::format("{} of {}", row["false_alarms"].get<int>(), row["right"].get<int>()),
                        row["ms_per_case"].get<double>());
  }
  text += fmt::format(
      "{:<57}{}\n\n{} mutants, {} right kernels. Classes: how many are missed; what a project has no test for counts "
      "as missed in 'of all'.\n",
      "mutants of each class", by_class(report["mutants_by_class"]), report["policies"][0]["mutants"].get<int>(),
      std::ranges::count_if(report["kernels"], [](const json& k) { return !k["mutant"].get<bool>(); }));
  for (const auto& m : report["beyond_ours"])
    text += fmt::format("{} kills {} ({}), which assay does not\n", m["policy"].get<std::string>(),
                        m["mutant"].get<std::string>(), m["fault"].get<std::string>());
  for (const auto& row : report["policies"])
    for (const auto& alarm : row["alarming"])
      text += fmt::format("{} rejects {}, which is right: {}\n", row["policy"].get<std::string>(),
                          alarm["kernel"].get<std::string>(), alarm["says"].get<std::string>());
  for (const auto& row : report["policies"])
    for (const auto& note : row["notes"]) text += note.get<std::string>() + "\n";
  if (!report["unavailable"].empty())
    text += fmt::format("{} kernels have no device here and are not counted\n", report["unavailable"].size());
  return text;
}

}  // namespace assay::falsify::policies
