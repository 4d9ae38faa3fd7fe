// GitHub output of a run: annotations at files, and a step summary.
#include <fmt/format.h>

#include <map>

#include "falsify/engine/reports/fields.hpp"
#include "falsify/engine/reports/formats.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

constexpr std::size_t kShown = 10;       // annotations of a level that GitHub shows of one step
constexpr std::size_t kTableRows = 100;  // findings in the summary, which GitHub cuts at 1 MiB

/// Escapes the text of a workflow command; with `property` also commas and colons, which are special in a property's
/// value.
std::string command_escape(std::string_view text, bool property) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '%': out += "%25"; break;
      case '\r': out += "%0D"; break;
      case '\n': out += "%0A"; break;
      case ':': out += property ? "%3A" : ":"; break;
      case ',': out += property ? "%2C" : ","; break;
      default: out += c;
    }
  }
  return out;
}

std::vector<Judged> explained_or_judged(const json& report, std::string_view verdict) {
  return verdict == "falsified" ? explained(report) : judged(report, verdict);
}

std::string annotation(const char* command, const Judged& found) {
  const json& o = found.obligation;
  std::string text = fmt::format("{}: {}\nclaim: {}\nsuspect: {}", text_of(found.kernel, "kernel"), result_text(o),
                                 claim_of(o), suspect_of(o));
  if (o.contains("counterexample") && !replay_of(o["counterexample"]).empty())
    text += "\nreplay: " + replay_of(o["counterexample"]);
  if (!other_failed_obligations(found.kernel).empty() && o.contains("counterexample"))
    text += "\nalso fails: " + other_failed_obligations(found.kernel);
  const std::string title = fmt::format("{} {}", text_of(o, "verdict"), text_of(o, "id"));
  return fmt::format("::{} file={},line={},title={}::{}\n", command,
                     command_escape(text_of(found.kernel, "source"), true), found.kernel["line"].get<int>(),
                     command_escape(title, true), command_escape(text, false));
}

/// Returns a cell of a Markdown table, with line ends, markup and HTML escaped.
std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\n' || c == '\r') out += ' ';
    else if (c == '<') out += "&lt;";
    else if (c == '&') out += "&amp;";
    else if (std::string_view("|`*_[]\\~").find(c) != std::string_view::npos) out += std::string("\\") + c;
    else out += c;
  }
  return out;
}

std::string findings_table(const json& report, const char* verdict) {
  const std::vector<Judged> found = explained_or_judged(report, verdict);
  if (found.empty()) return {};
  std::string text =
      fmt::format("\n### {} {}\n\n| kernel | obligation | what | suspect | replay |\n| --- | --- | --- | --- | --- |\n",
                  found.size(), verdict);
  for (std::size_t i = 0; i < std::min(found.size(), kTableRows); ++i) {
    const auto& [k, o] = found[i];
    text += fmt::format("| {} | {}: {} | {} | {} | {} |\n", cell(text_of(k, "kernel")), cell(text_of(o, "id")),
                        cell(claim_of(o)), cell(result_text(o)), cell(suspect_of(o)),
                        o.contains("counterexample") ? cell(replay_of(o["counterexample"])) : "");
  }
  if (found.size() > kTableRows)
    text += fmt::format("\nand {} more, which the report holds.\n", found.size() - kTableRows);
  return text;
}

/// Tabulates the kernels of each operation by status.
std::string operations_table(const json& report) {
  std::map<std::string, std::map<std::string, int>> counts;
  for (const json& k : report["kernels"]) ++counts[text_of(k, "op")][text_of(k, "status")];
  std::string text =
      "\n<details><summary>Operations</summary>\n\n| operation | passed | falsified | mistrusted | thin | refused | "
      "unavailable |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (auto& [op, by] : counts)
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", cell(op), by["passed"], by["falsified"],
                        by["mistrusted"], by["thin"], by["refused"], by["unavailable"]);
  return text + "\n</details>\n";
}

}  // namespace

std::string annotations(const json& report) {
  std::string text;
  for (const auto& [verdict, command] : {std::pair{"falsified", "error"}, std::pair{"mistrusted", "warning"}}) {
    const std::vector<Judged> found = explained_or_judged(report, verdict);
    for (std::size_t i = 0; i < std::min(found.size(), kShown); ++i) text += annotation(command, found[i]);
  }
  std::size_t shown = 0;
  for (const json& k : report["kernels"])
    if (k["status"] == "thin" && shown++ < kShown)
      text += fmt::format("::warning file={},line={},title=thin::{}\n", command_escape(text_of(k, "source"), true),
                          k["line"].get<int>(),
                          command_escape(fmt::format("{}: {}", text_of(k, "kernel"), shortfall_text(k)), false));
  return text;
}

std::string step_summary(const json& report) {
  std::string text = fmt::format("## Assay: {}\n\n{}\n", report["exit_code"] == 0 ? "nothing falsified" : "not passed",
                                 cell(totals_line(report)));
  for (const char* verdict : {"falsified", "mistrusted"}) text += findings_table(report, verdict);
  for (const json& k : report["kernels"])
    if (k["status"] == "thin")
      text += fmt::format("\n**Thin:** {}: {}\n", cell(text_of(k, "kernel")), cell(shortfall_text(k)));
  for (const json& id : report["never_evaluated"])
    text += fmt::format("\n**Never evaluated:** {}. A clause that no run reaches proves nothing.\n",
                        cell(id.get<std::string>()));
  return text + operations_table(report);
}

}  // namespace assay::falsify
