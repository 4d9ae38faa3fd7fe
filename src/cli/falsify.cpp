// `assay falsify`: campaigns against kernels.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "cli/commands.hpp"
#include "cli/foreign.hpp"
#include "cli/progress.hpp"
#include "cli/publish.hpp"
#include "cli/selection.hpp"
#include "cli/values.hpp"
#include "falsify/engine/pool.hpp"
#include "falsify/engine/report.hpp"

namespace assay::cli {
namespace {

struct Options {
  std::vector<std::string> ops;
  std::string backend, kernel, obligation, shard, time, kernel_time, report, limit = "10s";
  int cases = 100;
  Index largest = 0;
  int jobs = 0;
  std::string seed = "1";
  bool json = false, quiet = false;
  ForeignOptions foreign;
};

/// The kernels asked for, in order of id. Throws InputError where a name matches nothing.
std::vector<const Kernel*> select(const Options& o, const plugin::ForeignKernel* foreign) {
  std::vector<const Kernel*> chosen = selected_kernels(o.ops, o.backend, o.kernel, foreign);
  if (!o.obligation.empty())
    std::erase_if(chosen, [&](const Kernel* k) {
      return std::ranges::none_of(falsify::obligations(k->op), [&](const auto& x) { return x.info->id == o.obligation; });
    });
  if (chosen.empty())
    throw InputError("--obligation " + o.obligation, "no chosen operation has it", "`assay explain OP` lists the ids");
  return chosen;
}

TimePlan time_plan(const Options& o, const falsify::CampaignOptions& options) {
  TimePlan plan{.whole{}, .kernel = options.time, .jobs = jobs_for(o.jobs)};
  if (!o.time.empty()) plan.whole = parse_duration("--time", o.time);
  return plan;
}

/// The verdict of the run.
Exit exit_code(const Options& o, const nlohmann::json& report) {
  if (falsify::report_failed(report)) return kFalsified;
  const bool foreign = !o.foreign.lib.empty() || !o.foreign.spv.empty();
  if (foreign && report["totals"]["refused"] != 0) return kUnavailable;  // nothing was tried
  const bool named = !o.backend.empty() || !o.kernel.empty() || foreign;
  return named && report["totals"]["unavailable"] != 0 ? kUnavailable : kNothingFalsified;
}

int run(const Options& o) {
  const std::chrono::milliseconds limit = parse_duration("--limit", o.limit);
  const std::unique_ptr<plugin::ForeignKernel> foreign = foreign_kernel(o.foreign, limit);
  std::vector<const Kernel*> chosen = select(o, foreign.get());
  if (!o.shard.empty()) chosen = shard_of(chosen, parse_shard(o.shard));
  falsify::CampaignOptions options;
  options.cases = o.cases;
  if (!o.time.empty()) {
    const auto kernels = std::max(1, static_cast<int>(chosen.size()));
    options.time = parse_duration("--time", o.time) * std::min(jobs_for(o.jobs), kernels) / kernels;
    options.cases = 1'000'000'000;
  }
  if (!o.kernel_time.empty()) options.time = parse_duration("--kernel-time", o.kernel_time);
  options.limit = limit;
  options.seed = parse_seed(o.seed);
  options.only = o.obligation;
  options.largest = o.largest;
  if (!o.report.empty()) falsify::expect_writable(o.report);
  const auto begin = std::chrono::steady_clock::now();
  ProgressLine line(o.quiet || o.json, time_plan(o, options));
  std::vector<nlohmann::json> results =
      falsify::run_pool(chosen, options, jobs_for(o.jobs), [&](const falsify::PoolStatus& s) { line.update(s); });
  line.finish();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  nlohmann::json settings{{"seed", o.seed}, {"cases", o.time.empty() ? nlohmann::json(o.cases) : nlohmann::json(nullptr)},
                          {"time", o.time}, {"ops", o.ops}, {"backend", o.backend}, {"kernel", o.kernel},
                          {"obligation", o.obligation}, {"shard", o.shard}};
  nlohmann::json report = falsify::make_report(std::move(results), settings, seconds);
  if (foreign) falsify::name_foreign(report, foreign->source());
  report["exit_code"] = exit_code(o, report);
  publish(report, o.report, o.json);
  return report["exit_code"].get<int>();
}

}  // namespace

Command add_falsify(CLI::App& root) {
  auto* app = root.add_subcommand("falsify", "Try to prove kernels wrong");
  auto o = std::make_shared<Options>();
  auto* ops = app->add_option("OP", o->ops, "Operations (all of them by default)");
  auto* backend = app->add_option("--backend", o->backend, "Only kernels of this back end: cpu, cuda-host, vulkan, cuda");
  auto* kernel = app->add_option("--kernel", o->kernel, "Only this kernel (an id of `assay list`, or a mutant's)");
  add_foreign_options(*app, o->foreign);
  for (const char* foreign : {"--lib", "--spv"}) app->get_option(foreign)->excludes(ops, backend, kernel);
  app->add_option("--obligation", o->obligation, "Only this obligation");
  auto* cases = app->add_option("--cases", o->cases, "Cases for each obligation and kernel")->capture_default_str()
                    ->check(CLI::Range(1, 1'000'000'000));
  app->add_option("--time", o->time, "Run about this long instead, as in 90s, 10m, 2h")->excludes(cases);
  app->add_option("--kernel-time", o->kernel_time, "End each kernel's campaign after this time, but not before every obligation was tried")
      ->excludes("--time");
  app->add_option("--seed", o->seed, "Seed of the campaign")->capture_default_str();
  app->add_option("--limit", o->limit, "A call that takes longer is a hang")->capture_default_str();
  app->add_option("--largest", o->largest, "Dims of `by: large` cases: from half of this to this (0: up to 1025)")
      ->check(CLI::Range(0, 16384));
  app->add_option("--shard", o->shard, "I/N: the I-th of N parts of the kernels");
  app->add_option("--report", o->report, "Write report.html, report.json, junit.xml, assay.sarif and replay files to this folder");
  app->add_option("--jobs", o->jobs, "Campaigns at once (0: one per processor)")->check(CLI::Range(0, 1024));
  app->add_flag("--json", o->json, "One JSON document on standard output");
  app->add_flag("--quiet", o->quiet, "No progress");
  return {app, [o] { return run(*o); }};
}

}  // namespace assay::cli
