#include "cli/automatic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/selection.hpp"
#include "core/files.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/mutation/study/accepted.hpp"
#include "falsify/mutation/study/report.hpp"
#include "system/interrupt.hpp"

namespace assay::cli {
namespace {

std::vector<const Kernel*> select(const AutomaticOptions& o, Backend backend) {
  for (const std::string& op : o.ops) operation_named(op);
  std::vector<const Kernel*> chosen;
  if (!o.kernel.empty()) kernel(o.kernel);  // throws if there is no such kernel
  for (const Kernel& k : kernels())
    if (k.role == KernelRole::kernel && k.backend == backend && (o.kernel.empty() || o.kernel == k.id) &&
        (o.ops.empty() || std::ranges::find(o.ops, k.op) != o.ops.end()))
      chosen.push_back(&k);
  if (chosen.empty()) throw InputError("selection", "no kernel matches it", "`assay list` prints what there is");
  return chosen;
}

nlohmann::json read_json(const std::string& path) {
  const std::string remedy = "name the output of `assay mutants --automatic --json`";
  const nlohmann::json document = nlohmann::json::parse(files::read(path, remedy), nullptr, false);
  if (document.is_discarded()) throw InputError(path, "cannot be read as JSON", remedy);
  return document;
}

/// Keeps only the mutants with this hash: one in each kernel that shares the shader.
void keep_one(const std::string& hash, falsify::MutantList& mutants) {
  std::erase_if(mutants, [&](const auto& m) { return m->hash != hash; });
  if (mutants.empty())
    throw InputError("--mutant " + hash, "no mutant of the selection has this hash",
                     "reports of the same build name the hashes");
}

/// Keeps only the mutants that may run on this device.
std::size_t screen(const AutomaticOptions& o, const falsify::Survey& survey, falsify::MutantList& mutants) {
  if (o.screened.empty() && !survey.on_processor && !survey.ends_by_itself)
    throw InputError(
        "--automatic", "mutants that never end cost a GPU: " + survey.device + " runs screened ones alone",
        "run the same on lavapipe with --json (ASSAY_VULKAN_DEVICE=llvmpipe) and give the report to --screened");
  return o.screened.empty() ? 0 : falsify::screen(mutants, falsify::ended_in(read_json(o.screened), o.screened));
}

}  // namespace

int run_automatic(const AutomaticOptions& o) {
  const auto begin = std::chrono::steady_clock::now();
  const Backend backend = backend_from(o.backend.empty() ? "vulkan" : o.backend);
  const falsify::Survey survey = falsify::mutant_source(backend)(select(o, backend));
  falsify::Sample sample = falsify::draw_mutants(survey, o.mutant.empty() ? o.sample : 0, o.study.seed, o.mutant);
  if (!o.mutant.empty()) keep_one(o.mutant, sample.mutants);
  const auto accepted = o.accepted.empty() ? std::vector<falsify::Accepted>() : falsify::read_accepted(o.accepted);
  falsify::expect_mutants(accepted, survey, o.accepted);
  const std::size_t left_out = screen(o, survey, sample.mutants);
  if (!o.report.empty()) falsify::expect_writable(o.report);
  ProgressLine line(o.quiet || o.json, {}, "mutants");
  int signal = 0;
  std::vector<nlohmann::json> results;
  {
    const CatchSignals catching;
    results = falsify::run_study(
        sample.mutants, o.study, o.jobs,
        [&](std::size_t done) {
          line.update({.finished = static_cast<int>(done),
                       .kernels = static_cast<int>(sample.mutants.size()),
                       .work_done = static_cast<double>(done)});
        },
        &signal);
  }
  line.finish();
  const std::size_t done = results.size();
  falsify::accept(results, accepted);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const nlohmann::json settings{{"seed", o.study.seed},
                                {"cases", o.study.cases},
                                {"attack_cases", o.study.attack_cases},
                                {"sample", o.sample},
                                {"ops", o.ops},
                                {"backend", name(backend)},
                                {"kernel", o.kernel},
                                {"matrix", o.study.matrix},
                                {"screened", o.screened},
                                {"accepted", o.accepted}};
  nlohmann::json report = falsify::automatic_report(survey, sample, left_out, std::move(results), settings, seconds);
  if (signal != 0) report["interrupted"] = fmt::format("SIG{}", sigabbrev_np(signal));
  if (!o.report.empty()) falsify::write_automatic(report, o.report);
  fmt::print("{}", o.json ? report.dump(1) + "\n" : falsify::automatic_table(report));
  if (signal != 0) {
    fmt::print(stderr, "assay: interrupted by SIG{} after {} of {} mutants; the table{} is of these\n",
               sigabbrev_np(signal), done, sample.mutants.size(),
               o.report.empty() ? "" : ", like the report in " + o.report + ",");
    return 128 + signal;
  }
  falsify::expect_needed(report["mutants"], accepted, o.accepted);
  if (falsify::automatic_failed(report)) return kFalsified;
  return report["totals"]["unavailable"] != 0 ? kUnavailable : kNothingFalsified;
}

}  // namespace assay::cli
