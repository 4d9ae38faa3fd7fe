// `assay gradcheck`: every gradient of every contract, link by link.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/selection.hpp"
#include "cli/systems.hpp"
#include "cli/values.hpp"
#include "falsify/engine/gradients.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::cli {
namespace gradcheck_command {
namespace {

using falsify::GradientCase;
using falsify::GradientReport;
using falsify::LinkResult;

struct Options : Output {
  std::vector<std::string> ops;
  std::string backend, seed = "1";
  int cases = 10;
};

/// Runs kernels in one worker per back end, guarded as in a campaign.
class Runner {
 public:
  std::vector<std::vector<float>> run(const Kernel& kernel, const falsify::Problem& problem) {
    auto& worker = workers_[kernel.backend];
    if (!worker) worker = std::make_unique<falsify::Worker>(std::chrono::seconds(30), std::size_t{1} << 28);
    const falsify::Case plain{.dims = problem.dims,
                              .params = problem.params,
                              .strategy = {},
                              .layout = {},
                              .placement = {},
                              .seed = 1,
                              .prelude = {},
                              .values = {}};
    falsify::Trial trial(*problem.op, kernel, plain, *worker);
    ++calls_;
    return trial.run(problem).outputs;
  }
  /// Returns whether the kernel's device is available.
  bool available(const Kernel& kernel) {
    const OpDescriptor& op = operation(kernel.op);
    falsify::Case one;
    one.dims.assign(op.dims.size(), 1);
    falsify::make_valid(op, one.dims);
    for (const ParamInfo& param : op.params) one.params.push_back(param.typical);
    try {
      run(kernel, make_problem(op, one, kernel.arithmetic, kernel.storage));
      return true;
    } catch (const Unavailable&) {
      return false;
    } catch (const falsify::Interrupted&) {
      return true;  // the actual run will report the failure
    }
  }

  int calls() const { return calls_; }

 private:
  int calls_ = 0;
  std::map<Backend, std::unique_ptr<falsify::Worker>> workers_;
};

/// Worst result over all cases, by link.
using Worst = std::map<falsify::Link, LinkResult>;

void gather(Worst& worst, const GradientReport& report) {
  for (const LinkResult& link : report.links) {
    LinkResult& so_far = worst.try_emplace(link.link, LinkResult{.link = link.link, .detail = {}}).first->second;
    so_far.compared += link.compared;
    if (!(link.worst <= so_far.worst)) so_far.worst = link.worst, so_far.detail = link.detail;
  }
}

bool holds(const Worst& worst) {
  return !worst.empty() && std::ranges::all_of(worst, [](const auto& entry) {
    return entry.second.worst <= 1 && entry.second.compared > 0;
  });
}

/// Adds the links to kernels. A case whose dims a kernel's limits exclude leaves out this kernel; any other failure is
/// returned.
std::string check_kernels(GradientReport& report, const GradientCase& c, Runner& runner,
                          std::vector<const Kernel*> kernels) {
  for (;;) {
    const Kernel* running = nullptr;
    bool excluded = false;
    GradientReport with = report;
    try {
      falsify::check_kernels(with, c, falsify::backward_oracle(c.op->name), kernels,
                             [&](const Kernel& k, const falsify::Problem& p) {
                               running = &k;
                               excluded = k.limits != nullptr && k.limits->refuse(p.dims, p.params);
                               return runner.run(k, p);
                             });
      report = std::move(with);
      return "";
    } catch (const falsify::Interrupted& e) {
      if (e.outcome.finding) return e.outcome.finding->message;
      if (e.outcome.kind != falsify::Outcome::Kind::refused || !excluded) return e.outcome.reason;
      std::erase(kernels, running);
    }
  }
}

nlohmann::json check(const OpDescriptor& op, const GradientInfo& gradient, const Options& o, Runner& runner,
                     std::span<const Kernel* const> kernels) {
  Worst worst;
  std::string failure;
  falsify::Random random(falsify::derive(parse_seed(o.seed), gradient.id));
  for (int number = 0; number < o.cases; ++number) {
    const GradientCase c = falsify::draw_gradient_case(op, gradient.input, random.bits());
    GradientReport report = check_references(c, falsify::oracle(op.name), falsify::backward_oracle(op.name));
    if (std::string why = check_kernels(report, c, runner, {kernels.begin(), kernels.end()}); !why.empty())
      failure = why;
    gather(worst, report);
  }
  nlohmann::json j{{"op", op.name},
                   {"input", op.tensors[static_cast<std::size_t>(gradient.input)].name},
                   {"id", gradient.id},
                   {"equation", gradient.equation},
                   {"cases", o.cases},
                   {"holds", holds(worst) && failure.empty()},
                   {"links", nlohmann::json::array()}};
  if (!failure.empty()) j["failure"] = failure;
  for (const auto& [link, result] : worst)
    j["links"].push_back(
        {{"link", name(link)}, {"worst", result.worst}, {"compared", result.compared}, {"detail", result.detail}});
  return j;
}

/// Prints what was found. Returns the exit code.
int show(const Options& o, const nlohmann::json& gradients, int calls, const std::vector<std::string>& missing) {
  const bool all = std::ranges::all_of(gradients, [](const auto& g) { return g["holds"].template get<bool>(); });
  if (o.json) {
    fmt::print(
        "{}\n",
        nlohmann::json{{"schema", "assay-gradcheck/1"}, {"gradients", gradients}, {"unavailable", missing}}.dump(1));
    return all ? kNothingFalsified : kFalsified;
  }
  std::size_t width = 6;
  for (const auto& g : gradients) width = std::max(width, g["input"].get<std::string>().size());
  fmt::print("{:<14} {:<{}} {:<18} {:>9} {:>10}  where\n", "op", "input", width, "link", "compared", "worst");
  for (const auto& g : gradients) {
    for (const auto& link : g["links"])
      fmt::print("{:<14} {:<{}} {:<18} {:>9} {:>10.3g}  {}\n", g["op"].get<std::string>(),
                 g["input"].get<std::string>(), width, link["link"].get<std::string>(), link["compared"].dump(),
                 link["worst"].get<double>(), link["detail"].get<std::string>());
    if (!g["holds"].get<bool>())
      fmt::print("{} of {} DOES NOT HOLD {}\n", g["input"].dump(), g["op"].dump(), g.value("failure", ""));
  }
  fmt::print(
      "\n{} gradients, {} calls of kernels, {} kernels unavailable here: {}; worst is the largest difference / tolerance\n",
      gradients.size(), calls, missing.size(), all ? "every link holds" : "NOT every link holds");
  return all ? kNothingFalsified : kFalsified;
}

int run(const Options& o) {
  if (!o.backend.empty()) backend_from(o.backend);
  nlohmann::json gradients = nlohmann::json::array();
  if (name_systems(o.ops)) {
    for (const std::string& system : o.ops)
      for (nlohmann::json& leaf : gradcheck_system(system, o.cases, parse_seed(o.seed)))
        gradients.push_back(std::move(leaf));
    return show(o, gradients, 0, {});
  }
  for (const std::string& op : o.ops) operation_named(op);
  Runner runner;
  std::vector<const Kernel*> kernels;
  std::vector<std::string> missing;
  for (const Kernel& k : assay::kernels()) {
    if (k.role == KernelRole::mutant || (!o.backend.empty() && name(k.backend) != o.backend)) continue;
    if (runner.available(k)) kernels.push_back(&k);
    else missing.emplace_back(k.id);
  }
  if (!o.backend.empty() && kernels.empty())
    throw Unavailable("backend " + o.backend, "none of its kernels can run here");
  const int before = runner.calls();
  for (const OpDescriptor* op : operations()) {
    if (!o.ops.empty() && std::ranges::find(o.ops, op->name) == o.ops.end()) continue;
    for (const GradientInfo& gradient : op->gradients) gradients.push_back(check(*op, gradient, o, runner, kernels));
  }
  return show(o, gradients, runner.calls() - before, missing);
}

}  // namespace
}  // namespace gradcheck_command

Command add_gradcheck(Parser& parser) {
  using namespace gradcheck_command;
  auto o = std::make_shared<Options>();
  auto command =
      parser.command("gradcheck", "Every gradient of every contract: exact derivatives, differences, kernels", *o);
  command.option("OP", o->ops, "Operations (all of them by default), or systems: a row for every leaf");
  command.option("--backend", o->backend, "Only kernels of this back end: cpu, cuda-host, vulkan, cuda");
  command.option("--cases", o->cases, "Random points for each gradient").with_default().range(1, 1'000'000);
  command.option("--seed", o->seed, "Seed of the points").with_default();
  return {command, [o] { return run(*o); }};
}

}  // namespace assay::cli
