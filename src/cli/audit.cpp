// `assay audit`: compares the measured arithmetic of kernels with their declarations.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/foreign.hpp"
#include "cli/kernel_lines.hpp"
#include "cli/selection.hpp"
#include "cli/values.hpp"
#include "core/files.hpp"
#include "falsify/audit/audit.hpp"
#include "falsify/engine/pool.hpp"

namespace assay::cli {
namespace audit_command {
namespace {

using nlohmann::json;

struct Options : Output {
  std::vector<std::string> ops;
  std::string backend, kernel, report, limit = "10s";
  int jobs = 0;
  ForeignOptions foreign;
};

void write(const std::filesystem::path& file, const json& document) { files::write(file, document.dump(1) + "\n"); }

/// Writes audit.json with all results, and one file per kernel.
void write_report(const json& report, const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw InputError("--report " + folder, failed.message(), "name a folder that can be written");
  write(std::filesystem::path(folder) / "audit.json", report);
  for (const json& kernel : report["kernels"]) {
    std::string file = kernel["kernel"].get<std::string>();
    std::ranges::replace(file, '/', '-');
    write(std::filesystem::path(folder) / (file + ".audit.json"), kernel);
  }
}

json audited(const Kernel* kernel, std::chrono::milliseconds limit) {
  return falsify::audit::audit(operation(kernel->op), *kernel, limit);
}

int run(const Options& o) {
  const std::chrono::milliseconds limit = limit_of(!o.foreign.python.empty(), parse_duration("--limit", o.limit));
  const std::unique_ptr<plugin::ForeignKernel> foreign = foreign_kernel(o.foreign, limit);
  std::vector<falsify::Task> tasks;
  for (const Kernel* k : selected_kernels(o.ops, o.backend, o.kernel, foreign.get()))
    tasks.push_back({std::string(k->id), [k, limit] { return audited(k, limit); }});
  std::vector<json> kernels = falsify::run_tasks(tasks, jobs_for(o.jobs), [](const json*) {});
  std::ranges::sort(kernels, {}, [](const json& k) { return k["kernel"].get<std::string>(); });
  json totals{{"agrees", 0}, {"disagrees", 0}, {"failed", 0}, {"refused", 0}, {"not measured", 0}, {"unavailable", 0}};
  for (const json& k : kernels) {
    json& count = totals[k["verdict"].get<std::string>()];
    count = count.get<int>() + 1;
  }
  const json report{{"schema", "assay-audit/1"}, {"kernels", kernels}, {"totals", totals}};
  if (!o.report.empty()) write_report(report, o.report);
  fmt::print("{}", o.json ? report.dump(1) + "\n" : falsify::audit::table(report));
  if (totals["disagrees"] != 0 || totals["failed"] != 0) return kFalsified;
  const bool named = !o.backend.empty() || !o.kernel.empty() || foreign;
  return named && (totals["unavailable"] != 0 || totals["refused"] != 0 || totals["not measured"] != 0)
             ? kUnavailable
             : kNothingFalsified;
}

}  // namespace
}  // namespace audit_command

Command add_audit(Parser& parser) {
  using namespace audit_command;
  auto o = std::make_shared<Options>();
  auto command =
      parser.command("audit", "See from outside how kernels add and round, and compare it with what they declare", *o);
  const auto ops = command.option("OP", o->ops, "Operations (all of them by default)");
  const auto backend =
      command.option("--backend", o->backend, "Only kernels of this back end: cpu, cuda-host, vulkan, cuda");
  const auto kernel = command.option("--kernel", o->kernel, "Only this kernel (an id of `assay list`, or a mutant's)");
  add_foreign_options(command, o->foreign);
  for (const char* foreign : {"--lib", "--spv", "--python"})
    command.named(foreign).excludes(ops).excludes(backend).excludes(kernel);
  command.option("--limit", o->limit, kLimitHelp).with_default();
  command.option("--report", o->report, "Write audit.json and one <kernel>.audit.json each to this folder");
  command.option("--jobs", o->jobs, "Kernels at once (0: one per processor)").range(0, 1024);
  return {command, [o] {
            const KernelLines lines(o->quiet);
            return run(*o);
          }};
}

}  // namespace assay::cli
