// `assay false-alarms`: the upper limit on false alarms that the record of clean runs supports.
#include "falsify/gate/false_alarms.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "contract/descriptor.hpp"
#include "core/errors.hpp"
#include "core/files.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/gate/gate.hpp"

namespace assay::cli {
namespace false_alarms_command {
namespace {

struct Options : Output {
  std::string record = "ci/false_alarms.jsonl";
  std::vector<std::string> add;
  int kernels = 2;
  int cases = 0;
};

nlohmann::json read_report(const std::string& path) {
  const std::string remedy = "name the report.json of an `assay falsify --report DIR`";
  nlohmann::json report = nlohmann::json::parse(files::read(path, remedy), nullptr, false);
  if (report.is_discarded()) throw InputError(path, "cannot be read as JSON", remedy);
  return report;
}

/// Returns the number of cases that the gate runs on a kernel of an average operation unless time runs out: the cases
/// drawn for each obligation.
double full_depth() {
  double obligations = 0;
  for (const OpDescriptor* op : operations()) obligations += static_cast<double>(op->obligations.size());
  return falsify::kGateDraws * obligations / static_cast<double>(operations().size());
}

int run(const Options& o) {
  const bool fresh = !o.add.empty() && !std::filesystem::exists(o.record);
  falsify::Record record = fresh ? falsify::Record{} : falsify::read_record(o.record);
  std::size_t added = 0;
  for (const std::string& path : o.add) added += record.add(read_report(path), path);
  if (added > 0) files::write(o.record, record_text(record));
  const double each = o.cases > 0 ? o.cases : full_depth();
  const falsify::FalseAlarms result = false_alarms(record, o.kernels * each);
  if (o.json) {
    fmt::print("{}\n", nlohmann::json{{"schema", "assay-false-alarms/1"},
                                      {"campaigns", result.campaigns},
                                      {"cases", result.cases},
                                      {"alarms", result.alarms},
                                      {"fixed", result.fixed},
                                      {"counted_campaigns", result.counted_campaigns},
                                      {"counted_cases", result.counted_cases},
                                      {"counted_alarms", result.counted_alarms},
                                      {"kernels", result.kernels},
                                      {"seeds", result.seeds},
                                      {"added", added},
                                      {"confidence", 0.95},
                                      {"per_case", result.per_case},
                                      {"gate_kernels", o.kernels},
                                      {"gate_cases_each", each},
                                      {"per_gate", result.per_gate}}
                           .dump(2));
    return kNothingFalsified;
  }
  fmt::print("{} campaigns recorded against {} kernels, {} seeds, {} cases: {} false alarms\n", result.campaigns,
             result.kernels, result.seeds, result.cases, result.alarms);
  if (result.fixed > 0)
    fmt::print(
        "the causes of {} of them were removed; behind the last one: {} campaigns, {} cases; alarms to count: {}\n",
        result.fixed, result.counted_campaigns, result.counted_cases, result.counted_alarms);
  fmt::print(
      "with 95% confidence, the probability of a false alarm is at most\n  {:.2g} for a case\n  {:.2g} for a gate run "
      "of {} "
      "kernels with {:.0f} cases each\n",
      result.per_case, result.per_gate, o.kernels, each);
  return kNothingFalsified;
}

}  // namespace
}  // namespace false_alarms_command

Command add_false_alarms(Parser& parser) {
  using namespace false_alarms_command;
  auto o = std::make_shared<Options>();
  auto command = parser.command(
      "false-alarms", "How likely a false alarm is, at most, by the record of runs against right kernels", *o);
  command.option("--record", o->record, "The record: campaigns against kernels believed right").with_default();
  command.option("--add", o->add, "Add the campaigns of these reports (report.json) to the record first");
  command.option("--kernels", o->kernels, "Kernels that the gate run falsifies").with_default().range(1, 1'000'000);
  command
      .option("--cases", o->cases,
              "Cases against each of them (0: as many as the gate runs where time does not end it)")
      .range(0, 1'000'000'000);
  return {command, [o] { return run(*o); }};
}

}  // namespace assay::cli
