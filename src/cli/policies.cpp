#include "cli/policies.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/selection.hpp"
#include "core/files.hpp"
#include "falsify/engine/pool.hpp"
#include "falsify/mutation/study/sample.hpp"
#include "falsify/policies/table.hpp"

namespace assay::cli {
namespace {

namespace policies = falsify::policies;

std::vector<const Kernel*> select(const PolicyOptions& o, KernelRole role) {
  const auto wanted = [&](Backend b) { return o.backend.empty() ? traits(b).host : name(b) == o.backend; };
  std::vector<const Kernel*> chosen;
  for (const Kernel& k : kernels())
    if (k.role == role && wanted(k.backend) && (o.ops.empty() || std::ranges::find(o.ops, k.op) != o.ops.end()))
      chosen.push_back(&k);
  return chosen;
}

/// Draws automatic mutants, whose addresses must be stable while workers run them.
falsify::MutantList draw(const PolicyOptions& o, Backend backend, std::span<const Kernel* const> right) {
  const falsify::Survey survey = falsify::mutant_source(backend)(right);
  if (!survey.on_processor && !survey.ends_by_itself)
    throw InputError("--policies --automatic", "mutants that never end cost a GPU, and none are screened for this",
                     "run it on lavapipe (ASSAY_VULKAN_DEVICE=llvmpipe)");
  return falsify::draw_mutants(survey, o.sample, o.judge.seed).mutants;
}

void write(const nlohmann::json& report, const std::string& folder) {
  files::write(folder + "/policies.json", report.dump(1) + "\n");
}

/// Returns whether no other policy kills more mutants or rejects fewer right kernels.
bool ours_is_best(const nlohmann::json& report) {
  const auto& rows = report["policies"];
  const auto ours =
      std::ranges::find(rows, "assay", [](const auto& row) { return row["policy"].template get<std::string>(); });
  return std::ranges::all_of(rows, [&](const auto& row) {
    return row == *ours || (row["killed"] <= (*ours)["killed"] && row["false_alarms"] >= (*ours)["false_alarms"]);
  });
}

}  // namespace

int run_policies(const PolicyOptions& o) {
  if (!o.backend.empty()) backend_from(o.backend);
  for (const std::string& op : o.ops) operation_named(op);
  PolicyOptions chosen = o;
  if (o.automatic && o.backend.empty()) chosen.backend = "vulkan";
  const std::vector<const Kernel*> right = select(chosen, KernelRole::kernel);
  if (right.empty()) throw InputError("selection", "no kernel matches it", "`assay list` prints what there is");
  std::vector<falsify::Task> tasks;
  const auto add = [&](const Kernel& k, std::string fault, std::string fault_class) {
    tasks.push_back({std::string(k.id),
                     [&k, fault, fault_class, &o] { return policies::judge_all(k, fault, fault_class, o.judge); }});
  };
  falsify::MutantList drawn;
  if (o.automatic) drawn = draw(o, backend_from(chosen.backend), right);
  for (const auto& m : drawn) add(m->kernel, m->family, m->family);
  if (!o.automatic)
    for (const Kernel* k : select(chosen, KernelRole::mutant))
      if (!k->scored) add(*k, std::string(k->fault), std::string(k->fault_class));
  for (const Kernel* k : right) add(*k, {}, {});
  const bool show = !o.quiet && !o.json && isatty(STDERR_FILENO) != 0;
  std::size_t done = 0;
  std::vector<nlohmann::json> results = falsify::run_tasks(tasks, o.jobs, [&](const nlohmann::json* ended) {
    done += ended != nullptr;
    if (show) fmt::print(stderr, "\r\x1b[K{} of {} kernels", done, tasks.size());
  });
  if (show) fmt::print(stderr, "\r\x1b[K");
  const nlohmann::json report = policies::policy_report(std::move(results), {{"seed", o.judge.seed},
                                                                             {"cases", o.judge.cases},
                                                                             {"ops", o.ops},
                                                                             {"backend", chosen.backend},
                                                                             {"automatic", o.automatic},
                                                                             {"sample", o.sample}});
  if (!o.report.empty()) write(report, o.report);
  fmt::print("{}", o.json ? report.dump(1) + "\n" : policies::policy_table(report));
  return ours_is_best(report) ? kNothingFalsified : kFalsified;
}

}  // namespace assay::cli
