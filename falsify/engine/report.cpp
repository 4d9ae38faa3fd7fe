#include "falsify/engine/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "core/files.hpp"
#include "falsify/engine/admit.hpp"
#include "falsify/engine/arena.hpp"
#include "falsify/engine/reports/fields.hpp"
#include "falsify/engine/reports/formats.hpp"
#include "falsify/engine/reports/source_place.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

/// Three digits; what is above the limit of 1 stays above it.
std::string cell_text(double x) {
  const std::string text = fmt::format("{:.3g}", x);
  return text == "1" && x > 1 ? "1.001" : text;
}

/// Cells as one line of text per row, which reads like the output and is short.
json errors_json(const ErrorMap& map) {
  json cells = json::array();
  for (Index i = 0; i < map.cell_rows(); ++i) {
    std::string row;
    for (Index j = 0; j < map.cell_columns(); ++j)
      row += fmt::format("{}{}", j ? " " : "", cell_text(map.cells[static_cast<std::size_t>(i * map.cell_columns() + j)]));
    cells.push_back(row);
  }
  return {{"tensor", map.tensor},         {"rows", map.rows},         {"columns", map.columns}, {"row_step", map.row_step},
          {"column_step", map.column_step}, {"relative", map.relative}, {"cells", cells}};
}

json call_json(const OpDescriptor& op, const FailedCall& call) {
  return {{"number", call.number}, {"of", call.of}, {"case", to_json(op, call.call)}, {"relation", call.relation}, {"alone", call.alone}};
}

json finding_json(const OpDescriptor& op, const Finding& f) {
  json j{{"kind", name(f.kind)}, {"message", f.message}};
  if (!f.tensor.empty()) {
    json index = json::array();
    for (int axis = 0; axis < f.index.rank(); ++axis) index.push_back(f.index[axis]);
    j.update({{"tensor", f.tensor}, {"index", index}, {"got", number(f.got)}, {"want", number(f.want)},
              {"bound", number(f.bound)}});
  }
  for (const Integers& i : f.integers) j["integers"][i.tensor] = {{"count", i.count}, {"values", i.values}};
  if (f.errors) j["errors"] = errors_json(*f.errors);
  if (f.call) j["call"] = call_json(op, *f.call);
  return j;
}

/// The call made before the case, as the kernel took it; empty where there is none.
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

/// Of the tensors that are not dense in this case, which is laid out again as it was. On Vulkan the device decides how far rows lie.
json strides_json(const OpDescriptor& op, const Kernel& kernel, const Case& c) {
  json strides = json::object();
  const bool far = c.layout == Layout::far_rows, on_gpu = !traits(kernel.backend).host;
  if (c.layout == Layout::tight || c.layout == Layout::offset || (far && traits(kernel.backend).bounded_buffers)) return strides;
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
      for (int axis = 0; axis < placed.shape.rank(); ++axis) strides[std::string(op.tensors[t].name)].push_back(placed.strides[axis]);
    }
  } catch (const Unavailable&) {
  } catch (const std::bad_alloc&) {
  }
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
  if (const std::string prelude = before(op, kernel, x.smallest); !prelude.empty() && x.fails_again) j["reproduction"] = "in a fresh process " + prelude;
  if (json strides = strides_json(op, kernel, called); !strides.empty()) j["finding"]["strides"] = std::move(strides);
  if (x.finding.call) j["made_of"] = says(op, kernel, x.smallest);
  if (x.race)
    j["race"] = {{"order", std::to_string(x.race->order)}, {"other", std::to_string(x.race->other)}, {"other_gives", x.race->other_gives}};
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
  // Names of foreign libraries and symbols may hold anything.
  std::ranges::replace_if(text, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '_' && c != '-'; }, '-');
  return text;
}

/// Clauses of each operation that ran at least once, with the sum of their evaluations.
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

/// Operations with a kernel whose clauses were all within reach: the check of them neither failed before its end nor was left out.
std::set<std::string> judged_by_clause(const std::vector<json>& kernels) {
  std::set<std::string> ops;
  for (const json& k : kernels) {
    const auto cut = [](const json& o) { return o.value("by", "") == "postconditions" && (o.value("verdict", "") == "falsified" || o.value("verdict", "") == "not run"); };
    if (std::ranges::none_of(k["obligations"], cut)) ops.insert(text_of(k, "op"));
  }
  return ops;
}

}  // namespace

json to_json(const OpDescriptor& op, const KernelResult& result) {
  const Kernel& kernel = *result.kernel;
  const SourcePlace place = source_place(kernel.source, kernel.id);
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
  if ((result.shortfall.kind == thin && j["status"] == "thin") || (result.shortfall.kind == refused && j["status"] == "refused"))
    j["reason"] = result.shortfall.reason;
  for (const ObligationResult& o : result.obligations) {
    json r{{"id", o.info->id},       {"claim", o.info->claim}, {"by", o.info->by}, {"if_fails", o.info->if_fails},
           {"verdict", name(o.verdict)}, {"cases", o.cases},   {"refused", o.refused}, {"elements", o.elements},
           {"nonzero", o.nonzero},   {"worst", number(o.worst)}, {"typical", number(o.typical)}, {"seconds", o.seconds}};
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
  json totals{{"kernels", kernels.size()}, {"cases", 0}, {"elements", 0}, {"falsified", 0}, {"mistrusted", 0},
              {"refused", 0}, {"unavailable", 0}, {"passed", 0}, {"thin", 0}, {"worst", 0.0}};
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
  // A run of one obligation alone is not meant to reach the ensures clauses; of a shard's, others may reach those that it does not.
  const bool whole = settings.value("obligation", "").empty() && settings.value("shard", "").empty();
  const std::set<std::string> judged = judged_by_clause(kernels);
  for (const json& c : clauses)
    if (whole && c["evaluated"] == 0 && judged.contains(text_of(c, "op"))) never.push_back(c["id"]);
  json report{{"schema", kReportSchema}, {"version", ASSAY_VERSION}, {"settings", settings},
              {"seconds", seconds},      {"totals", totals},         {"clauses", clauses},
              {"never_evaluated", never}, {"kernels", kernels}};
  report["exit_code"] = report_failed(report) ? 1 : totals["thin"] != 0 ? 4 : 0;
  return report;
}

bool report_failed(const json& report) {
  return report["totals"]["falsified"] != 0 || report["totals"]["mistrusted"] != 0 || !report["never_evaluated"].empty();
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
      replay.erase("drawn_errors");  // pictures are for reports
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

void name_foreign(json& report, const plugin::Source& source) {
  json foreign{{"library", std::filesystem::absolute(source.library).lexically_normal().string()}, {"symbol", source.symbol}, {"declared", source.declared}};
  if (!source.shim_name.empty()) foreign.update({{"shim", source.shim}, {"shim_file", source.shim_name}});
  if (source.shader) foreign["shader"] = true;
  for (json& k : report["kernels"]) {
    k["foreign"] = foreign;
    for (json& o : k["obligations"])
      if (o.contains("counterexample")) o["counterexample"]["foreign"] = foreign;
  }
}

namespace {

/// A replay file as it stands, with messages that name it.
class ReplayFile {
 public:
  explicit ReplayFile(const std::filesystem::path& path) : path_(path.string()) {
    const std::string text = files::read(path, "name a file written by `assay falsify`");
    try {
      document_ = json::parse(text);
    } catch (const json::parse_error& e) {
      fail(fmt::format("is not JSON: {}", e.what()));
    }
  }

  [[noreturn]] void fail(const std::string& problem, const std::string& remedy = "name a file written by `assay falsify`") const {
    throw InputError(path_, problem, remedy);
  }
  std::string text(const char* key) const { return text(document_, key); }
  std::string text(const json& map, const char* key) const {
    if (!map.is_object() || !map.contains(key) || !map[key].is_string())
      fail(fmt::format("the key '{}' is missing or not text", key));
    return map[key].get<std::string>();
  }
  const json& document() const { return document_; }

  /// What the file says of a foreign kernel.
  plugin::Source foreign() const {
    const json& from = document_["foreign"];
    plugin::Source source{text(from, "library"), text(from, "symbol"), {}, {}, text(from, "declared")};
    if (from.contains("shim")) source.shim = text(from, "shim"), source.shim_name = text(from, "shim_file");
    source.shader = from.contains("shader");
    return source;
  }

 private:
  std::string path_;
  json document_;
};

}  // namespace

Replay read_replay(const std::filesystem::path& path, const std::string& library) {
  const ReplayFile file(path);
  if (file.text("schema") != kReplaySchema)
    file.fail(fmt::format("has the schema '{}'", file.text("schema")), fmt::format("this version reads {}", kReplaySchema));
  Replay replay;
  replay.op = &operation(file.text("op"));
  if (file.document().contains("foreign")) {
    plugin::Source source = file.foreign();
    if (!library.empty()) source.library = library;
    replay.foreign = std::make_unique<plugin::ForeignKernel>(*replay.op, std::move(source));
    replay.kernel = &replay.foreign->kernel();
  } else {
    if (!library.empty()) file.fail("holds no foreign kernel", "leave --lib out");
    replay.kernel = &kernel(file.text("kernel"));
  }
  if (replay.kernel->op != replay.op->name)
    file.fail(fmt::format("names the kernel {}, which is not one of {}", replay.kernel->id, replay.op->name));
  const std::string id = file.text("obligation");
  for (const Obligation& o : obligations(replay.op->name))
    if (o.info->id == id) replay.obligation = &o;
  if (replay.obligation == nullptr)
    file.fail(fmt::format("names the obligation {}, which {} does not have", id, replay.op->file),
              fmt::format("`assay explain {}` lists them", replay.op->name));
  if (!file.document().contains("case")) file.fail("the key 'case' is missing");
  replay.the_case = case_from_json(*replay.op, file.document()["case"], path.string() + ": case");
  if (file.document().contains("race")) {
    const std::string order = file.text(file.document()["race"], "other");
    std::uint64_t other = 0;
    if (std::from_chars(order.data(), order.data() + order.size(), other).ec != std::errc{}) file.fail(fmt::format("'{}' is no order of threads", order));
    replay.other_order = other;
  }
  return replay;
}

}  // namespace assay::falsify
