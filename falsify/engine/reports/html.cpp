// The HTML page: page.html with its style, its script and the report's figures inserted.
#include <algorithm>
#include <map>

#include "falsify/engine/reports/embedded.hpp"
#include "falsify/engine/reports/fields.hpp"
#include "falsify/engine/reports/formats.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

/// Byte budget for error maps of drawn cases, in addition to those of shrunk cases, so that the page stays small.
constexpr std::size_t kPictures = 800'000;

json counterexample(const json& kernel, const json& x, std::size_t& room) {
  const json& f = x["finding"];
  json out{{"case", x["says"]},
           {"drawn", x["drawn_says"]},
           {"kind", f["kind"]},
           {"message", f["message"]},
           {"fails", x["reproduction"]},
           {"number", x["number"]},
           {"tried", x["shrink"]["tried"]}};
  if (const std::string element = element_of(f); !element.empty())
    out.update(
        {{"element", element}, {"got", f["got"]}, {"want", f["want"]}, {"bound", f["bound"]}, {"index", f["index"]}});
  if (const std::string inputs = inputs_of(x); !inputs.empty()) out["inputs"] = inputs;
  if (const std::string call = call_of(x); !call.empty()) out["call"] = call;
  if (const std::string strides = strides_of(kernel, x); !strides.empty()) out["strides"] = strides;
  if (const std::string race = race_of(x); !race.empty()) out["race"] = race;
  if (const std::string replay = replay_of(x); !replay.empty()) out["replay"] = replay;
  const auto picture = [&](const char* key, const json& errors) {
    const std::size_t size = errors.dump().size();
    if (size > room) {
      out["left_out"] = true;
      return;
    }
    room -= size;
    out[key] = errors;
  };
  if (f.contains("errors")) picture("errors", f["errors"]);
  if (x.contains("drawn_errors")) picture("drawn_errors", x["drawn_errors"]);
  return out;
}

/// Returns a cell of the matrix: [verdict, cases, refused, elements, worst, seconds, reason, counterexample].
json cell(const json& kernel, const json& o, std::size_t& room) {
  json list{o["verdict"], o["cases"], o["refused"], o["elements"], o["worst"], o["seconds"], o.value("reason", "")};
  if (!o.contains("counterexample")) return list;
  json shown = counterexample(kernel, o["counterexample"], room);
  if (const std::string suspect = suspect_of(o); suspect != text_of(o, "if_fails")) shown["suspect"] = suspect;
  if (const std::string claim = claim_of(o); claim != text_of(o, "claim")) shown["claim"] = claim;
  list.push_back(std::move(shown));
  return list;
}

/// Returns the operations with their obligations, once each, and their kernels, whose cells are in the same order.
json operations(const json& report) {
  std::map<std::string, json> ops;
  std::size_t room = kPictures;
  for (const json& k : report["kernels"]) {
    json& op = ops.try_emplace(text_of(k, "op"),
                               json{{"op", k["op"]}, {"obligations", json::array()}, {"kernels", json::array()}})
                   .first->second;
    json kernel;
    for (const char* key : {"kernel", "backend", "device", "source", "line", "arithmetic", "status", "seconds", "fault",
                            "foreign", "explanation", "reason"})
      if (k.contains(key)) kernel[key] = k[key];
    json cells = json::object();
    for (const json& o : k["obligations"]) {
      json known{{"id", o["id"]}, {"claim", o["claim"]}, {"by", o["by"]}, {"suspect", o["if_fails"]}};
      if (std::ranges::find(op["obligations"], known) == op["obligations"].end()) op["obligations"].push_back(known);
      cells[text_of(o, "id")] = cell(k, o, room);
    }
    kernel["cells"] = std::move(cells);
    op["kernels"].push_back(std::move(kernel));
  }
  json list = json::array();
  for (auto& [name, op] : ops) list.push_back(std::move(op));
  return list;
}

/// Escapes JSON inside a <script>, so that nothing in it ends the element or begins a comment.
std::string for_script(const json& data) {
  std::string out;
  for (char c : data.dump()) {
    if (c == '<') out += "\\u003c";
    else out += c;
  }
  return out;
}

/// Replaces each {{name}} of the page once; inserted text is not expanded again.
std::string fill(std::string_view page, const std::map<std::string_view, std::string_view>& parts) {
  std::string out;
  for (std::size_t at = page.find("{{"); at != std::string_view::npos; at = page.find("{{")) {
    const std::size_t end = page.find("}}", at);
    out += page.substr(0, at);
    out += parts.at(page.substr(at + 2, end - at - 2));
    page.remove_prefix(end + 2);
  }
  return out + std::string(page);
}

}  // namespace

std::string html_page(const json& report) {
  json data{{"ops", operations(report)}, {"summary", totals_line(report)}};
  for (const char* key : {"version", "settings", "totals", "never_evaluated", "exit_code"}) data[key] = report[key];
  return fill(embedded::page_html,
              {{"style", embedded::page_css}, {"script", embedded::page_js}, {"data", for_script(data)}});
}

}  // namespace assay::falsify
