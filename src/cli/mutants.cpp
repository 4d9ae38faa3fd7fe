// `assay mutants`: runs the suites on wrong kernels. A survivor is a gap in the suites.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "cli/automatic.hpp"
#include "cli/commands.hpp"
#include "cli/policies.hpp"
#include "cli/progress.hpp"
#include "cli/selection.hpp"
#include "cli/systems.hpp"
#include "cli/values.hpp"
#include "core/files.hpp"
#include "falsify/engine/percentile.hpp"
#include "falsify/engine/pool.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/mutation/study/summary.hpp"

namespace assay::cli {
namespace mutants_command {
namespace {

struct Options : Output {
  std::vector<std::string> ops;
  std::string backend, report, limit = "2s", seed = "1";
  int cases = 50;
  int jobs = 0;
  bool shrink = false;
  bool automatic = false;
  std::string kernel, mutant, screened, accepted, family;
  int sample = 0, attack_cases = 2000;
  bool matrix = false;
  bool policies = false;
  bool faults = false;
};

/// Returns the result for one mutant. With `matrix`, every obligation was tried on it.
nlohmann::json judge(const nlohmann::json& kernel, bool matrix) {
  nlohmann::json j{{"mutant", kernel["kernel"]},
                   {"op", kernel["op"]},
                   {"fault", kernel.value("fault", "")},
                   {"status", name(kernel["status"] == "falsified"     ? falsify::MutantStatus::killed
                                   : kernel["status"] == "unavailable" ? falsify::MutantStatus::unavailable
                                                                       : falsify::MutantStatus::survived)},
                   {"seconds", kernel["seconds"]}};
  for (const auto& o : kernel["obligations"]) {
    if (o["verdict"] == "unavailable") j["why"] = o["reason"];
    if (!o.contains("counterexample")) continue;
    if (matrix) j["matrix"].push_back(o["id"]);
    const auto& x = o["counterexample"];
    if (j.contains("by") && j["cases"] <= x["number"]) continue;  // another obligation found it earlier
    j.update({{"by", o["id"]}, {"cases", x["number"]}, {"finding", x["finding"]["message"]}, {"smallest", x["says"]}});
  }
  return j;
}

std::string totals(const nlohmann::json& summary) {
  return fmt::format("{} mutants: {} killed, {} survived, {} unavailable; cases to kill: median {}, 95th percentile {}",
                     summary["mutants"].size(), summary["killed"].dump(), summary["survived"].dump(),
                     summary["unavailable"].dump(), summary["median_cases"].dump(), summary["p95_cases"].dump());
}

void print(const nlohmann::json& summary) {
  const bool classes = summary.contains("classes");
  std::size_t width = 6;
  for (const auto& m : summary["mutants"]) width = std::max(width, m["mutant"].get<std::string>().size());
  fmt::print("{:<{}}  {:<16}  {:>5}  {}fault\n", "mutant", width, "killed by", "cases",
             classes ? fmt::format("{:<14}  ", "class") : "");
  for (const auto& m : summary["mutants"]) {
    using enum falsify::MutantStatus;
    const falsify::MutantStatus status = falsify::status_of(m);
    fmt::print("{:<{}}  {:<16}  {:>5}  {}{}{}\n", m["mutant"].get<std::string>(), width,
               status == killed     ? m["by"].get<std::string>()
               : status == survived ? "SURVIVED"
                                    : std::string(name(status)),
               status == killed ? m["cases"].dump() : "",
               classes ? fmt::format("{:<14}  ", m["class"].get<std::string>()) : "", m["fault"].get<std::string>(),
               m.contains("why") ? " (" + m["why"].get<std::string>() + ")" : "");
    if (status == killed && summary["shrunk"].get<bool>())
      fmt::print("{:<{}}    {}\n", "", width, m["smallest"].get<std::string>());
  }
  if (summary["matrix"].get<bool>()) fmt::print("{}", falsify::obligations_text(summary["obligations"], true));
  if (classes) {
    fmt::print("\n{:<14}  {:>6}  {:>6}  {:>12}\n", "class", "faults", "killed", "median cases");
    for (const auto& [name, n] : summary["classes"].items())
      fmt::print("{:<14}  {:>6}  {:>6}  {:>12}\n", name, n["mutants"].dump(), n["killed"].dump(),
                 n["median_cases"].dump());
  }
  fmt::print("\n{}\n", totals(summary));
}

/// Maps the options to those of automatic mutants: shorter campaigns, since most mutants die in the first cases.
AutomaticOptions automatic(const Options& o, bool cases_given) {
  AutomaticOptions a{.ops = o.ops,
                     .backend = o.backend,
                     .kernel = o.kernel,
                     .mutant = o.mutant,
                     .report = o.report,
                     .screened = o.screened,
                     .accepted = o.accepted,
                     .sample = static_cast<std::size_t>(o.sample),
                     .study = {},
                     .jobs = jobs_for(o.jobs),
                     .json = o.json,
                     .quiet = o.quiet};
  if (cases_given) a.study.cases = o.cases;
  a.study.attack_cases = o.attack_cases;
  a.study.seed = parse_seed(o.seed);
  a.study.limit = parse_duration("--limit", o.limit);
  a.study.matrix = o.matrix;
  return a;
}

PolicyOptions policies(const Options& o, bool limit_given) {
  if (!o.kernel.empty() || !o.mutant.empty() || !o.screened.empty() || o.matrix)
    throw InputError("--policies", "takes no --kernel, --mutant, --matrix or --screened",
                     "name operations and a back end");
  PolicyOptions p{.ops = o.ops,
                  .backend = o.backend,
                  .automatic = o.automatic,
                  .sample = static_cast<std::size_t>(o.sample),
                  .report = o.report,
                  .judge = {.cases = o.cases, .seed = parse_seed(o.seed)},
                  .jobs = jobs_for(o.jobs),
                  .json = o.json,
                  .quiet = o.quiet};
  if (limit_given) p.judge.limit = parse_duration("--limit", o.limit);
  return p;
}

/// Returns kFalsified if another rule lets fewer mutants through than ours, or ours rejects the right step.
int run_step_policies(const Options& o) {
  const nlohmann::json report = policies_of_step(jobs_for(o.jobs));
  const nlohmann::json& rows = report["policies"];
  if (!o.report.empty()) files::write(o.report + "/policies.json", report.dump(1) + "\n");
  if (o.json) {
    fmt::print("{}\n", report.dump(1));
  } else {
    fmt::print("{:<18} {:>11}  {:<10}  {}\n", "policy", "let through", "right step", "compares");
    for (const auto& row : rows)
      fmt::print("{:<18} {:>5} of {:>2}  {:<10}  {}\n", row["policy"].get<std::string>(), row["let_through"].dump(),
                 row["mutants"].dump(), row["accepts_the_right_step"].get<bool>() ? "accepted" : "REJECTED",
                 row["compares"].get<std::string>());
  }
  const bool best =
      std::ranges::all_of(rows, [&](const auto& row) { return row["let_through"] >= rows[0]["let_through"]; });
  return best && rows[0]["accepts_the_right_step"] ? kNothingFalsified : kFalsified;
}

/// Program mutants: each is judged in double, by the equations of its system.
int run_systems(const Options& o) {
  if (o.policies && o.ops == std::vector<std::string>{"training_step"} && !o.automatic) return run_step_policies(o);
  if (!o.backend.empty() || !o.kernel.empty() || !o.mutant.empty() || !o.family.empty() || !o.screened.empty() ||
      !o.accepted.empty() || o.sample != 0 || o.shrink || o.matrix || o.policies || o.faults)
    throw InputError(
        "selection",
        "of the options, systems take --automatic, --report, --jobs and --json, training_step also --policies",
        "leave the others out");
  if (!o.report.empty()) falsify::expect_writable(o.report);
  const std::vector<nlohmann::json> outcomes = mutants_of_systems(o.ops, o.automatic, jobs_for(o.jobs));
  nlohmann::json summary{{"schema", "assay-mutants/1"},
                         {"shrunk", false},
                         {"matrix", false},
                         {"mutants", outcomes},
                         {"operations", falsify::counts_by(outcomes, "op")},
                         {"obligations", nlohmann::json::object()}};
  for (const auto& m : outcomes) {
    if (!m.contains("by")) continue;
    nlohmann::json& n = summary["obligations"][m["op"].get<std::string>()][m["by"].get<std::string>()];
    if (n.is_null()) n = {{"by", "equations"}, {"first", 0}, {"kills", 0}, {"alone", 0}};
    n["first"] = n["first"].get<int>() + 1;
  }
  using enum falsify::MutantStatus;
  for (const falsify::MutantStatus status : {killed, survived, equivalent, unavailable})
    summary[std::string(name(status))] =
        std::ranges::count_if(outcomes, [&](const auto& m) { return falsify::status_of(m) == status; });
  const auto judged = outcomes.size() - summary["equivalent"].get<std::size_t>();
  const std::string score = fmt::format(
      "{} mutants: {} killed, {} survived, {} equal to the program in fifty digits; {:.1f}% of the others die",
      outcomes.size(), summary["killed"].dump(), summary["survived"].dump(), summary["equivalent"].dump(),
      judged == 0 ? 0 : 100 * summary["killed"].get<double>() / static_cast<double>(judged));
  if (!o.report.empty()) {
    files::write(std::filesystem::path(o.report) / "mutants.json", summary.dump(1) + "\n");
    falsify::write_mutants(summary, score, o.report);
  }
  if (o.json) {
    fmt::print("{}\n", summary.dump(1));
  } else {
    for (const auto& m : outcomes)
      fmt::print("{:<16}  {}\n{}",
                 falsify::status_of(m) == survived ? "SURVIVED" : m.value("by", m["status"].get<std::string>()),
                 m["mutant"].get<std::string>(),
                 m.contains("finding") ? fmt::format("{:<16}    {}\n", "", m["finding"].get<std::string>()) : "");
    fmt::print("\n{}\n", score);
  }
  return summary["survived"] != 0 ? kFalsified : kNothingFalsified;
}

int run(const Options& o) {
  if (!o.backend.empty()) backend_from(o.backend);
  for (const std::string& op : o.ops) operation_named(op);
  std::vector<const Kernel*> chosen;
  for (const Kernel& k : kernels())
    if (k.role == KernelRole::mutant && k.scored == o.faults && (o.backend.empty() || name(k.backend) == o.backend) &&
        (o.ops.empty() || std::ranges::find(o.ops, k.op) != o.ops.end()) &&
        (o.family.empty() || k.id.starts_with("mutant/" + o.family + "/")))
      chosen.push_back(&k);
  if (chosen.empty() && !o.backend.empty()) device(backend_from(o.backend));  // throws with the reason if it is missing
  if (chosen.empty()) throw InputError("selection", "no mutant matches it", "leave the options out to run all of them");
  falsify::CampaignOptions options;
  options.cases = o.cases;
  options.seed = parse_seed(o.seed);
  options.limit = parse_duration("--limit", o.limit);
  options.stop_at_first = !o.matrix;
  options.shrink = o.shrink;
  if (!o.report.empty()) falsify::expect_writable(o.report);
  ProgressLine line(o.quiet || o.json, {}, "mutants");
  std::vector<nlohmann::json> results =
      falsify::run_pool(chosen, options, jobs_for(o.jobs), [&](const falsify::PoolStatus& s) { line.update(s); });
  line.finish();
  nlohmann::json report = falsify::make_report(std::move(results), {{"seed", o.seed}, {"cases", o.cases}}, 0);
  if (!o.report.empty()) falsify::write_report(report, o.report);
  nlohmann::json summary{{"schema", "assay-mutants/1"},
                         {"shrunk", o.shrink},
                         {"matrix", o.matrix},
                         {"killed", 0},
                         {"survived", 0},
                         {"unavailable", 0},
                         {"mutants", nlohmann::json::array()}};
  std::vector<double> cases;
  for (const auto& k : report["kernels"]) {
    summary["mutants"].push_back(judge(k, o.matrix));
    auto& m = summary["mutants"].back();
    if (o.faults) m["class"] = kernel(m["mutant"].get<std::string>()).fault_class;
    const falsify::MutantStatus status = falsify::status_of(m);
    nlohmann::json& count = summary[std::string(name(status))];
    count = count.get<int>() + 1;
    if (status == falsify::MutantStatus::killed) cases.push_back(m["cases"].get<double>());
  }
  summary["median_cases"] = falsify::median(cases);
  summary["p95_cases"] = falsify::percentile(cases, 0.95);
  const auto outcomes = summary["mutants"].get<std::vector<nlohmann::json>>();
  summary["operations"] = falsify::counts_by(outcomes, "op");
  summary["obligations"] = falsify::by_obligation(outcomes);
  if (o.faults) summary["classes"] = falsify::counts_by(outcomes, "class");
  if (!o.report.empty()) {
    files::write(std::filesystem::path(o.report) / "mutants.json", summary.dump(1) + "\n");
    falsify::write_mutants(summary, totals(summary), o.report);
  }
  if (o.json) fmt::print("{}\n", summary.dump(1));
  else print(summary);
  if (summary["survived"] != 0) return kFalsified;
  return !o.backend.empty() && summary["unavailable"] != 0 ? kUnavailable : kNothingFalsified;
}

}  // namespace
}  // namespace mutants_command

Command add_mutants(Parser& parser) {
  using namespace mutants_command;
  auto o = std::make_shared<Options>();
  auto command = parser.command("mutants", "Try the suites on wrong kernels: every one must be falsified", *o);
  command.option("OP", o->ops, "Operations (all of them by default), or systems");
  command.option("--backend", o->backend, "Only mutants of this back end: cpu, cuda-host, vulkan, cuda");
  command.option("--family", o->family,
                 "Only mutants whose id begins so: adversarial are those that pass tests without computing");
  const auto cases =
      command.option("--cases", o->cases, "Cases for each obligation before a mutant counts as surviving")
          .with_default()
          .range(1, 1'000'000);
  command.option("--seed", o->seed, "Seed of the campaigns").with_default();
  const auto limit = command.option("--limit", o->limit, kLimitHelp).with_default();
  const auto faults = command.flag(
      "--faults", o->faults,
      "Instead of mutants that every suite must kill, the realistic faults (`scored` in falsify/mutation/faults), by class: the "
      "score of campaigns as `assay falsify` runs them (100 cases, 10s)");
  command.option(
      "--report", o->report,
      "Write mutants.html, mutants.json and junit.xml to this folder, and for hand-written mutants what `assay falsify` writes");
  command.option("--jobs", o->jobs, "Campaigns at once (0: one per processor)").range(0, 1024);
  const auto shrink = command.flag("--shrink", o->shrink, "Shrink each counterexample and print the smallest case");
  const auto automatic_flag =
      command
          .flag("--automatic", o->automatic, "Mutants of kernels' own code, one place at a time (15 cases by default)")
          .excludes(shrink)
          .excludes(faults);
  const auto with_it = [&](const Option& option) { option.needs(automatic_flag); };
  with_it(command.option("--kernel", o->kernel, "--automatic: only mutants of this kernel"));
  with_it(command.option("--mutant", o->mutant, "--automatic: only the mutant of this hash (quicker with --kernel)"));
  with_it(command.option("--sample", o->sample, "--automatic: number of mutants, drawn by the seed (0: all)")
              .range(0, 10'000'000));
  with_it(command
              .option("--attack-cases", o->attack_cases,
                      "--automatic: cases on which a survivor is compared with its kernel, bit by bit")
              .with_default()
              .range(1, 10'000'000));
  command.flag("--matrix", o->matrix,
               "Try every obligation on each mutant: which kills what, and which kills nothing alone");
  with_it(command.option(
      "--screened", o->screened,
      "--automatic, on a GPU: the JSON report of the same mutants on lavapipe; only those that ended run"));
  with_it(command.option("--accepted", o->accepted,
                         "--automatic: a JSON list of survivors that need no obligation, with reasons"));
  command
      .flag(
          "--policies", o->policies,
          "Judge the same mutants, and the right kernels, under other projects' rules, and print a table (cpu and cuda-host "
          "unless --backend names another)")
      .excludes(shrink)
      .excludes(faults);
  return {command, [o, cases, limit] {
            if (name_systems(o->ops)) return run_systems(*o);
            if (o->faults && !cases.given()) o->cases = falsify::CampaignOptions{}.cases;
            if (o->faults && !limit.given()) o->limit = "10s";
            if (o->policies) return run_policies(policies(*o, limit.given()));
            return o->automatic ? run_automatic(automatic(*o, cases.given())) : run(*o);
          }};
}

}  // namespace assay::cli
