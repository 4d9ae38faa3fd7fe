// The HTML page about mutants: tables without a script, in the style of the report's page.
#include <fmt/format.h>

#include <algorithm>

#include "falsify/engine/reports/embedded.hpp"
#include "falsify/mutation/study/summary.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

constexpr std::string_view kStyle = R"(
.plain th, .plain td { padding: .34rem .7rem; vertical-align: top; }
.plain .words { text-align: left; white-space: normal; min-width: 16rem; }
.plain .kills { text-align: center; color: var(--falsified); }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--soft); }
section > p { color: var(--soft); margin: 0 0 .6rem; }
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

struct Column {
  std::string title;
  std::string_view style = "";  ///< CSS class of its cells
};

/// A table of text. The first column names the row.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void row(const std::vector<std::string>& cells) {
    rows_ += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i)
      rows_ += i == 0 ? fmt::format("<th scope=\"row\" class=\"id\">{}</th>", escaped(cells[i]))
                      : fmt::format("<td class=\"{}\">{}</td>", columns_[i].style, escaped(cells[i]));
    rows_ += "</tr>\n";
  }
  bool empty() const { return rows_.empty(); }
  std::string html() const {
    std::string head;
    for (const Column& c : columns_)
      head += fmt::format("<th scope=\"col\" class=\"{}\">{}</th>", c.style, escaped(c.title));
    return fmt::format(
        "<div class=\"box\"><table class=\"plain\"><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table></div>\n", head,
        rows_);
  }

 private:
  std::vector<Column> columns_;
  std::string rows_;
};

std::string section(std::string_view title, std::string_view note, const std::string& inside) {
  return fmt::format("<section><h2>{}</h2>{}{}</section>\n", escaped(title),
                     note.empty() ? "" : fmt::format("<p>{}</p>", escaped(note)), inside);
}

int number(const json& counts, const char* key) { return counts.value(key, 0); }

std::string groups(std::string_view title, const json& list) {
  bool generated = false;
  for (const json& counts : list) generated = generated || counts.contains("generated");
  std::vector<Column> columns{{std::string(title)}};
  if (generated) columns.insert(columns.end(), {{"generated"}, {"invalid"}});
  columns.insert(columns.end(), {{"run"},
                                 {"killed"},
                                 {"equivalent"},
                                 {"survived"},
                                 {"unavailable"},
                                 {"cases to kill: median"},
                                 {"95th percentile"}});
  Table table(columns);
  for (const auto& [name, c] : list.items()) {
    std::vector<std::string> cells{name};
    if (generated) cells.insert(cells.end(), {c["generated"].dump(), c["invalid"].dump()});
    const int survived = number(c, "survivor") + number(c, "accepted") + number(c, "survived") + number(c, "unsound");
    for (const int n :
         {number(c, "mutants"), number(c, "killed"), number(c, "equivalent"), survived, number(c, "unavailable")})
      cells.push_back(std::to_string(n));
    for (const char* key : {"median_cases", "p95_cases"})
      cells.push_back(number(c, "killed") == 0 ? "" : fmt::format("{:.0f}", c[key].get<double>()));
    table.row(cells);
  }
  return section(fmt::format("By {}", title), "", table.html());
}

std::string obligation_tables(const json& obligations, bool matrix) {
  Table table({{"obligation"}, {"check"}, {"first to kill"}, {"kills"}, {"kills alone"}, {"", "words"}});
  for (const auto& [op, list] : obligations.items())
    for (const auto& [id, n] : list.items()) {
      const auto if_tried = [&](const char* key) { return matrix ? n[key].dump() : std::string(); };
      const std::string remark = !matrix           ? ""
                                 : n["kills"] == 0 ? "kills nothing here"
                                 : n["alone"] == 0 ? "kills nothing alone: candidate for removal"
                                                   : "";
      table.row({id, n["by"].get<std::string>(), n["first"].dump(), if_tried("kills"), if_tried("alone"), remark});
    }
  return section("By obligation",
                 matrix ? "Every obligation was tried on each killed mutant."
                        : "Which was the first to kill. With --matrix every obligation is tried on each mutant.",
                 table.html());
}

std::string survivors(const std::vector<json>& mutants) {
  Table table({{"mutant"}, {"verdict"}, {"fault", "words"}, {"difference", "words"}});
  for (const json& m : mutants) {
    const MutantStatus status = status_of(m);
    if (status == MutantStatus::killed || status == MutantStatus::unavailable) continue;
    std::string says;
    if (status == MutantStatus::equivalent) says = fmt::format("the same bits in {} cases", m["compared"].get<int>());
    else if (m.contains("differs"))
      says = fmt::format(
          "other bits in {} of {} cases: {}; there its error reaches {:.3g} of the bound, the kernel's own {:.3g}",
          m["differs"].get<int>(), m["compared"].get<int>(), m.value("says", ""), m["worst"].get<double>(),
          m["worst_of_original"].get<double>());
    else says = m.value("says", "no obligation objected");
    if (m.contains("why")) says += "; " + m["why"].get<std::string>();
    table.row({name_of(m), std::string(name(status)), fault_of(m), says});
  }
  return section("Survivors", "", table.empty() ? "<p>None.</p>" : table.html());
}

/// Makes one grid per operation: mutants down, obligations across.
std::string kill_matrix(const std::vector<json>& mutants, const json& obligations) {
  std::string html;
  for (const auto& [op, list] : obligations.items()) {
    std::vector<Column> columns{{op}};
    for (const auto& [id, n] : list.items()) columns.push_back({id, "kills"});
    Table table(columns);
    for (const json& m : mutants) {
      if (m["op"] != op || !m.contains("matrix")) continue;
      std::vector<std::string> cells{name_of(m)};
      for (const auto& [id, n] : list.items())
        cells.emplace_back(std::ranges::find(m["matrix"], json(id)) != m["matrix"].end() ? "●" : "");
      table.row(cells);
    }
    if (!table.empty()) html += fmt::format("<details><summary>{}</summary>{}</details>\n", escaped(op), table.html());
  }
  return section("Kill matrix", "A dot where the obligation falsifies the mutant.", html);
}

std::string killed_by_one(const std::vector<json>& mutants) {
  Table table({{"mutant"}, {"only killed by"}, {"fault", "words"}});
  for (const json& m : mutants)
    if (m.contains("matrix") && m["matrix"].size() == 1)
      table.row({name_of(m), m["matrix"][0].get<std::string>(), fault_of(m)});
  return section("Killed by one obligation alone", "", table.empty() ? "<p>None.</p>" : table.html());
}

std::string all_mutants(const std::vector<json>& mutants) {
  Table table({{"mutant"}, {"verdict"}, {"by"}, {"cases"}, {"fault", "words"}});
  for (const json& m : mutants)
    table.row({name_of(m), m["status"].get<std::string>(), m.value("by", ""),
               m.contains("cases") ? m["cases"].dump() : std::string(), fault_of(m)});
  return section("All mutants", "",
                 fmt::format("<details><summary>{} mutants</summary>{}</details>", mutants.size(), table.html()));
}

}  // namespace

std::string mutants_page(const json& report, const std::string& summary) {
  const auto mutants = report["mutants"].get<std::vector<json>>();
  const bool matrix = std::ranges::any_of(mutants, [](const json& m) { return m.contains("matrix"); });
  std::string body = groups("operation", report["operations"]);
  if (report.contains("kernels")) body += groups("kernel", report["kernels"]);
  body += survivors(mutants) + obligation_tables(report["obligations"], matrix);
  if (matrix) body += killed_by_one(mutants) + kill_matrix(mutants, report["obligations"]);
  body += all_mutants(mutants);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>Assay: mutants</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<header><h1>Mutants</h1><p "
      "id=\"summary\">{}</p></header>\n"
      "<main>\n{}</main>\n</body>\n</html>\n",
      embedded::page_css, kStyle, escaped(summary), body);
}

}  // namespace assay::falsify
