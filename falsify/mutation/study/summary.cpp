#include "falsify/mutation/study/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "falsify/engine/obligation.hpp"
#include "falsify/engine/percentile.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/formats.hpp"

namespace assay::falsify {

using nlohmann::json;

namespace {

constexpr std::string_view kStatusNames[] = {"killed",   "equivalent", "survivor",   "accepted",
                                             "survived", "unsound",    "unavailable"};
static_assert(std::size(kStatusNames) == std::size(kMutantStatuses));

/// Returns the matrix' remark on an obligation.
std::string remark(const json& n) {
  if (n["kills"] == 0) return "kills nothing (" + n["by"].get<std::string>() + ")";
  return n["alone"] == 0 ? "kills nothing alone: candidate for removal" : "";
}

/// Converts the document to the form that junit_xml takes.
json suites(const json& report) {
  std::map<std::string, json> groups;
  double seconds = 0;
  for (const json& m : report["mutants"]) {
    const std::string group = m[m.contains("kernel") ? "kernel" : "op"].get<std::string>();
    json& suite = groups[group];
    if (suite.is_null()) suite = {{"kernel", group}, {"seconds", 0.0}, {"obligations", json::array()}};
    using enum MutantStatus;
    const MutantStatus status = status_of(m);
    const bool missed = status == survivor || status == unsound || status == survived;
    suite["seconds"] = suite["seconds"].get<double>() + m["seconds"].get<double>();
    seconds += m["seconds"].get<double>();
    suite["obligations"].push_back({{"id", m[m.contains("hash") ? "hash" : "mutant"]},
                                    {"claim", fault_of(m)},
                                    {"verdict", missed                  ? "falsified"
                                                : status == unavailable ? "unavailable"
                                                                        : "passed"},
                                    {"reason", std::string(name(status)) + " " + m.value("says", m.value("why", ""))},
                                    {"seconds", m["seconds"]}});
  }
  json list = json::array();
  for (auto& [name, suite] : groups) list.push_back(std::move(suite));
  return {{"seconds", report.value("seconds", seconds)}, {"kernels", list}};
}

}  // namespace

std::string_view name(MutantStatus status) { return kStatusNames[static_cast<std::size_t>(status)]; }

MutantStatus status_of(const json& mutant) {
  const std::string text = mutant["status"].get<std::string>();
  const auto at = std::ranges::find(kStatusNames, text);
  if (at == std::end(kStatusNames))
    throw InputError("mutant " + name_of(mutant), "has the status '" + text + "', which is none",
                     "write the report anew");
  return static_cast<MutantStatus>(at - std::begin(kStatusNames));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

json counts_by(const std::vector<json>& mutants, const char* key) {
  std::map<std::string, json> groups;
  std::map<std::string, std::vector<double>> cases;
  for (const json& m : mutants) {
    const std::string name = m[key].get<std::string>();
    json& counts = groups[name];
    if (counts.is_null()) {
      counts["mutants"] = 0;
      for (const std::string_view status : kStatusNames) counts[std::string(status)] = 0;
    }
    for (const std::string& what : {std::string("mutants"), m["status"].get<std::string>()})
      counts[what] = counts.value(what, 0) + 1;
    if (status_of(m) == MutantStatus::killed) cases[name].push_back(m["cases"].get<double>());
  }
  for (auto& [name, counts] : groups)
    counts.update({{"median_cases", median(cases[name])}, {"p95_cases", percentile(cases[name], 0.95)}});
  return groups;
}

json by_obligation(const std::vector<json>& mutants) {
  json ops = json::object();
  for (const json& m : mutants) {
    if (status_of(m) != MutantStatus::killed) continue;
    const std::string op = m["op"].get<std::string>();
    if (!ops.contains(op))
      for (const Obligation& o : obligations(op))
        ops[op][std::string(o.info->id)] = {{"by", o.info->by}, {"first", 0}, {"kills", 0}, {"alone", 0}};
    const auto add = [&](const json& id, const char* what) {
      json& n = ops[op][id.get<std::string>()][what];
      n = n.get<int>() + 1;
    };
    add(m["by"], "first");
    if (!m.contains("matrix")) continue;
    for (const json& id : m["matrix"]) add(id, "kills");
    if (m["matrix"].size() == 1) add(m["matrix"][0], "alone");
  }
  return ops;
}

std::string obligations_text(const json& obligations, bool matrix) {
  std::string text =
      matrix ? "\nobligation            first   kills   alone\n" : "\nobligation            first to kill\n";
  for (const auto& [op, list] : obligations.items())
    for (const auto& [id, n] : list.items()) {
      if (matrix)
        text += fmt::format("{:<20}  {:>5}   {:>5}   {:>5}{}\n", id, n["first"].dump(), n["kills"].dump(),
                            n["alone"].dump(), remark(n).empty() ? "" : "   " + remark(n));
      else if (n["first"] != 0) text += fmt::format("{:<20}  {:>13}\n", id, n["first"].dump());
    }
  return text;
}

std::string name_of(const json& m) {
  if (m.contains("mutant")) return m["mutant"].get<std::string>();
  const std::string part = m.value("part", "");
  return m["kernel"].get<std::string>() + (part.empty() ? "" : ", " + part) + " " + m["hash"].get<std::string>();
}

std::string fault_of(const json& m) {
  return m.contains("fault") ? m["fault"].get<std::string>()
                             : m["family"].get<std::string>() + ": " + m["description"].get<std::string>();
}

void write_mutants(const json& report, const std::string& summary, const std::filesystem::path& directory) {
  files::write(directory / "mutants.html", mutants_page(report, summary));
  files::write(directory / "junit.xml", junit_xml(suites(report)));
}

}  // namespace assay::falsify
