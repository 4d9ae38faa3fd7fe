// SARIF 2.1.0 (OASIS), as GitHub's code scanning reads it.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "falsify/engine/reports/fields.hpp"
#include "falsify/engine/reports/formats.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

json message(const std::string& text) { return {{"text", text}}; }

/// Returns a URI reference with all reserved characters escaped.
std::string uri(std::string_view path) {
  std::string out;
  for (unsigned char c : path) {
    const bool plain =
        std::isalnum(c) != 0 || std::string_view("/-._~").find(static_cast<char>(c)) != std::string_view::npos;
    out += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return out;
}

json location(const json& kernel) {
  const std::string source = text_of(kernel, "source");
  json artifact{{"uri", source.starts_with('/') ? "file://" + uri(source) : uri(source)}};
  if (!source.starts_with('/')) artifact["uriBaseId"] = "SRCROOT";
  return {{"physicalLocation", {{"artifactLocation", artifact}, {"region", {{"startLine", kernel["line"]}}}}},
          {"logicalLocations", {{{"fullyQualifiedName", kernel["kernel"]}, {"kind", "function"}}}}};
}

/// Returns the obligations by id; no two operations share an id.
std::map<std::string, json> rules(const json& report) {
  std::map<std::string, json> rules;
  for (const json& k : report["kernels"])
    for (const json& o : k["obligations"])
      rules.try_emplace(text_of(o, "id"),
                        json{{"id", o["id"]},
                             {"shortDescription", message(text_of(o, "claim"))},
                             {"fullDescription", message(text_of(k, "op") + ": " + text_of(o, "claim"))},
                             {"help", message("If it fails, suspect: " + text_of(o, "if_fails"))},
                             {"defaultConfiguration", {{"level", "error"}}},
                             {"properties", {{"tags", {k["op"], o["by"]}}, {"precision", "very-high"}}}});
  return rules;
}

json result(const Judged& found, const char* level, std::size_t rule) {
  const json& o = found.obligation;
  const std::string kernel = text_of(found.kernel, "kernel"), id = text_of(o, "id");
  std::string text = fmt::format("{} is {}: {}", kernel, text_of(o, "verdict"), result_text(o));
  json properties{{"kernel", kernel}, {"backend", found.kernel["backend"]}};
  if (o.contains("counterexample")) {
    const json& x = o["counterexample"];
    if (!inputs_of(x).empty()) text += "\nInputs: " + inputs_of(x);
    if (!race_of(x).empty()) text += "\nRace: " + race_of(x);
    if (!other_failed_obligations(found.kernel).empty())
      text += "\nAlso fails: " + other_failed_obligations(found.kernel);
    if (!replay_of(x).empty()) text += "\nReplay: " + replay_of(x);
    properties["case"] = x["case"];
  }
  const std::string print = kernel + " " + id;  // independent of the case: the same kernel fails the same obligation
  return {{"ruleId", id},
          {"ruleIndex", rule},
          {"level", level},
          {"message", message(text)},
          {"locations", {location(found.kernel)}},
          {"partialFingerprints", {{"kernelObligation/v1", print}, {"primaryLocationLineHash", print}}},
          {"properties", properties}};
}

/// Lists kernels without a verdict, skipped obligations, and clauses that were never evaluated.
json notifications(const json& report) {
  json list = json::array();
  for (const json& k : report["kernels"]) {
    const bool thin = k["status"] == "thin";
    const auto not_run = [](const json& o) { return o["verdict"] == "not run"; };
    if (const auto left = std::ranges::count_if(k["obligations"], not_run); left > 0)
      list.push_back(
          {{"level", "note"},
           {"message", message(fmt::format("of {} {} of {} obligations were not run: {}", text_of(k, "kernel"), left,
                                           k["obligations"].size(),
                                           text_of(*std::ranges::find_if(k["obligations"], not_run), "reason")))}});
    if (!thin && k["status"] != "unavailable" && k["status"] != "refused") continue;
    list.push_back({{"level", thin ? "warning" : "note"},
                    {"message", message(fmt::format("{} was {} ({}): {}", text_of(k, "kernel"),
                                                    thin ? "tried too little" : "not tried", text_of(k, "status"),
                                                    shortfall_text(k)))}});
  }
  for (const json& id : report["never_evaluated"])
    list.push_back({{"level", "error"},
                    {"message", message(id.get<std::string>() +
                                        " was never evaluated: a clause that no run reaches proves nothing")}});
  return list;
}

json invocation(const json& report) {
  return {{"executionSuccessful", true},
          {"exitCode", report["exit_code"]},
          {"exitCodeDescription", report["exit_code"] == 0   ? "nothing falsified"
                                  : report["exit_code"] == 1 ? "falsified"
                                  : report["exit_code"] == 4 ? "something was tried too little to say that it passed"
                                                             : "something that was asked for is unavailable"},
          {"toolExecutionNotifications", notifications(report)}};
}

}  // namespace

std::string sarif(const json& report) {
  std::map<std::string, std::size_t> index;
  json driver{{"name", "assay"}, {"version", report["version"]}, {"rules", json::array()}};
  for (auto& [id, rule] : rules(report)) {
    index.emplace(id, index.size());
    driver["rules"].push_back(rule);
  }
  json results = json::array();
  const auto add = [&](const std::vector<Judged>& list, const char* level) {
    for (const Judged& found : list) results.push_back(result(found, level, index.at(text_of(found.obligation, "id"))));
  };
  add(explained(report), "error");
  add(judged(report, "mistrusted"), "warning");
  const json run{{"tool", {{"driver", driver}}},
                 {"invocations", {invocation(report)}},
                 {"originalUriBaseIds", {{"SRCROOT", {{"description", message("The top of the repository.")}}}}},
                 {"columnKind", "unicodeCodePoints"},
                 {"results", results},
                 {"properties", {{"totals", report["totals"]}, {"settings", report["settings"]}}}};
  const json log{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}, {"runs", {run}}};
  return log.dump(1) + "\n";
}

}  // namespace assay::falsify
