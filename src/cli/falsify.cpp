// `assay falsify`: campaigns against kernels.
#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "cli/commands.hpp"
#include "cli/foreign.hpp"
#include "cli/kernel_lines.hpp"
#include "cli/memory_needed.hpp"
#include "cli/progress.hpp"
#include "cli/publish.hpp"
#include "cli/selection.hpp"
#include "cli/systems.hpp"
#include "cli/values.hpp"
#include "contract/reader.hpp"
#include "falsify/engine/admit.hpp"
#include "falsify/engine/joint.hpp"
#include "falsify/engine/pool.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/foreign/replay.hpp"
#include "falsify/program/system.hpp"
#include "runtime/limits.hpp"
#include "system/sha256.hpp"

namespace assay::cli {
namespace falsify_command {
namespace {

struct Options : Output {
  std::vector<std::string> ops;
  std::string backend, kernel, obligation, shard, time, kernel_time, report, journal, dims, limit = "10s";
  int cases = falsify::kDefaultCases;
  Index largest = 0;
  std::int64_t elements = 0;
  int jobs = 0;
  std::string seed = "1";
  bool first = false;
  ForeignOptions foreign;
};

/// Returns the selected kernels in order of id. Throws InputError if a name matches nothing.
std::vector<const Kernel*> select(const Options& o, const plugin::ForeignKernel* foreign) {
  std::vector<const Kernel*> chosen = selected_kernels(o.ops, o.backend, o.kernel, foreign);
  if (!o.obligation.empty())
    std::erase_if(chosen, [&](const Kernel* k) {
      return std::ranges::none_of(falsify::obligations(k->op),
                                  [&](const auto& x) { return x.info->id == o.obligation; });
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

/// Returns the dims of every case for CampaignOptions. Throws InputError if they are not dims of the single operation.
std::vector<Index> parse_dims(const Options& o, const std::vector<const Kernel*>& kernels) {
  if (o.dims.empty()) return {};
  const std::string where = "--dims " + o.dims;
  const OpDescriptor& op = operation(kernels.front()->op);
  if (std::ranges::any_of(kernels, [&](const Kernel* k) { return k->op != op.name; }))
    throw InputError(where, "gives a shape to several operations",
                     "name one, as in `assay falsify matmul --dims m=128,n=128`");
  return falsify::dims_from_text(op, o.dims, where);
}

/// Returns the smallest dims of a case with these dims given.
std::vector<Index> least_dims(const OpDescriptor& op, std::vector<Index> dims) {
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d] == kDrawnSmall) dims[d] = std::clamp(op.dims[d].multiple, op.dims[d].min, op.dims[d].max);
  falsify::make_valid(op, dims);
  return dims;
}

/// Throws InputError unless cases of these dims have outputs to compare and fit in memory.
void expect_cases(const Options& o, const OpDescriptor& op, const std::vector<Index>& dims, int at_once) {
  if (dims.empty()) return;
  const std::vector<Index> least = least_dims(op, dims);
  const std::string where = "--dims " + o.dims;
  const auto empty = [&](const TensorInfo& t) { return t.role == Role::in || bytes_of(t, least) == 0; };
  if (std::ranges::all_of(op.tensors, empty))
    throw InputError(where, "leaves no element in any output, so that nothing is compared",
                     "use extents above 0; without --dims some cases are empty");
  expect_room(op, least, at_once, where,
              at_once > 1 ? "use smaller extents, or --jobs 1" : "use smaller extents, or a larger machine");
}

/// Throws InputError with the kernel's requirements unless the kernel takes some case of these dims.
void expect_taken(const Options& o, const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims) {
  if (dims.empty() || kernel.limits == nullptr || !kernel.limits->refuse) return;
  const Limits& limits = *kernel.limits;
  falsify::Case least;
  least.dims = least_dims(op, dims);
  for (const ParamInfo& param : op.params) least.params.push_back(param.typical);
  std::optional<std::string> why;
  constexpr std::uint64_t kAttempts = 64;
  for (least.seed = 0; least.seed < kAttempts; ++least.seed) {
    falsify::Case c = falsify::admitted(op, kernel, least, dims);
    if (!limits.refuse(c.dims, c.params)) return;
    limits.repair(c.dims, c.params, least.seed);  // refused dims may be accepted with other dims
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (dims[d] != kDrawnSmall) c.dims[d] = dims[d];
    why = limits.refuse(c.dims, c.params);
    if (!why) return;
  }
  throw InputError("--dims " + o.dims, "contradicts the shim: " + *why, "give dims that it takes");
}

nlohmann::json settings(const Options& o) {
  nlohmann::json settings{{"seed", o.seed},
                          {"cases", o.time.empty() ? nlohmann::json(o.cases) : nlohmann::json(nullptr)},
                          {"time", o.time},
                          {"ops", o.ops},
                          {"backend", o.backend},
                          {"kernel", o.kernel},
                          {"obligation", o.obligation},
                          {"shard", o.shard}};
  if (!o.dims.empty()) settings["dims"] = o.dims;
  if (o.elements != 0) settings["elements"] = o.elements;
  return settings;
}

/// Returns the file that this code was loaded from: the program, or the library that a Python process hosts.
std::string own_file() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_file), &info) != 0 && std::string_view(info.dli_fname).ends_with(".so"))
    return info.dli_fname;
  return "/proc/self/exe";
}

/// Returns the SHA-256 of this program and of a foreign kernel's files.
std::string program_digest(const plugin::ForeignKernel* foreign) {
  const auto digest_of = [](const std::string& path) {
    return sha256(contract::read_file(path, path, "what is hashed"));
  };
  const std::string own = digest_of(own_file());
  if (foreign == nullptr) return own;
  const plugin::Source& source = foreign->source();
  return sha256(
      fmt::format("{}\n{}\n{}\n{}\n{}", own, digest_of(source.library), source.symbol, source.declared, source.shim));
}

/// Returns everything that must agree between shards, or between runs with one journal, for a merged result equal to
/// that of a single run.
nlohmann::json whole_run(const Options& o, const std::vector<const Kernel*>& kernels,
                         const plugin::ForeignKernel* foreign) {
  nlohmann::json ids = nlohmann::json::array();
  for (const Kernel* k : kernels) ids.push_back(k->id);
  return {{"program", program_digest(foreign)}, {"kernels", ids},  {"limit", o.limit}, {"largest", o.largest},
          {"kernel-time", o.kernel_time},       {"first", o.first}};
}

std::unique_ptr<falsify::Journal> open_journal(const Options& o, const std::vector<const Kernel*>& kernels,
                                               const plugin::ForeignKernel* foreign) {
  if (o.journal.empty()) return nullptr;
  nlohmann::json campaign = settings(o);
  campaign.update(whole_run(o, kernels, foreign));
  auto journal = std::make_unique<falsify::Journal>(o.journal, campaign);
  if (o.quiet || o.json) return journal;
  if (journal->torn())
    fmt::print(stderr, "{}: the last line was not written to its end; what it held is run again\n", o.journal);
  if (const auto finished = journal->results().size(); finished > 0)
    fmt::print(stderr, "{}: {} of {} kernels are finished, and are not run again\n", o.journal, finished,
               kernels.size());
  return journal;
}

/// Prints the state of the interrupted run in one sentence. Returns the exit code of a process ended by this signal.
int interrupted(const Options& o, int signal, std::size_t finished, std::size_t kernels) {
  fmt::print(stderr, "assay: interrupted by SIG{} after {} of {} kernels; {}\n", sigabbrev_np(signal), finished,
             kernels,
             o.journal.empty() ? "nothing of it is kept (--journal FILE keeps it)"
                               : fmt::format("the same command goes on from {}", o.journal));
  return 128 + signal;
}

falsify::CampaignOptions campaign_options(const Options& o, std::size_t kernels, std::chrono::milliseconds limit) {
  falsify::CampaignOptions options;
  options.cases = o.cases;
  if (!o.time.empty()) {
    const auto count = std::max(1, static_cast<int>(kernels));
    options.time = parse_duration("--time", o.time) * std::min(jobs_for(o.jobs), count) / count;
    options.cases = 1'000'000'000;
  }
  if (o.elements != 0) options.cases = 1'000'000'000;
  if (!o.kernel_time.empty()) {
    options.time = parse_duration("--kernel-time", o.kernel_time);
    options.to_floor = true;
  }
  options.limit = limit;
  options.seed = parse_seed(o.seed);
  options.only = o.obligation;
  options.largest = o.largest;
  options.stop_at_first = o.first;
  return options;
}

/// Runs the campaigns of `chosen`, a shard of `all` or all of it, and publishes their report.
int run_campaigns(
    const Options& o, const falsify::CampaignOptions& options, const std::vector<const Kernel*>& all,
    const std::vector<const Kernel*>& chosen, const plugin::ForeignKernel* foreign,
    const std::function<std::vector<nlohmann::json>(const falsify::PoolProgress&, falsify::Journal*)>& campaigns) {
  if (!o.report.empty()) falsify::expect_writable(o.report);
  const auto begin = std::chrono::steady_clock::now();
  const std::unique_ptr<falsify::Journal> journal = open_journal(o, chosen, foreign);
  std::size_t finished = journal != nullptr ? journal->results().size() : 0;
  ProgressLine line(o.quiet || o.json, time_plan(o, options));
  std::optional<KernelLines> kernel_lines(o.quiet);
  std::vector<nlohmann::json> results;
  try {
    const CatchSignals catching;
    const auto progress = [&](const falsify::PoolStatus& s) {
      finished += s.last != nullptr;
      line.update(s);
    };
    results = campaigns(progress, journal.get());
  } catch (const EndedBySignal& ended) {
    kernel_lines.reset();
    line.finish();
    return interrupted(o, ended.signal, finished, chosen.size());
  }
  kernel_lines.reset();
  line.finish();
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (journal != nullptr) seconds += journal->spent();
  nlohmann::json report = falsify::make_report(std::move(results), settings(o), seconds.count());
  if (!o.shard.empty()) report["whole"] = whole_run(o, all, foreign);
  if (foreign != nullptr) falsify::name_foreign(report, foreign->source());
  report["exit_code"] = exit_code(report);
  publish(report, o.report, o.json);
  for (const auto& k : report["kernels"])
    for (const auto& x : k["obligations"])
      if (!o.json && x["verdict"] == "passed" && x.contains("reason") &&
          falsify::find_system(k["op"].get<std::string>()))
        fmt::print("{}  {}: {}\n", k["kernel"].get<std::string>(), x["id"].get<std::string>(),
                   x["reason"].get<std::string>());
  return report["exit_code"].get<int>();
}

int run_systems(const Options& o) {
  if (o.largest != 0)
    throw InputError("--largest", "is for the cases `by: large` of operations, and systems have none", "use --dims");
  for (const std::string& name : o.ops)
    if (const auto all = falsify::find_system(name)->op.obligations;
        !o.obligation.empty() && std::ranges::find(all, o.obligation, &ObligationInfo::id) == all.end())
      throw InputError("--obligation " + o.obligation, name + " does not have it",
                       "`assay explain " + name + "` lists the ids");
  const std::vector<falsify::SystemKernel> all = kernels_of_systems(o.ops, o.backend, o.kernel),
                                           chosen = o.shard.empty() ? all : shard_of(all, parse_shard(o.shard));
  const auto own = [](const std::vector<falsify::SystemKernel>& systems) {
    std::vector<const Kernel*> kernels;
    for (const falsify::SystemKernel& k : systems) kernels.push_back(&k.kernel());
    return kernels;
  };
  falsify::CampaignOptions options = campaign_options(o, chosen.size(), parse_duration("--limit", o.limit));
  options.dims = dims_of_system(o.ops, o.dims, options.seed);
  return run_campaigns(o, options, own(all), own(chosen), nullptr, [&](const auto& progress, auto* journal) {
    return falsify_systems(chosen, options, jobs_for(o.jobs), progress, journal, o.elements);
  });
}

int run(const Options& o) {
  if (name_systems(o.ops)) return run_systems(o);
  if (o.elements != 0) throw InputError("--elements", "ends the campaigns of systems", "name one, or give --cases");
  const std::chrono::milliseconds limit = limit_of(!o.foreign.python.empty(), parse_duration("--limit", o.limit));
  const std::unique_ptr<plugin::ForeignKernel> foreign = [&] {
    const KernelLines of_the_first_call(o.quiet);
    return foreign_kernel(o.foreign, limit);
  }();
  const std::vector<const Kernel*> all = select(o, foreign.get());
  const std::vector<const Kernel*> chosen = o.shard.empty() ? all : shard_of(all, parse_shard(o.shard));
  falsify::CampaignOptions options = campaign_options(o, chosen.size(), limit);
  options.dims = parse_dims(o, all);
  expect_cases(o, operation(all.front()->op), options.dims,
               std::clamp(jobs_for(o.jobs), 1, std::max(1, static_cast<int>(chosen.size()))));
  if (foreign) expect_taken(o, operation(foreign->kernel().op), foreign->kernel(), options.dims);
  return run_campaigns(o, options, all, chosen, foreign.get(), [&](const auto& progress, auto* journal) {
    return falsify::run_pool(chosen, options, jobs_for(o.jobs), progress, journal);
  });
}

}  // namespace
}  // namespace falsify_command

Command add_falsify(Parser& parser) {
  using namespace falsify_command;
  auto o = std::make_shared<Options>();
  auto command = parser.command("falsify", "Try to prove kernels wrong", *o);
  const auto ops = command.option("OP", o->ops, "Operations (all of them by default), or systems");
  const auto backend =
      command.option("--backend", o->backend, "Only kernels of this back end: cpu, cuda-host, vulkan, cuda");
  const auto kernel = command.option(
      "--kernel", o->kernel,
      "Only this kernel (an id of `assay list`, or a mutant's); of a system, for the steps of its operation");
  add_foreign_options(command, o->foreign);
  for (const char* foreign : {"--lib", "--spv", "--python"})
    command.named(foreign).excludes(ops).excludes(backend).excludes(kernel);
  command.option("--obligation", o->obligation, "Only this obligation");
  const auto cases = command.option("--cases", o->cases, "Cases for each obligation and kernel")
                         .with_default()
                         .range(1, 1'000'000'000);
  const auto time =
      command.option("--time", o->time, "Run about this long instead, as in 90s, 10m, 2h").excludes(cases);
  command
      .option("--elements", o->elements,
              "Of a system: run until so many elements are compared instead, as in 100000000 of FALSIFY-SYS-001")
      .range(1, 1'000'000'000'000)
      .excludes(cases);
  command
      .option("--kernel-time", o->kernel_time,
              "End each kernel's campaign after this time, but not while its verdict would be thin")
      .excludes(time);
  command.flag("--first", o->first, "End each kernel's campaign at the first obligation that it fails");
  command.option("--seed", o->seed, "Seed of the campaign").with_default();
  command.option("--limit", o->limit, kLimitHelp).with_default();
  command.option("--largest", o->largest, "Dims of `by: large` cases: from half of this to this (0: up to 1025)")
      .range(0, 16384);
  command.option(
      "--dims", o->dims,
      "Dims of every case, as in s=128,t=128,d=64; those not named are drawn small. Relations may make further calls of other dims");
  command.option("--shard", o->shard,
                 "I/N: the I-th of N parts of the kernels; `assay merge` puts their reports together");
  command.option("--journal", o->journal,
                 "Record what is finished in this file; started again with it, go on from there");
  command.option("--report", o->report,
                 "Write report.html, report.json, junit.xml, assay.sarif and replay files to this folder");
  command.option("--jobs", o->jobs, "Campaigns at once (0: one per processor)").range(0, 1024);
  return {command, [o] { return run(*o); }};
}

}  // namespace assay::cli
