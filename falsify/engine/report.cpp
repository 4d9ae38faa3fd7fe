#include "falsify/engine/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "core/files.hpp"
#include "falsify/engine/admit.hpp"
#include "falsify/engine/arena.hpp"
#include "falsify/engine/reports/fields.hpp"
#include "falsify/engine/reports/formats.hpp"
#include "falsify/engine/reports/source_location.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

/// Formats three digits; a value above the limit of 1 stays above 1.
std::string cell_text(double x) {
  const std::string text = fmt::format("{:.3g}", x);
  return text == "1" && x > 1 ? "1.001" : text;
}

/// Stores cells as one line of text per row: short, and readable like the output.
json errors_json(const ErrorMap& map) {
  json cells = json::array();
  for (Index i = 0; i < map.cell_rows(); ++i) {
    std::string row;
    for (Index j = 0; j < map.cell_columns(); ++j)
      row +=
          fmt::format("{}{}", j ? " " : "", cell_text(map.cells[static_cast<std::size_t>(i * map.cell_columns() + j)]));
    cells.push_back(row);
  }
  return {{"tensor", map.tensor},
          {"rows", map.rows},
          {"columns", map.columns},
          {"row_step", map.row_step},
          {"column_step", map.column_step},
          {"relative", map.relative},
          {"cells", cells}};
}

json call_json(const OpDescriptor& op, const FailedCall& call) {
  return {{"number", call.number},
          {"of", call.of},
          {"case", to_json(op, call.call)},
          {"relation", call.relation},
          {"alone", call.alone}};
}

json finding_json(const OpDescriptor& op, const Finding& f) {
  json j{{"kind", name(f.kind)}, {"message", f.message}};
  if (!f.tensor.empty()) {
    json index = json::array();
    for (int axis = 0; axis < f.index.rank(); ++axis) index.push_back(f.index[axis]);
    j.update({{"tensor", f.tensor},
              {"index", index},
              {"got", number(f.got)},
              {"want", number(f.want)},
              {"bound", number(f.bound)}});
  }
  for (const Integers& i : f.integers) j["integers"][i.tensor] = {{"count", i.count}, {"values", i.values}};
  if (f.errors) j["errors"] = errors_json(*f.errors);
  if (f.call) j["call"] = call_json(op, *f.call);
  return j;
}

/// Describes the call made before the case, as the kernel took it; empty if there is none.
std::string before(const OpDescriptor& op, const Kernel& kernel, const Case& c) {
  if (c.prelude.empty()) return {};
  const Case first = admitted(op, kernel, prelude_of(op, c));
  return fmt::format("after a call with {}", describe_extents(op, first.dims, first.params));
}

std::string says(const OpDescriptor& op, const Kernel& kernel, Case c) {
  const std::string prelude = before(op, kernel, c);
  c.prelude.clear();
  return describe(op, c) + (prelude.empty() ? "" : ", ") + prelude;
}

/// Returns the strides of the tensors that are not dense in this case, by repeating its layout. On Vulkan the device
/// decides the distance of far rows.
json strides_json(const OpDescriptor& op, const Kernel& kernel, const Case& c) {
  json strides = json::object();
  const bool far = c.layout == Layout::far_rows, on_gpu = !traits(kernel.backend).host;
  if (c.layout == Layout::tight || c.layout == Layout::offset || (far && traits(kernel.backend).bounded_buffers))
    return strides;
  try {
    constexpr std::size_t kRoom = std::size_t{180} << 30;
    Arena arena(Worker::kArenaBytes, kRoom);
    const Problem problem = make_problem(op, c, kernel.arithmetic, kernel.storage);
    std::optional<std::size_t> only_far;
    if (far && on_gpu) only_far = Random(derive(c.seed, "far tensor")).below(problem.values.size());
    const Stage stage(arena, problem, c, Poison::finite, {}, only_far);
    for (std::size_t t = 0; t < op.tensors.size(); ++t) {
      const Placed& placed = stage.tensors()[t];
      if (placed.shape.size() == 0 || View<const float>(nullptr, placed.shape, placed.strides).contiguous()) continue;
      for (int axis = 0; axis < placed.shape.rank(); ++axis)
        strides[std::string(op.tensors[t].name)].push_back(placed.strides[axis]);
    }
  } catch (const Unavailable&) {
  } catch (const std::bad_alloc&) {}
  return strides;
}

json counterexample_json(const OpDescriptor& op, const KernelResult& result, const ObligationResult& o) {
  const Counterexample& x = *o.counterexample;
  const Kernel& kernel = *result.kernel;
  const Case& called = x.finding.call ? x.finding.call->call : x.smallest;
  json j{{"schema", kReplaySchema},
         {"op", op.name},
         {"kernel", result.kernel->id},
         {"obligation", o.info->id},
         {"case", to_json(op, x.smallest)},
         {"says", says(op, kernel, called)},
         {"drawn", to_json(op, x.first)},
         {"drawn_says", says(op, kernel, x.first)},
         {"finding", finding_json(op, x.finding)},
         {"reproduction", x.reproduction},
         {"number", x.number},
         {"shrink", {{"tried", x.shrink_tried}, {"seconds", x.shrink_seconds}, {"complete", x.shrink_complete}}}};
  if (const std::string prelude = before(op, kernel, x.smallest); !prelude.empty() && x.fails_again)
    j["reproduction"] = "in a fresh process " + prelude;
  if (json strides = strides_json(op, kernel, called); !strides.empty()) j["finding"]["strides"] = std::move(strides);
  if (x.finding.call) j["made_of"] = says(op, kernel, x.smallest);
  if (x.race)
    j["race"] = {{"order", std::to_string(x.race->order)},
                 {"other", std::to_string(x.race->other)},
                 {"other_gives", x.race->other_gives}};
  if (x.first_errors && x.first != x.smallest) j["drawn_errors"] = errors_json(*x.first_errors);
  return j;
}

std::string status_of(const KernelResult& result) {
  const auto any = [&](Verdict v) {
    return std::ranges::any_of(result.obligations, [v](const auto& o) { return o.verdict == v; });
  };
  for (Verdict v : {Verdict::falsified, Verdict::unavailable, Verdict::mistrusted})
    if (any(v)) return std::string(name(v));
  if (result.shortfall.kind == Shortfall::Kind::refused || !any(Verdict::passed)) return "refused";
  return result.shortfall.kind == Shortfall::Kind::thin ? "thin" : "passed";
}

std::string file_name(std::string_view kernel, std::string_view obligation) {
  std::string text = fmt::format("{}.{}.json", kernel, obligation);
  // Names of foreign libraries and symbols may contain any character.
  std::ranges::replace_if(
      text, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '_' && c != '-'; }, '-');
  return text;
}

/// Returns the clauses of each operation that ran at least once, with the sum of their evaluations.
json clause_totals(const std::vector<json>& kernels) {
  std::map<std::string, std::map<std::string, std::uint64_t>> sums;
  for (const json& k : kernels)
    for (const json& c : k["status"] == "refused" ? json::array() : k["clauses"])
      sums[k["op"].get<std::string>()][c["id"].get<std::string>()] += c["evaluated"].get<std::uint64_t>();
  json totals = json::array();
  for (const auto& [op, clauses] : sums) {
    const bool ran = std::ranges::any_of(clauses, [](const auto& c) { return c.second > 0; });
    for (const auto& [id, count] : clauses)
      if (ran) totals.push_back({{"op", op}, {"id", id}, {"evaluated", count}});
  }
  return totals;
}

/// Returns the operations with a kernel for which all clauses could run: the check of clauses neither failed early nor
/// was skipped.
std::set<std::string> judged_by_clause(const std::vector<json>& kernels) {
  std::set<std::string> ops;
  for (const json& k : kernels) {
    const auto cut = [](const json& o) {
      return o.value("by", "") == "postconditions" &&
             (o.value("verdict", "") == "falsified" || o.value("verdict", "") == "not run");
    };
    if (std::ranges::none_of(k["obligations"], cut)) ops.insert(text_of(k, "op"));
  }
  return ops;
}

}  // namespace

json to_json(const OpDescriptor& op, const KernelResult& result) {
  const Kernel& kernel = *result.kernel;
  const SourceLocation place = find_source_location(kernel.source, kernel.id);
  json j{{"op", op.name},
         {"kernel", kernel.id},
         {"backend", name(kernel.backend)},
         {"device", result.device},
         {"source", place.file},
         {"line", place.line},
         {"arithmetic", to_string(kernel.arithmetic)},
         {"status", status_of(result)},
         {"seconds", result.seconds},
         {"obligations", json::array()},
         {"clauses", json::array()}};
  if (!kernel.fault.empty()) j["fault"] = kernel.fault;
  j["depth"] = result.depth;
  if (result.floor_seconds > 0) j["floor_seconds"] = result.floor_seconds;
  using enum Shortfall::Kind;
  if ((result.shortfall.kind == thin && j["status"] == "thin") ||
      (result.shortfall.kind == refused && j["status"] == "refused"))
    j["reason"] = result.shortfall.reason;
  for (const ObligationResult& o : result.obligations) {
    json r{{"id", o.info->id},
           {"claim", o.info->claim},
           {"by", o.info->by},
           {"if_fails", o.info->if_fails},
           {"verdict", name(o.verdict)},
           {"cases", o.cases},
           {"refused", o.refused},
           {"elements", o.elements},
           {"nonzero", o.nonzero},
           {"worst", number(o.worst)},
           {"typical", number(o.typical)},
           {"seconds", o.seconds}};
    if (!o.reason.empty()) r["reason"] = o.reason;
    if (o.counterexample) r["counterexample"] = counterexample_json(op, result, o);
    j["obligations"].push_back(std::move(r));
  }
  if (const ObligationResult* best = result.explanation()) {
    j["explanation"] = {{"obligation", best->info->id}, {"also_fails", json::array()}};
    for (const ObligationResult& o : result.obligations)
      if (o.counterexample && &o != best) j["explanation"]["also_fails"].push_back(o.info->id);
  }
  for (std::size_t c = 0; c < op.clauses.size() && c < result.clause_counts.size(); ++c)
    j["clauses"].push_back({{"id", op.clauses[c].id}, {"evaluated", result.clause_counts[c]}});
  return j;
}

json make_report(std::vector<json> kernels, const json& settings, double seconds) {
  std::ranges::sort(kernels, {}, [](const json& k) { return k["kernel"].get<std::string>(); });
  json totals{
      {"kernels", kernels.size()}, {"cases", 0},  {"elements", 0}, {"falsified", 0}, {"mistrusted", 0}, {"refused", 0},
      {"unavailable", 0},          {"passed", 0}, {"thin", 0},     {"worst", 0.0}};
  for (const json& k : kernels) {
    totals[k["status"].get<std::string>()] = totals[k["status"].get<std::string>()].get<int>() + 1;
    for (const json& o : k["obligations"]) {
      totals["cases"] = totals["cases"].get<std::int64_t>() + o["cases"].get<std::int64_t>();
      totals["elements"] = totals["elements"].get<std::int64_t>() + o["elements"].get<std::int64_t>();
      if (o["verdict"] == "passed" && o["worst"].is_number())
        totals["worst"] = std::max(totals["worst"].get<double>(), o["worst"].get<double>());
    }
  }
  const json clauses = clause_totals(kernels);
  json never = json::array();
  // A run of a single obligation may not reach the ensures clauses; in a shard, other shards may reach the clauses that
  // it does not.
  const bool whole = settings.value("obligation", "").empty() && settings.value("shard", "").empty();
  const std::set<std::string> judged = judged_by_clause(kernels);
  for (const json& c : clauses)
    if (whole && c["evaluated"] == 0 && judged.contains(text_of(c, "op"))) never.push_back(c["id"]);
  json report{{"schema", kReportSchema}, {"version", ASSAY_VERSION}, {"settings", settings},     {"seconds", seconds},
              {"totals", totals},        {"clauses", clauses},       {"never_evaluated", never}, {"kernels", kernels}};
  report["exit_code"] = report_failed(report) ? 1 : totals["thin"] != 0 ? 4 : 0;
  return report;
}

bool report_failed(const json& report) {
  return report["totals"]["falsified"] != 0 || report["totals"]["mistrusted"] != 0 ||
         !report["never_evaluated"].empty();
}

void expect_writable(const std::filesystem::path& directory) {
  const std::filesystem::path probe = directory / ".assay";
  files::write(probe, "");
  std::error_code error;
  std::filesystem::remove(probe, error);
}

void write_replays(json& report, const std::filesystem::path& directory) {
  for (json& k : report["kernels"])
    for (json& o : k["obligations"]) {
      if (!o.contains("counterexample")) continue;
      const auto path = directory / file_name(k["kernel"].get<std::string>(), o["id"].get<std::string>());
      json replay = o["counterexample"];
      replay.erase("drawn_errors");  // pictures are for reports only
      replay["finding"].erase("errors");
      files::write(path, replay.dump(2) + "\n");
      o["counterexample"]["file"] = path.string();
    }
}

void write_report(json& report, const std::filesystem::path& directory) {
  write_replays(report, directory / "replay");
  files::write(directory / "report.json", report.dump(1) + "\n");
  files::write(directory / "junit.xml", junit_xml(report));
  files::write(directory / "assay.sarif", sarif(report));
  files::write(directory / "report.html", html_page(report));
}

}  // namespace assay::falsify
