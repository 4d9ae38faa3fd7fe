// `assay merge`: combines the reports of all shards into the report of a single run.
#include "falsify/engine/reports/merge.hpp"

#include <memory>

#include "cli/commands.hpp"
#include "cli/publish.hpp"
#include "falsify/engine/report.hpp"

namespace assay::cli {
namespace merge_command {
namespace {

struct Options : Output {
  std::vector<std::string> reports;
  std::string report;
};

int run(const Options& o) {
  std::vector<falsify::ShardReport> shards;
  for (const std::string& file : o.reports) shards.push_back({file, falsify::read_report(file)});
  nlohmann::json report = falsify::merge_reports(shards);
  if (!o.report.empty()) falsify::expect_writable(o.report);
  report["exit_code"] = exit_code(report);
  publish(report, o.report, o.json);
  return report["exit_code"].get<int>();
}

}  // namespace
}  // namespace merge_command

Command add_merge(Parser& parser) {
  using namespace merge_command;
  auto o = std::make_shared<Options>();
  auto command =
      parser.command("merge", "Put the reports of all shards together; the verdict is that of the whole run", *o);
  command.option("REPORT", o->reports, "report.json of each shard of one `assay falsify --shard I/N`").required();
  command.option("--report", o->report,
                 "Write report.html, report.json, junit.xml, assay.sarif and replay files to this folder");
  return {command, [o] { return run(*o); }};
}

}  // namespace assay::cli
