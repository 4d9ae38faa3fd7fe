// `assay gate`: kernels touched by a change are falsified or have evidence; all others are proven unchanged. Systems
// are falsified on the CPU if their sources change.
#include "falsify/gate/gate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>

#include "cli/built_from.hpp"
#include "cli/commands.hpp"
#include "cli/environment.hpp"
#include "cli/local_devices.hpp"
#include "cli/progress.hpp"
#include "cli/publish.hpp"
#include "cli/systems.hpp"
#include "cli/values.hpp"
#include "core/files.hpp"
#include "falsify/engine/pool.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/gate/environment.hpp"
#include "falsify/gate/evidence.hpp"
#include "falsify/gate/inputs.hpp"
#include "falsify/gate/ledger.hpp"
#include "plugin/python.hpp"
#include "system/sha256.hpp"

namespace assay::cli {
namespace gate_command {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

/// Default time of a gate run: kTime, or for many touched kernels the time that `ci/falsify` gives each kernel.
constexpr milliseconds kTime{40'000}, kTimeOfEach{1'000};
/// Maximum number of kernels named on a line of the summary, and of lines about inputs that no hash covers.
constexpr std::size_t kNamed = 6, kShown = 20;
/// Cases of each obligation of a system: the fewest whose verdict is not thin.
constexpr int kSystemCases = 34;
static_assert(kSystemCases >= falsify::kMinDepth * falsify::kDefaultCases);

struct Options : Output {
  std::string python, base, root = ".", build, time, report, signers, seed, limit = "10s";
  std::vector<std::string> agreed;
  int jobs = 0;
  bool all = false, lock = false, plan = false;
};

/// State determined before any campaign runs.
struct Plan {
  std::string base;  ///< commit; empty: no comparison
  falsify::Tree before, now;
  std::vector<falsify::Subject> subjects;
  std::vector<falsify::ChangedKernel> touched;
  std::map<std::string, std::string>
      systems;                      ///< sources of systems that differ from the base: current digests by path
  std::string machine;              ///< differences from ci/environment.lock, in a sentence
  std::vector<std::string> unseen;  ///< inputs that no hash covers, a sentence each
  std::string older;                ///< a source that this program was not built from
};

/// Returns the environment of this machine, and of the build that --build names.
falsify::Environment this_machine(const falsify::Build* build) {
  falsify::Environment here = local_environment(local_devices({Backend::vulkan}).at(Backend::vulkan));
  if (build != nullptr) here.merge(falsify::options_of(*build));
  return here;
}

std::unique_ptr<falsify::Build> build_of(const Options& o) {
  return o.build.empty() ? nullptr : std::make_unique<falsify::Build>(falsify::read_build(o.build, o.root));
}

/// Throws InputError for a value that would be refused only where it is used, after minutes or in some runs alone.
void expect_right(const Options& o, const std::vector<falsify::Subject>& subjects) {
  if (o.base.empty() != o.all)
    throw InputError("assay gate", "needs either --base or --all",
                     "name the revision that is merged into: --base origin/main");
  if (!o.time.empty()) parse_duration("--time", o.time);
  parse_duration("--limit", o.limit);
  if (!o.seed.empty()) parse_seed(o.seed);
  if (!o.signers.empty()) files::expect_regular(o.signers, "name a file of allowed signers with --signers");
  for (const std::string& kernel : o.agreed)
    if (std::ranges::find(subjects, kernel, &falsify::Subject::id) == subjects.end())
      throw InputError("--agree " + kernel, "is no kernel", "name one by its id, as `assay list` does");
}

/// Returns the digest of every file that only systems depend on.
std::map<std::string, std::string> sources_of_systems(const falsify::Tree& tree) {
  falsify::Includes includes(tree);
  std::map<std::string, std::string> digests;
  for (const char* folder : {"src/program/", "falsify/program/"})
    for (const std::string& path : tree.below(folder)) digests[path] = includes.own_digest(path);
  return digests;
}

Plan make_plan(const Options& o) {
  Plan plan;
  plan.subjects = falsify::subjects();
  expect_right(o, plan.subjects);
  if (std::ranges::none_of(plan.subjects, [](const auto& s) { return s.backend == Backend::vulkan; }))
    throw Unavailable(
        "vulkan",
        "this build has no Vulkan kernels and could not tell that they changed: configure with ASSAY_VULKAN=ON");
  plan.now = falsify::working_tree(o.root);
  if (!o.all) {
    plan.base = falsify::departure(o.root, o.base);
    plan.before = falsify::committed_tree(o.root, plan.base);
  }
  const std::unique_ptr<falsify::Build> build = build_of(o);
  if (build != nullptr) {
    plan.unseen = falsify::unseen_inputs(*build, plan.subjects, falsify::hashed_files(plan.subjects, plan.now));
    if (std::string why = falsify::changed_arithmetic(); !why.empty()) plan.unseen.push_back(std::move(why));
  }
  plan.older = not_built_from(plan.now, o.root);
  // What the build reads is what the program was built from only if it was built from these sources.
  if (build != nullptr && plan.unseen.empty() && !plan.older.empty()) throw not_built_from_error(plan.older);
  const falsify::Environment machine = this_machine(build.get());
  plan.machine = falsify::machine_sentence(falsify::lock_of(plan.now), machine);
  plan.touched = falsify::touched(plan.subjects, plan.before, plan.now, machine);
  const std::map<std::string, std::string> was = sources_of_systems(plan.before), is = sources_of_systems(plan.now);
  for (const auto* one : {&was, &is})
    for (const auto& [path, digest] : *one)
      if (!was.contains(path) || !is.contains(path) || was.at(path) != is.at(path))
        plan.systems[path] = is.contains(path) ? is.at(path) : "";
  return plan;
}

/// Returns one line for all kernels touched by the same files.
std::string summary(const Plan& plan, const Options& o) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const falsify::ChangedKernel& t : plan.touched) {
    std::vector<std::string_view> parts;
    for (const falsify::Part part : t.why.parts) parts.push_back(name(part));
    std::vector<std::string> files = t.why.files;
    if (!t.why.environment.empty()) parts.push_back("environment");
    files.insert(files.begin(), t.why.environment.begin(), t.why.environment.end());
    const std::size_t shown = std::min(files.size(), kNamed);
    groups[fmt::format("{} ({}{})", fmt::join(parts, ", "),
                       fmt::join(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                       files.size() > shown ? fmt::format(" and {} more", files.size() - shown) : "")]
        .push_back(t.subject.id);
  }
  std::string text = plan.machine.empty() ? "" : plan.machine + "\n";
  if (o.build.empty())
    text += "not checked: whether the build reads files that no hash covers (--build build/release does)\n";
  if (!plan.older.empty())
    text +=
        fmt::format("this assay is older than {}: kernels added or removed since are not in the plan\n", plan.older);
  text += fmt::format("{} of {} kernels touched since {}\n", plan.touched.size(), plan.subjects.size(),
                      plan.base.empty() ? "the beginning" : plan.base.substr(0, 12));
  for (const auto& [why, ids] : groups) {
    const std::size_t shown = std::min(ids.size(), kNamed);
    text += fmt::format("  {}\n    {}{}\n", why,
                        fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                        ids.size() > shown ? fmt::format(" and {} more", ids.size() - shown) : "");
  }
  if (!plan.systems.empty()) {
    std::vector<std::string_view> files;
    for (const auto& [path, digest] : plan.systems)
      if (files.size() < kNamed) files.push_back(path);
    const std::size_t more = plan.systems.size() - files.size();
    text += fmt::format("all systems touched\n  ({}{})\n", fmt::join(files, ", "),
                        more > 0 ? fmt::format(" and {} more", more) : "");
  }
  return text;
}

json to_json(const falsify::ChangedKernel& t) {
  json parts = json::array();
  for (const falsify::Part part : t.why.parts) parts.push_back(name(part));
  json hashes = json::object();
  for (const auto& [part, files] : t.fingerprint) hashes[std::string(name(part))] = files->hash;
  return {{"kernel", t.subject.id},
          {"parts", parts},
          {"files", t.why.files},
          {"environment", t.why.environment},
          {"hashes", hashes}};
}

/// Returns a seed that depends on the sources only: different changes meet different cases.
std::uint64_t seed_of(const Plan& plan) {
  std::string text;
  for (const falsify::ChangedKernel& t : plan.touched)
    for (const auto& [part, files] : t.fingerprint) text += files->hash;
  for (const auto& [path, digest] : plan.systems) text += digest;
  std::uint64_t seed = 0;
  const std::string digest = sha256(text);
  std::from_chars(digest.data(), digest.data() + 16, seed, 16);
  return seed;
}

/// Back ends available here, and the back ends that need no evidence.
struct LocalKernels {
  std::vector<const Kernel*> kernels;
  falsify::EvidenceRules rules;
};

LocalKernels look_around(const Plan& plan, const Options& o) {
  LocalKernels here;
  here.rules.signers = o.signers;
  if (!plan.base.empty())
    here.rules.agreements = falsify::agreements(falsify::trailers(o.root, plan.base, "Gate-agree"), plan.subjects);
  for (const Backend backend : kBackends)
    if (traits(backend).host) here.rules.runs_here.insert(backend), here.rules.proven_here.insert(backend);
  std::set<Backend> asked;  // starting a device takes time: only those needed
  for (const falsify::ChangedKernel& t : plan.touched)
    if (!traits(t.subject.backend).host) asked.insert(t.subject.backend);
  for (const auto& [backend, local] : local_devices({asked.begin(), asked.end()})) {
    if (local.here) here.rules.runs_here.insert(backend);
    if (local.here && !local.on_processor) here.rules.proven_here.insert(backend);
  }
  for (const falsify::ChangedKernel& t : plan.touched) {
    if (!here.rules.runs_here.contains(t.subject.backend)) continue;
    for (const Kernel& k : kernels())
      if (k.id == t.subject.id) here.kernels.push_back(&k);
    expect_built_from(t.fingerprint, plan.now, o.root);
  }
  return here;
}

milliseconds total_time(const Options& o, std::size_t kernels, int jobs) {
  if (!o.time.empty()) return parse_duration("--time", o.time);
  return std::max(kTime, kTimeOfEach * static_cast<int>(kernels) / jobs);
}

/// Compares the current figures of each kernel with the evidence of the base. Skips figures of a processor that stands
/// in for a GPU if the evidence is of a GPU.
std::vector<falsify::WorseFigure> compare(const Plan& plan, const json& report,
                                          const std::vector<falsify::Checked>& evidence,
                                          const std::set<Backend>& proven_here) {
  std::vector<falsify::WorseFigure> worse;
  const std::map<std::string, json> recorded = falsify::recorded(plan.before);
  const auto add = [&](const std::string& kernel, const json& now, bool on_processor) {
    const auto before = recorded.find(kernel);
    if (before == recorded.end() || (on_processor && before->second.value("on_processor", true) == false)) return;
    for (falsify::WorseFigure& w : falsify::grown(kernel, before->second["obligations"], now))
      worse.push_back(std::move(w));
  };
  const bool stand_in = !proven_here.contains(Backend::vulkan);
  for (const json& k : report["kernels"])
    add(k["kernel"].get<std::string>(), k["obligations"], stand_in && k["backend"] == name(Backend::vulkan));
  for (const falsify::Checked& c : evidence)
    if (c.accepted) add(c.kernel, c.figures["obligations"], false);
  return worse;
}

/// Counts passed kernels for which no obligation had as many cases as `assay falsify` would run.
int shallow(const json& report) {
  int count = 0;
  for (const json& k : report["kernels"]) {
    std::int64_t depth = 0;
    for (const json& o : k["obligations"]) depth = std::max(depth, o["cases"].get<std::int64_t>());
    count += k["status"] == "passed" && depth < falsify::kMinDraws;
  }
  return count;
}

/// Returns the commands that make all refused evidence of a back end. Each kernel's own command is in its reason.
std::string renewal(const std::vector<falsify::Checked>& evidence) {
  std::map<std::string, int> refused;
  for (const falsify::Checked& c : evidence) {
    const std::size_t first = c.kernel.find('/') + 1;
    if (!c.accepted) ++refused[c.kernel.substr(first, c.kernel.find('/', first) - first)];
  }
  std::string text;
  for (const auto& [backend, count] : refused)
    if (count > 1) text += fmt::format("to make all {} of {}: assay attest --backend {}\n", count, backend, backend);
  return text;
}

/// Results of the campaigns and of the evidence.
struct Result {
  json report;
  std::vector<falsify::Checked> evidence;
  std::vector<falsify::WorseFigure> worse;
  falsify::Agreements agreements;
};

json plan_json(const Plan& plan) {
  json document{{"schema", "assay-gate/1"}, {"base", plan.base},     {"kernels", plan.subjects.size()},
                {"machine", plan.machine},  {"unseen", plan.unseen}, {"older_than", plan.older}};
  document["systems"] = json::array();
  for (const auto& [path, digest] : plan.systems) document["systems"].push_back(path);
  document["touched"] = json::array();
  for (const falsify::ChangedKernel& t : plan.touched) document["touched"].push_back(to_json(t));
  return document;
}

json to_json(const Plan& plan, const Result& result) {
  json document = plan_json(plan);
  document.update({{"evidence", json::array()}, {"ledger", json::array()}, {"report", result.report}});
  for (const falsify::Checked& c : result.evidence)
    document["evidence"].push_back(
        {{"kernel", c.kernel}, {"accepted", c.accepted}, {"reason", c.reason}, {"warning", c.warning}});
  for (const falsify::WorseFigure& w : result.worse)
    document["ledger"].push_back({{"kernel", w.kernel},
                                  {"obligation", w.obligation},
                                  {"figure", w.figure},
                                  {"before", w.before},
                                  {"now", w.now}});
  return document;
}

std::string to_text(const Result& result) {
  std::string text = result.report["kernels"].empty() ? "" : falsify::table(result.report);
  if (!result.evidence.empty()) {
    const auto accepted = std::ranges::count_if(result.evidence, &falsify::Checked::accepted);
    text += fmt::format("evidence: {} accepted, {} refused\n", accepted,
                        static_cast<std::ptrdiff_t>(result.evidence.size()) - accepted);
  }
  text += renewal(result.evidence);
  std::map<std::string, int> elsewhere;
  for (const falsify::Checked& c : result.evidence)
    if (!c.warning.empty()) ++elsewhere[c.warning];
  for (const auto& [how, count] : elsewhere)
    text += fmt::format("warning: evidence of {} kernels was made with {}\n", count, how);
  for (const falsify::WorseFigure& w : result.worse) text += fmt::format("WORSE {}\n", to_string(w));
  if (const int few = shallow(result.report); few > 0)
    text += fmt::format("{} kernels had fewer than {} cases of each obligation: --time gives them more\n", few,
                        falsify::kMinDraws);
  return text;
}

/// Tries all systems on the CPU: their sources are the same on every back end, and each step's kernel is falsified there.
std::vector<json> judge_systems(const Plan& plan, const Options& o, std::uint64_t seed) {
  std::vector<std::string> names;
  for (const falsify::System& system : falsify::systems()) names.emplace_back(system.op.name);
  if (plan.systems.empty() || names.empty()) return {};
  auto sources = std::make_shared<falsify::Files>();
  sources->digests = sources_of_systems(plan.now);
  sources->digests.insert(plan.systems.begin(), plan.systems.end());  // what was removed
  expect_built_from({{falsify::Part::kernel, sources}}, plan.now, o.root);
  falsify::CampaignOptions options;
  options.cases = kSystemCases, options.seed = seed, options.limit = parse_duration("--limit", o.limit);
  const int jobs = jobs_for(o.jobs), count = static_cast<int>(names.size());
  if (!o.time.empty()) {
    options.cases = falsify::kGateDraws;
    options.time = parse_duration("--time", o.time) * std::min(jobs, count) / count;
  }
  if (!o.json) fmt::print("falsifying all systems on the CPU, seed {}\n", seed);
  std::fflush(stdout);
  ProgressLine line(o.quiet || o.json, {.kernel = options.time, .jobs = jobs}, "systems");
  auto results = falsify_systems(kernels_of_systems(names, "cpu", ""), options, jobs,
                                 [&](const falsify::PoolStatus& s) { line.update(s); });
  line.finish();
  return results;
}

Result judge(const Plan& plan, const Options& o) {
  const auto begin = std::chrono::steady_clock::now();
  const LocalKernels here = look_around(plan, o);
  const int jobs = jobs_for(o.jobs), count = std::max(1, static_cast<int>(here.kernels.size()));
  const milliseconds time = total_time(o, here.kernels.size(), jobs);
  falsify::CampaignOptions options;
  options.cases = falsify::kGateDraws;
  options.time = time * std::min(jobs, count) / count;
  options.to_floor = o.time.empty();
  options.seed = o.seed.empty() ? seed_of(plan) : parse_seed(o.seed);
  options.limit = parse_duration("--limit", o.limit);
  if (!o.json && !here.kernels.empty())
    fmt::print("falsifying {} of them in about {} s, seed {}\n", here.kernels.size(), (time.count() + 999) / 1000,
               options.seed);
  std::fflush(stdout);
  Result result;
  result.agreements = here.rules.agreements;
  result.evidence = falsify::check_evidence(plan.subjects, plan.touched, plan.before, plan.now, here.rules);
  ProgressLine line(o.quiet || o.json, {.whole = time, .kernel = options.time, .jobs = jobs});
  auto results = falsify::run_pool(here.kernels, options, jobs, [&](const falsify::PoolStatus& s) { line.update(s); });
  line.finish();
  std::ranges::move(judge_systems(plan, o, options.seed), std::back_inserter(results));
  for (const falsify::Checked& c : result.evidence)
    if (!c.accepted) results.push_back(falsify::refused_entry(c));
  result.report = falsify::make_report(std::move(results),
                                       {{"base", plan.base},
                                        {"seed", std::to_string(options.seed)},
                                        {"cases", falsify::kGateDraws},
                                        {"time", fmt::format("{}ms", time.count())},
                                        {"obligation", ""}},
                                       std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  result.worse = compare(plan, result.report, result.evidence, here.rules.proven_here);
  return result;
}

/// Adds the entries of this machine to the lock file; entries of absent components stay.
int write_lock(const Options& o) {
  const falsify::Tree tree = falsify::working_tree(o.root);
  const std::filesystem::path path = std::filesystem::path(o.root) / falsify::kLockFile;
  const std::unique_ptr<falsify::Build> build = build_of(o);
  const falsify::Environment machine = this_machine(build.get());
  falsify::Environment lock = falsify::lock_of(tree);
  if (build != nullptr)
    std::erase_if(lock, [](const auto& entry) { return entry.first.starts_with(falsify::kOptionsOf); });
  for (const auto& [name, value] : machine) lock[name] = value;
  files::write(path, falsify::lock_text(lock));
  if (o.json) fmt::print("{}\n", json{{"schema", "assay-lock/1"}, {"environment", lock}}.dump(1));
  else if (!o.quiet) fmt::print("{}", falsify::lock_text(lock));
  return kNothingFalsified;
}

int run(const Options& o) {
  if (!o.python.empty()) throw plugin::NeedsPython("the code of kernels in Python is read by an interpreter");
  if (o.lock) return write_lock(o);
  const Plan plan = make_plan(o);
  if (!o.json) fmt::print("{}", summary(plan, o));
  std::fflush(stdout);
  for (std::size_t i = 0; i < plan.unseen.size() && i < kShown; ++i)
    fmt::print(stderr, "assay gate: {}\n", plan.unseen[i]);
  if (plan.unseen.size() > kShown) fmt::print(stderr, "assay gate: and {} more\n", plan.unseen.size() - kShown);
  if (o.plan || !plan.unseen.empty()) {
    if (o.json) fmt::print("{}\n", plan_json(plan).dump(1));
    return plan.unseen.empty() ? kNothingFalsified : kFalsified;
  }
  Result result = judge(plan, o);
  if (!o.report.empty()) falsify::write_report(result.report, o.report);
  else if (result.report["totals"]["falsified"] != 0) write_replays_here(result.report);
  const std::string document = to_json(plan, result).dump(1) + "\n";
  if (!o.report.empty()) files::write(std::filesystem::path(o.report) / "gate.json", document);
  fmt::print("{}", o.json ? document : to_text(result));
  std::fflush(stdout);
  announce(result.report);
  const bool stopped = std::ranges::any_of(result.worse, [&](const falsify::WorseFigure& w) {
    return w.stops() && std::ranges::find(o.agreed, w.kernel) == o.agreed.end() &&
           falsify::agreed(result.agreements, w.kernel) == nullptr;
  });
  if (falsify::report_failed(result.report) || stopped) return kFalsified;
  const json& totals = result.report["totals"];
  if (totals["thin"] != 0) return kThin;
  return totals["unavailable"] != 0 || totals["refused"] != 0 ? kUnavailable : kNothingFalsified;
}

}  // namespace
}  // namespace gate_command

Command add_gate(Parser& parser) {
  using namespace gate_command;
  auto o = std::make_shared<Options>();
  auto command =
      parser.command("gate", "Try to prove wrong what a change touches; ask for evidence of what cannot run here", *o);
  const auto base = command.option("--base", o->base, "The revision that the change is to be merged into");
  command.option("--python", o->python, "Check this evidence of kernels in Python, and nothing else").excludes(base);
  command.flag("--all", o->all, "Every kernel, whatever changed").excludes(base);
  command.flag("--lock", o->lock, "Write what this machine has to ci/environment.lock, and run nothing").excludes(base);
  command.option(
      "--time", o->time,
      "Falsify kernels about this long in all, and systems as long again, as in 90s, 10m, however thin verdicts are (default: 40s, or 1s a kernel where many are touched, and as much more as it takes for none to be)");
  command.option("--signers", o->signers,
                 "Evidence must be signed by one of these (a file of allowed signers: man ssh-keygen)");
  command.option("--root", o->root, "The checkout that this assay was built from").with_default();
  command.option(
      "--build", o->build,
      "A build of this checkout: refuse what it reads and no hash covers, and compare its options with ci/environment.lock");
  command.option("--seed", o->seed, "Seed of the campaigns (default: made from the sources)");
  command.option("--limit", o->limit, kLimitHelp).with_default();
  command.option("--report", o->report, "Write gate.json, report.json, junit.xml and replay files to this folder");
  command.option("--jobs", o->jobs, "Campaigns at once (0: one per processor)").range(0, 1024);
  command.option("--agree", o->agreed, "This kernel may refuse more cases than its evidence says (may be given again)");
  command.flag("--plan", o->plan, "Say what is touched, and run nothing");
  return {command, [o] { return run(*o); }};
}

}  // namespace assay::cli
