// The report as a table for people.
#include <fmt/format.h>

#include <algorithm>

#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/fields.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

std::string finding_text(const json& kernel, const json& o) {
  const json& x = o["counterexample"];
  const json& f = x["finding"];
  std::string text = fmt::format("\nFALSIFIED {}  {}  \"{}\"\n", kernel["kernel"].get<std::string>(),
                                 o["id"].get<std::string>(), claim_of(o));
  text += fmt::format("  case     {}\n", x["says"].get<std::string>());
  if (const std::string call = call_of(x); !call.empty()) text += fmt::format("  call     {}\n", call);
  if (const std::string element = element_of(f); !element.empty()) text += fmt::format("  element  {}\n", element);
  text += fmt::format("  {:<8} {}\n", f["kind"].get<std::string>(), f["message"].get<std::string>());
  if (const std::string strides = strides_of(kernel, x); !strides.empty())
    text += fmt::format("  strides  {}\n", strides);
  if (const std::string race = race_of(x); !race.empty()) text += fmt::format("  race     {}\n", race);
  if (const std::string values = inputs_of(x); !values.empty()) text += fmt::format("  inputs   {}\n", values);
  text += fmt::format("  suspect  {}\n", suspect_of(o));
  text += fmt::format("  found    case {} of the campaign, shrunk in {} runs; fails {}\n", x["number"].get<int>(),
                      x["shrink"]["tried"].get<int>(), x["reproduction"].get<std::string>());
  if (const std::string replay = replay_of(x); !replay.empty()) text += fmt::format("  replay   {}\n", replay);
  if (const std::string others = other_failed_obligations(kernel); !others.empty())
    text += fmt::format("  also fails: {}\n", others);
  return text;
}

/// Returns " (1 of 4 obligations not applicable, 2 not run)".
std::string left_out(int skipped, int not_run, std::size_t of) {
  if (skipped == 0 && not_run == 0) return {};
  if (skipped == 0 || not_run == 0)
    return fmt::format(" ({} of {} obligations {})", skipped + not_run, of, skipped > 0 ? "not applicable" : "not run");
  return fmt::format(" ({} of {} obligations not applicable, {} not run)", skipped, of, not_run);
}

/// Formats a passing kernel's error so that a value just below 1 is not rounded up to "1".
std::string below_one(double worst) {
  const std::string text = figure(worst);
  return text == "1" && worst < 1 ? "0.999" : text;
}

/// Returns the largest error of a kernel over its passed and falsified obligations; "-" if the failure is no distance.
std::string largest_error(const json& k) {
  double worst = 0;
  for (const json& o : k["obligations"])
    if (o["verdict"] == "passed" || o["verdict"] == "falsified") worst = std::max(worst, number_from(o["worst"]));
  return k["status"] == "falsified" && worst <= 1 ? "-" : below_one(worst);
}

}  // namespace

std::string table(const json& report) {
  std::size_t width = 6;
  for (const json& k : report["kernels"]) width = std::max(width, k["kernel"].get<std::string>().size());
  std::string text = fmt::format("{:<{}}  {:>6}  {:>9}  {:>9}  {:>7}  verdict\n", "kernel", width, "cases", "elements",
                                 "err/bound", "seconds");
  std::string findings;
  for (const json& k : report["kernels"]) {
    std::int64_t cases = 0, elements = 0;
    int skipped = 0, not_run = 0;
    std::int64_t refused = 0;
    for (const json& o : k["obligations"]) {
      cases += o["cases"].get<std::int64_t>();
      elements += o["elements"].get<std::int64_t>();
      refused += o["refused"].get<std::int64_t>();
      skipped += o["verdict"] == "not applicable", not_run += o["verdict"] == "not run";
      if (o["verdict"] == "mistrusted" && k["status"] != "falsified")
        findings += fmt::format("\nMISTRUSTED {}  {}: {}\n", k["kernel"].get<std::string>(), o["id"].get<std::string>(),
                                o["reason"].get<std::string>());
    }
    std::string verdict = k["status"].get<std::string>();
    const bool not_tried = verdict == "unavailable" || verdict == "refused" || verdict == "thin";
    const std::string note = not_tried ? shortfall_text(k) : "";
    if (!note.empty()) verdict += ": " + note;
    else verdict += left_out(skipped, not_run, k["obligations"].size());
    if (k["status"] != "unavailable" && refused > 0)
      verdict += fmt::format(" ({} of {} cases refused)", refused, cases);
    if (k.contains("floor_seconds"))
      verdict += fmt::format(" (floor after {:.1f} s)", k["floor_seconds"].get<double>());
    text +=
        fmt::format("{:<{}}  {:>6}  {:>9}  {:>9}  {:>7.1f}  {}\n", k["kernel"].get<std::string>(), width, cases,
                    short_count(static_cast<double>(elements)), largest_error(k), k["seconds"].get<double>(), verdict);
    if (const std::string why = refusal_text(k); note.empty() && !why.empty())
      text += fmt::format("  refused  {}\n", why);
  }
  for (const Judged& found : explained(report))
    if (found.obligation.contains("counterexample")) text += finding_text(found.kernel, found.obligation);
  text += findings;
  for (const json& id : report["never_evaluated"])
    text += fmt::format("\nNEVER EVALUATED {}: a clause that no run reaches proves nothing\n", id.get<std::string>());
  text += fmt::format("\n{}\n", totals_line(report));
  return text;
}

}  // namespace assay::falsify
