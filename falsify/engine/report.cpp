#include "falsify/engine/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <map>

namespace assay::falsify {
namespace {

using nlohmann::json;

/// JSON has no NaN or infinity; figures that are one become text.
json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

json finding_json(const Finding& f) {
  json j{{"kind", f.kind}, {"message", f.message}};
  if (!f.tensor.empty()) {
    json index = json::array();
    for (int axis = 0; axis < f.index.rank(); ++axis) index.push_back(f.index[axis]);
    j.update({{"tensor", f.tensor}, {"index", index}, {"got", number(f.got)}, {"want", number(f.want)},
              {"bound", number(f.bound)}});
  }
  return j;
}

json counterexample_json(const OpDescriptor& op, const KernelResult& result, const ObligationResult& o) {
  const Counterexample& x = *o.counterexample;
  return {{"schema", kReplaySchema},
          {"op", op.name},
          {"kernel", result.kernel->id},
          {"obligation", o.info->id},
          {"case", to_json(op, x.smallest)},
          {"says", describe(op, x.smallest)},
          {"drawn", to_json(op, x.first)},
          {"finding", finding_json(x.finding)},
          {"reproduction", x.reproduction},
          {"number", x.number},
          {"shrink", {{"tried", x.shrink_tried}, {"seconds", x.shrink_seconds}, {"complete", x.shrink_complete}}}};
}

std::string status_of(const KernelResult& result) {
  const auto any = [&](Verdict v) {
    return std::ranges::any_of(result.obligations, [v](const auto& o) { return o.verdict == v; });
  };
  for (Verdict v : {Verdict::falsified, Verdict::unavailable, Verdict::mistrusted})
    if (any(v)) return std::string(name(v));
  return any(Verdict::passed) ? "passed" : "refused";
}

std::string xml_escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
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

}  // namespace

json to_json(const OpDescriptor& op, const KernelResult& result) {
  const Kernel& kernel = *result.kernel;
  json j{{"op", op.name},
         {"kernel", kernel.id},
         {"backend", name(kernel.backend)},
         {"device", result.device},
         {"source", kernel.source},
         {"arithmetic", to_string(kernel.arithmetic)},
         {"status", status_of(result)},
         {"seconds", result.seconds},
         {"obligations", json::array()},
         {"clauses", json::array()}};
  if (!kernel.fault.empty()) j["fault"] = kernel.fault;
  for (const ObligationResult& o : result.obligations) {
    json r{{"id", o.info->id},       {"claim", o.info->claim}, {"by", o.info->by}, {"if_fails", o.info->if_fails},
           {"verdict", name(o.verdict)}, {"cases", o.cases},   {"refused", o.refused}, {"elements", o.elements},
           {"nonzero", o.nonzero},   {"worst", number(o.worst)}, {"typical", number(o.typical)}, {"seconds", o.seconds}};
    if (!o.reason.empty()) r["reason"] = o.reason;
    if (o.counterexample) r["counterexample"] = counterexample_json(op, result, o);
    j["obligations"].push_back(std::move(r));
  }
  for (std::size_t c = 0; c < op.clauses.size() && c < result.clause_counts.size(); ++c)
    j["clauses"].push_back({{"id", op.clauses[c].id}, {"evaluated", result.clause_counts[c]}});
  return j;
}

json make_report(std::vector<json> kernels, const json& settings, double seconds) {
  std::ranges::sort(kernels, {}, [](const json& k) { return k["kernel"].get<std::string>(); });
  json totals{{"kernels", kernels.size()}, {"cases", 0}, {"elements", 0}, {"falsified", 0}, {"mistrusted", 0},
              {"refused", 0}, {"unavailable", 0}, {"passed", 0}, {"worst", 0.0}};
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
  // A run of one obligation alone is not meant to reach the ensures clauses.
  const bool whole = settings.value("obligation", "").empty();
  for (const json& c : clauses)
    if (whole && c["evaluated"] == 0) never.push_back(c["id"]);
  return {{"schema", kReportSchema}, {"settings", settings}, {"seconds", seconds}, {"totals", totals},
          {"clauses", clauses},      {"never_evaluated", never}, {"kernels", kernels}};
}

bool report_failed(const json& report) {
  return report["totals"]["falsified"] != 0 || report["totals"]["mistrusted"] != 0 || !report["never_evaluated"].empty();
}

std::string junit_xml(const json& report) {
  std::string suites;
  int tests = 0, failures = 0, skips = 0;
  for (const json& k : report["kernels"]) {
    std::string cases;
    int failed = 0, skipped = 0;
    for (const json& o : k["obligations"]) {
      const std::string verdict = o["verdict"].get<std::string>();
      cases += fmt::format("    <testcase classname=\"{}\" name=\"{}: {}\" time=\"{:.3f}\"", xml_escape(k["kernel"].get<std::string>()),
                           xml_escape(o["id"].get<std::string>()), xml_escape(o["claim"].get<std::string>()), o["seconds"].get<double>());
      if (verdict == "passed") {
        cases += "/>\n";
      } else if (verdict == "falsified" || verdict == "mistrusted") {
        ++failed;
        const std::string message = o.contains("counterexample")
                                        ? o["counterexample"]["finding"]["message"].get<std::string>() + " (" +
                                              o["counterexample"]["says"].get<std::string>() + ")"
                                        : o.value("reason", "");
        cases += fmt::format(">\n      <failure type=\"{}\" message=\"{}\"/>\n    </testcase>\n", verdict, xml_escape(message));
      } else {
        ++skipped;
        cases += fmt::format(">\n      <skipped message=\"{}: {}\"/>\n    </testcase>\n", verdict, xml_escape(o.value("reason", "")));
      }
    }
    suites += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{:.3f}\">\n{}  </testsuite>\n",
                          xml_escape(k["kernel"].get<std::string>()), k["obligations"].size(), failed, skipped,
                          k["seconds"].get<double>(), cases);
    tests += static_cast<int>(k["obligations"].size()), failures += failed, skips += skipped;
  }
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
                     "skipped=\"{}\" time=\"{:.3f}\">\n{}</testsuites>\n",
                     tests, failures, skips, report["seconds"].get<double>(), suites);
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream file(path);
  file << text;
  if (!file.flush())
    throw InputError(path.string(), "the file could not be written", "name a directory that can be written to");
}

void write_replays(json& report, const std::filesystem::path& directory) {
  for (json& k : report["kernels"])
    for (json& o : k["obligations"]) {
      if (!o.contains("counterexample")) continue;
      const auto path = directory / file_name(k["kernel"].get<std::string>(), o["id"].get<std::string>());
      write_file(path, o["counterexample"].dump(2) + "\n");
      o["counterexample"]["file"] = path.string();
    }
}

void write_report(json& report, const std::filesystem::path& directory) {
  write_replays(report, directory / "replay");
  write_file(directory / "report.json", report.dump(1) + "\n");
  write_file(directory / "junit.xml", junit_xml(report));
}

void name_foreign(json& report, const plugin::Source& source) {
  json foreign{{"library", source.library}, {"symbol", source.symbol}, {"declared", source.declared}};
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
    std::ifstream file(path);
    if (!file) fail("the file cannot be read");
    try {
      document_ = json::parse(file);
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
  return replay;
}

}  // namespace assay::falsify
