#include "falsify/engine/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/files.hpp"
#include "falsify/engine/admit.hpp"
#include "falsify/engine/arena.hpp"
#include "falsify/engine/reports/fields.hpp"
#include "falsify/engine/reports/formats.hpp"
#include "falsify/engine/reports/source_location.hpp"
#include "falsify/engine/trial.hpp"
#include "runtime/limits.hpp"

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

/// Returns the expressions of a shape in a contract, "m" and "h * d" of "[m, h * d]".
std::vector<std::string_view> axes_of(std::string_view shape) {
  std::vector<std::string_view> axes;
  if (shape.size() <= 2) return axes;
  shape = shape.substr(1, shape.size() - 2);
  int depth = 0;
  for (std::size_t i = 0, begin = 0; i <= shape.size(); ++i) {
    if (i < shape.size()) depth += shape[i] == '(' ? 1 : shape[i] == ')' ? -1 : 0;
    if (i < shape.size() && (shape[i] != ',' || depth > 0)) continue;
    axes.push_back(shape.substr(begin, i - begin));
    begin = i + 2;  // behind ", "
  }
  return axes;
}

/// Returns the values of an input at the element: an axis that the output has too is held at the element's index, all
/// others run. Lists at most kShown values.
json values_at(const TensorInfo& input, const TensorInfo& output, const Problem& problem, int t, const Shape& element) {
  constexpr std::size_t kShown = 8;
  const std::vector<std::string_view> axes = axes_of(input.shape_text), outer = axes_of(output.shape_text);
  const Shape shape = problem.shape(t);
  json index = json::array(), values = json::array();
  std::vector<Index> held;
  Index count = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto same = std::ranges::find(outer, axes[static_cast<std::size_t>(axis)]);
    held.push_back(same == outer.end() ? -1 : element[static_cast<int>(same - outer.begin())]);
    if (held.back() < 0) count *= shape[axis], index.push_back(nullptr);
    else index.push_back(held.back());
  }
  for (Index n = 0; n < count && values.size() < kShown; ++n) {
    Index place = 0, rest = n, stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const Index there =
          held[static_cast<std::size_t>(axis)] < 0 ? rest % shape[axis] : held[static_cast<std::size_t>(axis)];
      if (held[static_cast<std::size_t>(axis)] < 0) rest /= shape[axis];
      place += there * stride;
      stride *= shape[axis];
    }
    values.push_back(
        number(static_cast<double>(problem.values[static_cast<std::size_t>(t)][static_cast<std::size_t>(place)])));
  }
  return {{"index", index}, {"count", count}, {"values", values}};
}

/// Returns the inputs of real numbers at the element that failed, by making the values of its case again. Empty if the
/// report shows them all, if the check made another call than the case's, or if that many values take long.
json inputs_at_element(const OpDescriptor& op, const Kernel& kernel, const Case& c, const Finding& f) {
  constexpr Index kMost = Index{1} << 24;
  json at = json::object();
  const auto output = std::ranges::find(op.tensors, f.tensor, &TensorInfo::name);
  if (output == op.tensors.end() || f.call || !c.values.empty()) return at;
  const auto sum = [&](Index so_far, const TensorInfo& t) { return so_far + t.shape(c.dims).size(); };
  if (std::accumulate(op.tensors.begin(), op.tensors.end(), Index{0}, sum) > kMost) return at;
  const Shape shape = output->shape(c.dims);
  if (f.index.rank() != shape.rank()) return at;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (f.index[axis] >= shape[axis]) return at;
  const Problem problem = make_problem(op, c, kernel.arithmetic, kernel.storage);
  for (std::size_t t = 0; t < op.tensors.size(); ++t)
    if (const TensorInfo& input = op.tensors[t]; input.role != Role::out && is_floating(input.dtype))
      at[std::string(input.name)] = values_at(input, *output, problem, static_cast<int>(t), f.index);
  return at;
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
  if (json at = inputs_at_element(op, kernel, called, x.finding); !at.empty())
    j["finding"]["at_element"] = std::move(at);
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

/// Returns "a", "a and b" or "a, b and c", as contracts list tensors in claims.
std::string listed(const std::vector<std::string_view>& names) {
  if (names.size() < 2) return names.empty() ? "" : std::string(names.front());
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

/// Returns a claim about all outputs without those that the kernel does not give.
std::string claim_about(const OpDescriptor& op, const Kernel& kernel, std::string_view claim) {
  std::string text(claim);
  if (kernel.limits == nullptr || kernel.limits->absent.empty()) return text;
  std::vector<std::string_view> all, given;
  for (const int t : outputs_of(op)) {
    all.push_back(op.tensors[static_cast<std::size_t>(t)].name);
    if (kernel.limits->gives(t)) given.push_back(all.back());
  }
  const std::string every = "every element of ", from = every + listed(all) + " ";
  if (!given.empty() && text.starts_with(from)) text.replace(0, from.size(), every + listed(given) + " ");
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
           {"claim", claim_about(op, kernel, o.info->claim)},
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
