#include "falsify/mutation/study/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/files.hpp"
#include "falsify/engine/percentile.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/mutation/study/summary.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

/// Those of automatic mutants.
constexpr MutantStatus kStatuses[] = {MutantStatus::killed,   MutantStatus::equivalent, MutantStatus::survivor,
                                      MutantStatus::accepted, MutantStatus::unsound,    MutantStatus::unavailable};

json empty_counts() {
  json counts{{"mutants", 0}};
  for (const MutantStatus status : kStatuses) counts[std::string(name(status))] = 0;
  return counts;
}

void count(json& counts, const std::string& status) {
  counts["mutants"] = counts["mutants"].get<int>() + 1;
  counts[status] = counts[status].get<int>() + 1;
}

/// Totals all mutants, or the families that are held out or not.
json totals(const std::vector<json>& mutants, const auto& chosen) {
  json counts = empty_counts();
  std::vector<double> cases;
  int late = 0;
  for (const json& m : mutants) {
    if (!chosen(m)) continue;
    count(counts, m["status"]);
    if (status_of(m) != MutantStatus::killed) continue;
    cases.push_back(m["cases"].get<double>());
    late += m["phase"] == "attack";
  }
  counts.update({{"killed_in_attack", late}, {"median_cases", median(cases)}, {"p95_cases", percentile(cases, 0.95)}});
  return counts;
}

/// Counts by family of fault; families held out of all tuning are marked.
json by_family(const std::vector<json>& mutants) {
  json families = counts_by(mutants, "family");
  for (const json& m : mutants)
    if (m["held_out"].get<bool>()) families[m["family"].get<std::string>()]["held_out"] = true;
  return families;
}

std::string counts_text(const json& c) {
  return fmt::format("{:>7} {:>7} {:>10} {:>10}", c["mutants"].get<int>(), c["killed"].get<int>(),
                     c["equivalent"].get<int>(), c["survivor"].get<int>());
}

std::string group_text(std::string_view title, const json& groups) {
  std::size_t width = title.size();
  for (const auto& [name, counts] : groups.items())
    width = std::max(width, name.size() + (counts.contains("held_out") ? 11 : 0));
  std::string text = fmt::format("\n{:<{}}  mutants  killed equivalent  survivors{}\n", title, width,
                                 title == "kernel" ? "  generated  invalid" : "");
  for (const auto& [name, counts] : groups.items()) {
    text += fmt::format("{:<{}}  {}", name + (counts.contains("held_out") ? " (held out)" : ""), width,
                        counts_text(counts));
    if (counts.contains("generated"))
      text += fmt::format("  {:>9}  {:>7}", counts["generated"].dump(), counts["invalid"].dump());
    text += "\n";
  }
  return text;
}

std::string survivors_text(const json& report) {
  std::string text;
  for (const json& m : report["mutants"]) {
    using enum MutantStatus;
    const MutantStatus status = status_of(m);
    if (status == killed) continue;
    text += fmt::format("\n{:<11} {}  {} of {}\n            {}\n",
                        status == survivor  ? "SURVIVOR"
                        : status == unsound ? "UNSOUND"
                                            : name(status),
                        m["hash"].get<std::string>(), m["family"].get<std::string>(),
                        m["kernel"].get<std::string>() + (m["part"] == "" ? "" : ", " + m["part"].get<std::string>()),
                        m["description"].get<std::string>());
    if (status == equivalent) text += fmt::format("            the same bits in {} cases\n", m["compared"].dump());
    if (m.contains("late"))
      text += fmt::format("            calls that hung once, and not when made again: {}\n", m["late"].dump());
    if (status == survivor || status == accepted)
      text += fmt::format(
          "            other bits in {} of {} cases, and no obligation objects: {}\n"
          "            there its error reaches {:.3g} of the bound, the kernel's own {:.3g}\n",
          m["differs"].dump(), m["compared"].dump(), m["says"].get<std::string>(), m["worst"].get<double>(),
          m["worst_of_original"].get<double>());
    if (status == unsound && m.contains("by"))
      text += fmt::format("            the right kernel fails {} too: {}\n", m["by"].get<std::string>(),
                          m["says"].get<std::string>());
    if (m.contains("why")) text += fmt::format("            {}\n", m["why"].get<std::string>());
  }
  return text;
}

}  // namespace

json automatic_report(const Survey& survey, const Sample& sample, std::size_t screened_out, std::vector<json> mutants,
                      json settings, double seconds) {
  const auto any = [](const json&) { return true; };
  const auto held_out = [](const json& m) { return m["held_out"].get<bool>(); };
  json report{{"schema", kAutomaticSchema},    {"settings", std::move(settings)},
              {"device", survey.device},       {"on_processor", survey.on_processor},
              {"generated", sample.generated}, {"invalid", sample.invalid},
              {"screened_out", screened_out},  {"seconds", seconds}};
  report["totals"] = totals(mutants, any);
  report["totals_held_out"] = totals(mutants, held_out);
  report["operations"] = counts_by(mutants, "op");
  report["kernels"] = counts_by(mutants, "kernel");
  for (auto& [id, counts] : report["kernels"].items()) {
    const auto& [generated, invalid] = sample.by_kernel.at(id);
    counts["generated"] = generated, counts["invalid"] = invalid;
  }
  report["families"] = by_family(mutants);
  report["obligations"] = by_obligation(mutants);
  report["mutants"] = std::move(mutants);
  return report;
}

bool automatic_failed(const json& report) {
  return report["totals"]["survivor"] != 0 || report["totals"]["unsound"] != 0;
}

std::string automatic_table(const json& report) {
  std::string text = group_text("kernel", report["kernels"]) + group_text("family", report["families"]) +
                     obligations_text(report["obligations"], report["settings"].value("matrix", false)) +
                     survivors_text(report);
  return (text + "\n" + automatic_summary(report)).substr(1);
}

std::string automatic_summary(const json& report) {
  const json& t = report["totals"];
  const json& h = report["totals_held_out"];
  const auto score = [](const json& c) {
    const int wrong = c["killed"].get<int>() + c["survivor"].get<int>() + c["accepted"].get<int>();
    return wrong == 0 ? 100.0 : 100.0 * c["killed"].get<int>() / wrong;
  };
  std::string text = fmt::format(
      "{} mutants of {} generated ({} invalid ones passed over{}): {} killed ({} of them in the attack), "
      "{} equivalent as observed, {} survivors, {} accepted, {} unsound, {} unavailable in {:.1f} s\n",
      t["mutants"].dump(), report["generated"].dump(), report["invalid"].dump(),
      report["screened_out"] == 0 ? "" : ", " + report["screened_out"].dump() + " not screened", t["killed"].dump(),
      t["killed_in_attack"].dump(), t["equivalent"].dump(), t["survivor"].dump(), t["accepted"].dump(),
      t["unsound"].dump(), t["unavailable"].dump(), report["seconds"].get<double>());
  text += fmt::format(
      "{:.1f}% of those not equivalent are killed; held-out families: {:.1f}% of {}; cases to kill: median {}, "
      "95th percentile {}\n",
      score(t), score(h), h["killed"].get<int>() + h["survivor"].get<int>() + h["accepted"].get<int>(),
      t["median_cases"].dump(), t["p95_cases"].dump());
  return text;
}

void write_automatic(const json& report, const std::filesystem::path& directory) {
  files::write(directory / "automatic.json", report.dump(1) + "\n");
  write_mutants(report, automatic_summary(report), directory);
}

}  // namespace assay::falsify
