// `assay attest`: evidence from a campaign on this machine's devices.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <set>

#include "cli/built_from.hpp"
#include "cli/commands.hpp"
#include "cli/environment.hpp"
#include "cli/local_devices.hpp"
#include "cli/progress.hpp"
#include "cli/selection.hpp"
#include "cli/values.hpp"
#include "core/files.hpp"
#include "falsify/engine/pool.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/gate/evidence.hpp"
#include "falsify/gate/signature.hpp"
#include "plugin/python.hpp"
#include "system/interrupt.hpp"

namespace assay::cli {
namespace attest_command {
namespace {

namespace fs = std::filesystem;

struct Options : Output {
  std::vector<std::string> ops;
  std::string python, contract, declare, backend, kernel, root = ".", out, key, report, limit = "10s", seed = "1";
  int cases = 2 * falsify::kMinDraws;
  int jobs = 0;
};

/// Returns the registered kernels of this project that need evidence, by id.
std::map<std::string, falsify::Subject> select(const Options& o) {
  const auto expect_need = [](const std::string& option, Backend backend) {
    if (!falsify::needs_evidence(backend))
      throw InputError(option, "needs no evidence: the gate falsifies kernels of this back end itself",
                       "attest kernels of cuda or vulkan");
  };
  if (!o.backend.empty()) expect_need("--backend " + o.backend, backend_from(o.backend));
  if (!o.kernel.empty()) expect_need("--kernel " + o.kernel, kernel(o.kernel).backend);
  for (const std::string& op : o.ops) operation_named(op);
  std::map<std::string, falsify::Subject> chosen;
  for (falsify::Subject& s : falsify::subjects()) {
    const bool registered = std::ranges::any_of(kernels(), [&](const Kernel& k) { return k.id == s.id; });
    if (!registered || !falsify::needs_evidence(s.backend) || (!o.kernel.empty() && s.id != o.kernel) ||
        (!o.backend.empty() && name(s.backend) != o.backend))
      continue;
    if (o.ops.empty() || std::ranges::find(o.ops, s.op) != o.ops.end()) chosen.emplace(s.id, std::move(s));
  }
  if (chosen.empty() && !o.backend.empty()) device(backend_from(o.backend));  // throws with the reason if it is missing
  if (chosen.empty())
    throw InputError("selection", "no kernel of Assay's own matches it", "`assay list` prints what there is");
  return chosen;
}

std::string current_date() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

/// Writes the lines of these kernels, signed if there is a key, and keeps those of other kernels. Returns the files.
std::set<std::string> write(const Options& o, std::vector<nlohmann::json> evidence) {
  const fs::path folder = o.out.empty() ? fs::path(o.root) / falsify::kEvidenceFolder : fs::path(o.out);
  std::map<std::string, std::map<std::string, std::string>> lines_of;
  for (nlohmann::json& e : evidence) {
    const std::string kernel = e["kernel"].get<std::string>(),
                      path = (folder / falsify::evidence_file(kernel)).string();
    auto& lines = lines_of[path];
    if (lines.empty() && fs::exists(path)) {
      const falsify::EvidenceLines old =
          falsify::evidence_lines(files::read(path, "name a file of evidence that `assay attest` wrote"));
      if (!old.flaws.empty())
        throw InputError(fmt::format("{}:{}", path, old.flaws[0].first), old.flaws[0].second,
                         "remove the line, or the file, which is then written anew");
      for (const auto& [other, line] : old.of_kernel) lines[other] = line.text;
    }
    if (!o.key.empty()) e["signature"] = falsify::sign(falsify::signed_text(e), o.key);
    lines[kernel] = falsify::evidence_text(e);
  }
  std::set<std::string> written;
  for (const auto& [path, lines] : lines_of) {
    std::string text;
    for (const auto& [kernel, line] : lines) text += line + "\n";
    files::write(path, text);
    written.insert(path);
  }
  return written;
}

int run(const Options& o) {
  if (!o.python.empty()) throw plugin::NeedsPython("kernels in Python are attested in an interpreter");
  if (!falsify::is_shipped(kBuild))
    throw InputError("assay attest", fmt::format("this build is {}", kBuild),
                     "evidence is of what is shipped: cmake --preset release");
  const std::map<std::string, falsify::Subject> chosen = select(o);
  const falsify::Tree tree = falsify::working_tree(o.root);
  falsify::Fingerprints fingerprints(tree);
  std::map<std::string, falsify::Fingerprint> prints;
  std::set<Backend> used;
  std::vector<const Kernel*> run;
  for (const auto& [id, subject] : chosen) {
    expect_built_from(prints[id] = fingerprints.of(subject), tree, o.root);
    used.insert(subject.backend);
    run.push_back(&kernel(id));
  }
  used.insert(Backend::vulkan);  // the environment includes the Vulkan driver
  const auto devices = local_devices({used.begin(), used.end()});
  for (const auto& [id, subject] : chosen)
    if (o.out.empty() && devices.at(subject.backend).here && devices.at(subject.backend).on_processor)
      throw InputError(
          "assay attest",
          fmt::format("the device of {} runs on the processor, and evidence is of a GPU", name(subject.backend)),
          "--out DIR writes what it comes to elsewhere");
  const falsify::Environment environment = local_environment(devices.at(Backend::vulkan));
  falsify::CampaignOptions options;
  options.cases = o.cases;
  options.seed = parse_seed(o.seed);
  options.limit = parse_duration("--limit", o.limit);
  const auto begin = std::chrono::steady_clock::now();
  ProgressLine line(o.quiet || o.json);
  std::vector<nlohmann::json> results;  // results present when a signal ends the run are complete
  int signal = 0;
  try {
    const CatchSignals catching;
    falsify::run_pool(run, options, jobs_for(o.jobs), [&](const falsify::PoolStatus& s) {
      if (s.last != nullptr) results.push_back(*s.last);
      line.update(s);
    });
  } catch (const EndedBySignal& ended) {
    signal = ended.signal;
  }
  line.finish();
  const std::size_t finished = results.size();
  nlohmann::json report =
      falsify::make_report(std::move(results), {{"seed", o.seed}, {"cases", o.cases}, {"obligation", ""}},
                           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  if (!o.report.empty()) falsify::write_report(report, o.report);
  std::vector<nlohmann::json> evidence;
  for (const nlohmann::json& k : report["kernels"]) {
    if (k["status"] != "passed" || !report["never_evaluated"].empty()) continue;
    const std::string id = k["kernel"].get<std::string>();
    const LocalDevice& local = devices.at(chosen.at(id).backend);
    evidence.push_back(falsify::make_evidence(k, prints.at(id),
                                              {.seed = options.seed,
                                               .draws = o.cases,
                                               .on_processor = local.on_processor,
                                               .driver = local.driver,
                                               .build = std::string(kBuild),
                                               .made = current_date(),
                                               .environment = environment}));
  }
  const std::size_t attested = evidence.size();
  report["evidence"] = write(o, std::move(evidence));
  if (o.json) fmt::print("{}\n", report.dump(1));
  else fmt::print("{}{} of {} kernels attested\n", falsify::table(report), attested, chosen.size());
  if (signal != 0) {
    fmt::print(stderr, "assay: interrupted by SIG{} after {} of {} kernels; what is said and written is of these\n",
               sigabbrev_np(signal), finished, chosen.size());
    return 128 + signal;
  }
  if (falsify::report_failed(report)) return kFalsified;
  if (report["totals"]["thin"] != 0) return kThin;
  return attested == chosen.size() ? kNothingFalsified : kUnavailable;
}

}  // namespace
}  // namespace attest_command

Command add_attest(Parser& parser) {
  using namespace attest_command;
  auto o = std::make_shared<Options>();
  auto command =
      parser.command("attest", "Write evidence of campaigns on this machine's devices, for `assay gate` elsewhere", *o);
  command.option("OP", o->ops, "Operations (all of them by default)");
  const auto python =
      command.option("--python", o->python,
                     "A function of your own in Python, as FILE.py:FUNCTION; --out is a file (assay-evidence.jsonl)");
  command.option("--contract", o->contract, "--python: the operation that it computes").needs(python);
  command.option("--declare", o->declare, "--python: what it promises, as in `assay falsify`").needs(python);
  command.option("--backend", o->backend, "Only kernels of this back end: cpu, cuda-host, vulkan, cuda");
  command.option("--kernel", o->kernel, "Only this kernel");
  command.option("--cases", o->cases, "Cases for each obligation and kernel")
      .with_default()
      .range(falsify::kMinDraws, 1'000'000);
  command.option("--seed", o->seed, "Seed of the campaigns").with_default();
  command.option("--limit", o->limit, kLimitHelp).with_default();
  command.option("--key", o->key, "Sign with this SSH key (ssh-keygen -Y sign)");
  command.option("--root", o->root, "The checkout that this assay was built from").with_default();
  command.option("--out", o->out, "Write to this folder instead of ROOT/ci/evidence");
  command.option("--report", o->report, "Write report.json, junit.xml and replay files to this folder");
  command.option("--jobs", o->jobs, "Campaigns at once (0: one per processor)").range(0, 1024);
  return {command, [o] { return run(*o); }};
}

}  // namespace assay::cli
