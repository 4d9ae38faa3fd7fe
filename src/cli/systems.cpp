#include "cli/systems.hpp"

#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <map>

#include "cli/commands.hpp"
#include "core/errors.hpp"
#include "core/files.hpp"
#include "falsify/engine/joint.hpp"
#include "falsify/engine/pool.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/mutation/study/summary.hpp"
#include "falsify/program/block_faults.hpp"
#include "falsify/program/step_rules.hpp"
#include "falsify/program/system.hpp"

namespace assay::cli {
namespace systems_command {
namespace {

using falsify::find_system;
using falsify::System;
using falsify::SystemKernel;
using falsify::Wiring;
using nlohmann::json;

/// The differentiated program of a case with everything at once.
program::Program whole_program(const System& system) {
  return falsify::Block(block_of(system, everything(system))).differentiated().program;
}

/// The case in which a process was when it ended.
struct Last {
  std::string obligation;
  json the_case;
  int number = 0;
};

/// How many steps the program of a case has. Obligations take turns at two cases.
class StepsOf {
 public:
  std::int64_t operator()(const System& system, const falsify::Case& c) {
    for (const auto& [known, steps] : known_)
      if (known && *known == c) return steps;
    std::swap(known_[0], known_[1]);
    known_[0] = {c, std::ssize(falsify::Block(block_of(system, c)).differentiated().program.steps)};
    return known_[0].second;
  }

 private:
  std::pair<std::optional<falsify::Case>, std::int64_t> known_[2];
};

/// Ends this process once it has worked for so long on every core, or after the same patience as a call's (worker.cpp):
/// what others make of the machine is no hang. Called again, it begins anew.
void limit_time(std::chrono::milliseconds limit) {
  constexpr int kPatience = 5;
  const auto seconds = limit.count() / 1000 + 1,
             cores = static_cast<std::int64_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  itimerval work{};
  work.it_value.tv_sec = seconds * cores;
  setitimer(ITIMER_PROF, &work, nullptr);
  alarm(static_cast<unsigned>(std::min<std::int64_t>(kPatience * seconds, UINT_MAX)));
}

}  // namespace
}  // namespace systems_command

using namespace systems_command;

bool name_systems(const std::vector<std::string>& names) {
  const auto named = std::ranges::count_if(names, [](const std::string& n) { return find_system(n) != nullptr; });
  if (named != 0 && named != std::ssize(names))
    throw InputError("selection", "names systems and operations", "name the ones or the others");
  return named != 0;
}

std::vector<SystemKernel> kernels_of_systems(const std::vector<std::string>& names, const std::string& backend,
                                             const std::string& kernel) {
  if (!backend.empty()) backend_from(backend);
  const Kernel* const of_steps = kernel.empty() ? nullptr : &assay::kernel(kernel);
  std::vector<SystemKernel> chosen;
  for (const std::string& name : names) {
    const System& system = *find_system(name);
    const auto is_its = [&](const program::Step& step) { return step.op->name == of_steps->op; };
    if (of_steps != nullptr && std::ranges::none_of(whole_program(system).steps, is_its))
      throw InputError("--kernel " + kernel, fmt::format("{} has no step that is {}", name, of_steps->op),
                       fmt::format("`assay explain {}` lists its steps", name));
    for (const Backend b : kBackends) {
      if (of_steps != nullptr ? of_steps->backend != b : !backend.empty() && backend_from(backend) != b) continue;
      if (backend.empty() && std::ranges::none_of(kernels(), [&](const Kernel& k) { return k.backend == b; })) continue;
      chosen.emplace_back(system, b, of_steps);
    }
  }
  return chosen;
}

std::vector<Index> dims_of_system(const std::vector<std::string>& names, const std::string& dims, std::uint64_t seed) {
  if (dims.empty()) return {};
  if (names.size() > 1)
    throw InputError("--dims " + dims, "gives a shape to several systems",
                     "name one, as in `assay falsify attention_block --dims s=16,length=16`");
  const System& system = *find_system(names[0]);
  std::vector<Index> given = falsify::dims_from_text(system.op, dims, "--dims " + dims);
  block_of(system, draw(system, true, seed, given));
  return given;
}

std::vector<json> falsify_systems(const std::vector<SystemKernel>& chosen, const falsify::CampaignOptions& options,
                                  int jobs, const falsify::PoolProgress& progress, falsify::Journal* journal,
                                  std::int64_t elements) {
  std::map<std::string, Last> last;  // by kernel
  std::vector<falsify::Task> tasks;
  for (const SystemKernel& k : chosen) {
    const std::string id(k.kernel().id);
    if (journal != nullptr && journal->finished(id)) continue;
    const auto before = [&, steps_of = StepsOf()](const falsify::SystemObligation& o, const falsify::Case& c,
                                                  int number) mutable {
      falsify::send({{"obligation", o.info.id}, {"case", to_json(k.system().op, c)}, {"number", number}});
      limit_time(traits(k.kernel().backend).time_factor * options.limit * steps_of(k.system(), c));
    };
    const auto died = [&](int status) {
      const Last& at = last[std::string(k.kernel().id)];
      if (at.number == 0) throw std::logic_error("the driver of a system ended before its first case");
      const bool hang = WIFSIGNALED(status) && (WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF);
      return ended_in(k, at.obligation, falsify::case_from_json(k.system().op, at.the_case, "case"), at.number,
                      hang ? falsify::Finding::Kind::hang : falsify::Finding::Kind::crash,
                      hang ? "its steps take longer than --limit each"
                           : fmt::format("the process that runs the program ended with wait status {:#x}", status));
    };
    tasks.push_back(
        {id, [&k, &options, before, elements] { return run_campaign(k, options, before, elements); }, died});
  }
  falsify::PoolStatus status{.kernels = static_cast<int>(tasks.size())};
  const auto tick = [&](const json* ended) {
    if (ended != nullptr && journal != nullptr) journal->add_result(*ended);
    status.finished += ended != nullptr, status.last = ended;
    status.work_done = status.finished, status.cases_done = 0;
    for (const auto& [kernel, at] : last) status.cases_done += at.number;
    if (progress) progress(status);
  };
  std::vector<json> results = falsify::run_tasks(tasks, jobs, tick, [&](const falsify::Task& task, const json& sent) {
    last[task.name] = {sent["obligation"], sent["case"], sent["number"]};
  });
  if (journal != nullptr) std::ranges::copy(journal->results(), std::back_inserter(results));
  return results;
}

std::optional<int> replay_system(const std::string& file, bool as_json) {
  const json replay = json::parse(files::read(file, "name a file written by `assay falsify`"), nullptr, false);
  if (!replay.is_object() || !replay.contains("op") || !replay["op"].is_string()) return {};
  const System* system = find_system(replay["op"].get<std::string>());
  if (system == nullptr) return {};
  for (const char* key : {"schema", "kernel", "obligation", "case"})
    if (!replay.contains(key) || replay[key].is_string() == (std::string_view(key) == "case"))
      throw InputError(file, fmt::format("the key '{}' is missing or of another type", key),
                       "name a file written by `assay falsify`");
  if (replay["schema"] != falsify::kReplaySchema)
    throw InputError(file, fmt::format("has the schema {}", replay["schema"].dump()),
                     fmt::format("this version reads {}", falsify::kReplaySchema));
  const SystemKernel kernel = SystemKernel::from_id(*system, replay["kernel"].get<std::string>());
  const falsify::Case c = falsify::case_from_json(system->op, replay["case"], file + ": case");
  const auto obligation = replay["obligation"].get<std::string>();
  const falsify::Outcome outcome = run_case(kernel, obligation, c);
  const bool falsified = outcome.kind == falsify::Outcome::Kind::falsified;
  const bool passed = outcome.kind == falsify::Outcome::Kind::passed;
  const std::string verdict = falsified ? "falsified" : passed ? "passed" : "not run: " + outcome.reason;
  if (as_json) {
    fmt::print("{}\n", json{{"schema", "assay-replayed/1"},
                            {"kernel", kernel.kernel().id},
                            {"obligation", obligation},
                            {"verdict", verdict},
                            {"message", falsified ? outcome.finding->message : ""},
                            {"case", to_json(system->op, c)}}
                           .dump(2));
  } else {
    fmt::print("{}  {}  {}\n  case     {}\n", kernel.kernel().id, obligation, verdict, describe(system->op, c));
    if (falsified) fmt::print("  {:<8} {}\n", name(outcome.finding->kind), outcome.finding->message);
  }
  return falsified ? kFalsified : passed ? kNothingFalsified : kUnavailable;
}

std::vector<json> gradcheck_system(const std::string& name, int cases, std::uint64_t seed) {
  const System& system = *find_system(name);
  if (system.part == falsify::BlockPart::decode)
    throw InputError(name, "it has no gradients: nothing trains while it decodes", "check training_forward");
  struct Link {
    falsify::Outcome outcome;
    std::string detail;
  };
  std::map<std::string, std::pair<int, std::map<std::string, Link>>> leaves;
  std::vector<std::string> order;
  for (int number = 0; number < cases; ++number) {
    const falsify::Case c = gradient_case(system, number, seed);
    const Wiring wiring(block_of(system, c));
    const std::vector<std::vector<double>> got = wiring.run(wiring.right());
    const std::vector<falsify::Expected> by_complex_step = wiring.by_complex_step();
    for (std::size_t row = Wiring::kRuns; row < Wiring::kRuns + by_complex_step.size(); ++row) {
      const falsify::Expected& expected = wiring.expected()[row];
      if (!leaves.contains(expected.name)) order.push_back(expected.name);
      auto& [count, links] = leaves[expected.name];
      ++count;
      const auto gather = [&](const char* link, const falsify::Expected& want) {
        Link& so_far = links[link];
        const falsify::Outcome outcome = judge(want, got[row]);
        const bool worse = outcome.worst > so_far.outcome.worst || (outcome.finding && !so_far.outcome.finding);
        so_far.outcome &= outcome;
        if (worse)
          so_far.detail = fmt::format("{}{}", falsify::describe_extents(system.op, c.dims, c.params),
                                      outcome.finding ? ": " + outcome.finding->message : "");
      };
      gather("equations", expected), gather("complex step", by_complex_step[row - Wiring::kRuns]);
    }
  }
  std::vector<json> rows;
  for (const std::string& leaf : order) {
    const auto& [count, links] = leaves[leaf];
    json row{{"op", name},
             {"input", leaf},
             {"id", "FALSIFY-SYS-003"},
             {"equation", "derivative of the equations, of two runs"},
             {"cases", count},
             {"holds", true},
             {"links", json::array()}};
    for (const auto& [link, so_far] : links) {
      if (so_far.outcome.finding || so_far.outcome.elements == 0) row["holds"] = false;
      row["links"].push_back({{"link", link},
                              {"worst", so_far.outcome.worst},
                              {"compared", so_far.outcome.elements},
                              {"detail", so_far.detail}});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

namespace systems_command {
namespace {

/// Judges one mutant by the equations.
json judge_mutant(const System& system, std::string_view of, const Wiring& wiring, const falsify::ProgramMutant& m) {
  json j{{"mutant", fmt::format("{}/{}{}{}", system.op.name, of, of.empty() ? "" : ": ", m.description)},
         {"op", system.op.name},
         {"fault", name(m.fault)},
         {"seconds", 0.0}};
  const std::vector<std::vector<double>> got = wiring.run(m);
  for (std::size_t row = 0; row < got.size(); ++row) {
    const falsify::Expected& expected = wiring.expected()[row];
    const falsify::Outcome outcome = judge(expected, got[row]);
    if (!outcome.finding) continue;
    const bool gradient = expected.claim == "FALSIFY-SYS-003";
    j.update(
        {{"status", name(falsify::MutantStatus::killed)},
         {"by", expected.claim},
         {"cases", 1},
         {"finding", fmt::format("{}{}: {}", gradient ? "gradient of " : "", expected.name, outcome.finding->message)},
         {"smallest", ""}});
    return j;
  }
  j["status"] = name(wiring.equivalent(m) ? falsify::MutantStatus::equivalent : falsify::MutantStatus::survived);
  return j;
}

std::vector<falsify::ProgramMutant> all_mutants(falsify::BlockPart part, const Wiring& wiring, bool automatic) {
  if (automatic) return wiring.mutants();
  std::vector<falsify::ProgramMutant> planted;
  const auto plant_all = [&](std::span<const falsify::BlockFault> faults) {
    for (const falsify::BlockFault& fault : faults) {
      try {
        planted.push_back(plant(fault, wiring.differentiated().program));
      } catch (const InputError&) {  // the system has no such step
      }
    }
  };
  const bool decodes = part == falsify::BlockPart::decode, step = part == falsify::BlockPart::step;
  plant_all(decodes ? falsify::decode_faults() : step ? falsify::step_faults() : falsify::block_faults());
  if (!decodes && !step && part != falsify::BlockPart::feed_forward) plant_all(falsify::batch_faults());
  if (part == falsify::BlockPart::training) plant_all(falsify::training_faults());
  return planted;
}

}  // namespace
}  // namespace systems_command

std::vector<json> mutants_of_systems(const std::vector<std::string>& names, bool automatic, int jobs) {
  std::vector<falsify::Task> tasks;
  for (const std::string& name : names)
    for (const auto& [of, c] : mutated_cases(*find_system(name)))
      for (int part = 0; part < jobs; ++part)
        tasks.push_back({name, [&name, of, c, part, jobs, automatic] {
                           const System& system = *find_system(name);
                           const Wiring wiring(block_of(system, c));
                           const std::vector<falsify::ProgramMutant> mutants =
                               all_mutants(system.part, wiring, automatic);
                           json results = json::array();
                           for (std::size_t m = static_cast<std::size_t>(part); m < mutants.size();
                                m += static_cast<std::size_t>(jobs))
                             results.push_back(judge_mutant(system, of, wiring, mutants[m]));
                           return results;
                         }});
  std::vector<json> all;
  for (const json& results : falsify::run_tasks(tasks, jobs, [](const json*) {}))
    all.insert(all.end(), results.begin(), results.end());
  std::ranges::sort(all, {}, [](const json& m) { return m["mutant"].get<std::string>(); });
  return all;
}

json policies_of_step(int jobs) {
  const System& system = *find_system("training_step");
  std::vector<falsify::Task> tasks;
  for (const auto& [of, c] : mutated_cases(system))
    for (int part = 0; part < jobs; ++part)
      tasks.push_back({"training_step", [&system, of, c, part, jobs] {
                         const falsify::BlockCase block = block_of(system, c);
                         const Wiring wiring(block);
                         const falsify::StepRules rules(block);
                         std::vector<falsify::ProgramMutant> mutants = all_mutants(system.part, wiring, false);
                         mutants.push_back(wiring.right());
                         json results = json::array();
                         for (auto m = static_cast<std::size_t>(part); m < mutants.size();
                              m += static_cast<std::size_t>(jobs)) {
                           const bool right = m + 1 == mutants.size();
                           json j{{"mutant", right ? "" : mutants[m].description}, {"case", of}};
                           const std::vector<bool> accepted = rules.accept(mutants[m]);
                           for (std::size_t r = 0; r < accepted.size(); ++r)
                             j["accepted"][std::string(falsify::step_rules()[r].name)] = static_cast<bool>(accepted[r]);
                           const json judged = judge_mutant(system, of, wiring, mutants[m]);
                           if (judged["status"] == name(falsify::MutantStatus::equivalent) && !right) continue;
                           j["accepted"]["assay"] = judged["status"] != name(falsify::MutantStatus::killed);
                           results.push_back(j);
                         }
                         return results;
                       }});
  // A mutant is let through that is accepted in every case that has it.
  std::map<std::string, std::map<std::string, bool>> accepted;
  json rows = json::array();
  for (const json& results : falsify::run_tasks(tasks, jobs, [](const json*) {}))
    for (const json& j : results)
      for (const auto& [rule, verdict] : j["accepted"].items()) {
        const auto at = accepted[rule].emplace(j["mutant"], true).first;
        at->second = at->second && verdict.get<bool>();
      }
  const auto row = [&](const std::string& rule, std::string_view compares, std::string_view source) {
    json missed = json::array();
    for (const auto& [mutant, verdict] : accepted[rule])
      if (verdict && !mutant.empty()) missed.push_back(mutant);
    rows.push_back({{"policy", rule},
                    {"compares", compares},
                    {"source", source},
                    {"mutants", accepted[rule].size() - 1},
                    {"let_through", missed.size()},
                    {"missed", missed},
                    {"accepts_the_right_step", accepted[rule].at("")}});
  };
  row("assay", "losses, gradients, norms, updates to the derived bounds of double", "this repository");
  for (const falsify::StepRule& rule : falsify::step_rules()) row(std::string(rule.name), rule.compares, rule.source);
  return {{"schema", "assay-policies/1"}, {"system", "training_step"}, {"policies", rows}};
}

json explain_system(const std::string& which) {
  const System& system = *find_system(which);
  const falsify::BlockCase c = block_of(system, everything(system, true));
  const falsify::Block block(c);
  const program::Program forward = block.builder.program(), whole = block.differentiated().program;
  json j{{"schema", "assay-explain/1"},
         {"op", system.op.name},
         {"summary", system.op.summary},
         {"contract", system.op.file}};
  for (const std::string_view e : system.op.equations) j["equations"].push_back(e);
  for (const std::string_view from : system.op.sources) j["sources"].push_back(from);
  for (const DimInfo& d : system.op.dims)
    j["dims"].push_back({{"name", d.name}, {"min", d.min}, {"max", d.max}, {"says", d.says}});
  for (const ParamInfo& p : system.op.params) {
    j["params"].push_back({{"name", p.name}, {"typical", p.typical}, {"says", p.says}});
    if (!p.choices.empty()) j["params"].back()["choices"] = std::vector<double>(p.choices.begin(), p.choices.end());
    else j["params"].back().update({{"min", p.min}, {"max", p.max}});
  }
  // The extents of this case differ from one another, so that each has one name.
  const program::TransformerConfig& t = c.config;
  const std::map<Index, std::string> extents{{t.hidden, "hidden"},
                                             {t.intermediate, "intermediate"},
                                             {t.heads * t.head_dim, "heads * head_dim"},
                                             {t.kv_heads * t.head_dim, "kv_heads * head_dim"},
                                             {t.head_dim, "head_dim"},
                                             {t.vocabulary, "vocabulary"},
                                             {c.classes, "classes"},
                                             {t.adapters.rank, "rank"}};
  for (const program::Parameter& p : forward.parameters) {
    const Shape& shape = forward[p.value].shape;
    std::string extent;
    for (int axis = 0; axis < shape.rank(); ++axis) extent += (axis > 0 ? ", " : "") + extents.at(shape[axis]);
    j["parameters"].push_back({{"name", p.name}, {"shape", "[" + extent + "]"}});
  }
  for (std::size_t s = 0; s < whole.steps.size(); ++s)
    j["steps"].push_back(
        {{"label", whole.steps[s].label}, {"op", whole.steps[s].op->name}, {"backward", s >= forward.steps.size()}});
  for (const ObligationInfo& o : system.op.obligations)
    j["obligations"].push_back({{"id", o.id}, {"claim", o.claim}, {"by", o.by}, {"if_fails", o.if_fails}});
  return j;
}

std::string explanation_text(const json& j) {
  const auto in = [](const json& x, const char* key) { return x[key].get<std::string>(); };
  std::string out = fmt::format("{}: {}\n", in(j, "op"), in(j, "summary"));
  for (const json& e : j["equations"]) out += fmt::format("  {}\n", e.get<std::string>());
  out += "\nDims\n";
  for (const json& d : j["dims"])
    out += fmt::format("  {} from {} to {}: {}\n", in(d, "name"), d["min"].dump(), d["max"].dump(), in(d, "says"));
  out += "\nParams\n";
  for (const json& p : j["params"])
    out += fmt::format("  {} {}: {}\n", in(p, "name"),
                       p.contains("choices") ? "one of " + p["choices"].dump()
                                             : fmt::format("from {} to {}", p["min"].dump(), p["max"].dump()),
                       in(p, "says"));
  out += "\nParameters, with everything at once\n";
  for (const json& p : j["parameters"]) out += fmt::format("  {:<44} {}\n", in(p, "name"), in(p, "shape"));
  for (const bool backward : {false, true}) {
    out += backward ? "\nBackward steps\n" : "\nSteps\n";
    for (const json& s : j["steps"])
      if (s["backward"] == backward) out += fmt::format("  {} ({})\n", in(s, "label"), in(s, "op"));
  }
  out += "\nFalsified by\n";
  for (const json& o : j["obligations"])
    out += fmt::format("  {:<18} {} (if it fails, suspect: {})\n", in(o, "id"), in(o, "claim"), in(o, "if_fails"));
  out += "\nSources\n";
  for (const json& s : j["sources"]) out += fmt::format("  {}\n", s.get<std::string>());
  return out;
}

}  // namespace assay::cli
