#include "falsify/engine/trial.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "falsify/engine/draw.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify {
namespace {

Finding structural(std::string kind, std::string message) { return {std::move(kind), std::move(message), "", {}, 0, 0, 0}; }

/// A reply other than `done` ends the check. `advice`: of a kernel that has never returned as one does.
[[noreturn]] void interrupt(const Reply& reply, std::string_view advice) {
  using Status = Reply::Status;
  Outcome outcome;
  const auto went_wrong = [&](std::string_view how) {
    const std::string text = fmt::format("{}: {}", how, reply.detail);
    return advice.empty() ? text : fmt::format("{} ({})", advice, text);
  };
  switch (reply.status) {
    case Status::refused:
      outcome.kind = Outcome::Kind::refused;
      outcome.reason = reply.detail;
      break;
    case Status::unavailable: throw Unavailable("the kernel's device", reply.detail);
    case Status::invalid: throw InvalidCase(reply.detail);
    case Status::violated: outcome = Outcome::falsify(structural("contract", reply.detail)); break;
    case Status::failed: outcome = Outcome::falsify(structural("error", went_wrong("the call failed"))); break;
    case Status::crashed: outcome = Outcome::falsify(structural("crash", went_wrong("the kernel crashed"))); break;
    case Status::hung: outcome = Outcome::falsify(structural("hang", went_wrong("the kernel did not return"))); break;
    case Status::done: throw std::logic_error("interrupted by a normal return");
  }
  throw Interrupted{outcome};
}

std::vector<int> tensors_without(const OpDescriptor& op, Role role) {
  std::vector<int> found;
  for (std::size_t t = 0; t < op.tensors.size(); ++t)
    if (op.tensors[t].role != role) found.push_back(static_cast<int>(t));
  return found;
}

/// The call before: other dims, and other parameters, which a kernel may have kept as well.
Problem prelude(const OpDescriptor& op, const Kernel& kernel, const Case& c) {
  Case before = c;
  Random random(derive(c.seed, "prelude"));
  before.dims = c.prelude;
  for (int attempt = 0; attempt < 10 && before.params == c.params; ++attempt) before.params = draw_params(op, random);
  before.values.clear();
  before = admitted(op, kernel, std::move(before));
  return keep_to(op, kernel, make_problem(op, before, kernel.arithmetic, kernel.storage));
}

}  // namespace

std::vector<int> outputs_of(const OpDescriptor& op) { return tensors_without(op, Role::in); }
std::vector<int> inputs_of(const OpDescriptor& op) { return tensors_without(op, Role::out); }

Problem Trial::problem(Strategy strategy) const {
  Case c = case_;
  c.strategy = strategy;
  c.values.clear();
  return keep_to(op_, kernel_, make_problem(op_, c, kernel_.arithmetic, kernel_.storage));
}

Problem Trial::problem(std::vector<Index> dims) const {
  Case c = case_;
  c.dims = std::move(dims);
  c.values.clear();
  c = admitted(op_, kernel_, std::move(c));
  return keep_to(op_, kernel_, make_problem(op_, c, kernel_.arithmetic, kernel_.storage));
}

Case Trial::placed() const {
  Case placed = case_;
  if (kernel_.backend == Backend::vulkan) placed.placement = Placement::sentinels;  // buffers have no fences there
  return placed;
}

Preset Trial::preset(const Problem& problem) const {
  Preset preset;
  if (kernel_.limits == nullptr) return preset;
  const Limits& limits = *kernel_.limits;
  if (limits.absent.empty() && limits.starts_as.empty() && limits.zeroed.empty()) return preset;
  preset.values.resize(op_.tensors.size());
  preset.frozen.resize(op_.tensors.size());
  for (const auto& [output, input] : limits.starts_as)
    preset.values[static_cast<std::size_t>(output)] = problem.values[static_cast<std::size_t>(input)];
  for (const int output : limits.zeroed)
    preset.values[static_cast<std::size_t>(output)].assign(static_cast<std::size_t>(problem.shape(output).size()), 0.0F);
  if (limits.absent.empty()) return preset;
  // What the kernel does not give is right from the beginning, for certificates and for relations between calls.
  const auto want = oracle(problem);
  const std::vector<int> outputs = outputs_of(op_);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (std::ranges::find(limits.absent, outputs[o]) == limits.absent.end()) continue;
    const auto t = static_cast<std::size_t>(outputs[o]);
    for (const Bounded& x : want[o]) preset.values[t].push_back(static_cast<float>(x.value));
    preset.frozen[t] = true;
  }
  return preset;
}

Run Trial::run(const Problem& problem, Poison poison, contract::Level level) {
  expect_quiet();
  last_.reset();
  if (const auto why = outside(kernel_, problem)) {
    Outcome outcome = Outcome::not_applicable("it takes a call that the kernel does not: " + *why);
    // What is drawn, or tried on the way to a smaller case, is the kernel's to refuse; other calls and values are a relation's need.
    const bool drawn = problem.dims == case_.dims && problem.params == case_.params;
    if (drawn && kernel_.limits->refuse && kernel_.limits->refuse(problem.dims, problem.params))
      outcome.kind = Outcome::Kind::refused, outcome.reason = *why;
    throw Interrupted{outcome};
  }
  const Stage& stage = last_.emplace(worker_.arena(), problem, placed(), poison, preset(problem));
  const bool knows_how = worker_.has_returned();
  const Reply reply = worker_.run(op_, kernel_, problem.dims, problem.params, stage.tensors(), level);
  if (!knows_how && !kernel_.advice.empty() && reply.status == Reply::Status::done && stage.untouched()) {
    last_.reset();
    throw Interrupted{Outcome::falsify(structural("error", fmt::format("{} (it returned, and wrote no output)", kernel_.advice)))};
  }
  std::optional<std::string> damage;
  Run run;
  if (reply.status == Reply::Status::done) {
    for (int t : outputs_of(*problem.op)) run.outputs.push_back(stage.read(t));
    damage = stage.damage();
  }
  if (reply.status == Reply::Status::done && !damage) return run;
  last_.reset();
  if (damage) throw Interrupted{Outcome::falsify(structural("out of bounds", *damage))};
  interrupt(reply, knows_how ? "" : kernel_.advice);
}

std::optional<Outcome> Trial::reject(const Problem& problem, std::string_view what) {
  expect_quiet();
  last_.reset();
  Preset preset;
  preset.frozen.assign(op_.tensors.size(), true);
  const Stage stage(worker_.arena(), problem, placed(), Poison::finite, preset);
  if (!worker_.forbids(op_, kernel_, problem.dims, problem.params, stage.tensors())) return std::nullopt;
  const Reply reply = worker_.run(op_, kernel_, problem.dims, problem.params, stage.tensors(), contract::Level::off);
  const auto fails = [&](std::string_view how) {
    return Outcome::falsify(structural("contract", fmt::format("it says that it rejects {}, and {}", what, how)));
  };
  if (reply.status == Reply::Status::done) return fails("took the call");
  if (reply.status != Reply::Status::refused && reply.status != Reply::Status::failed) return fails(reply.detail);
  if (const auto damage = stage.damage()) return fails("refused, but " + *damage);
  return Outcome{};
}

void Trial::expect_quiet() const {
  if (!last_) return;
  if (const auto late = last_->late_damage()) throw Interrupted{Outcome::falsify(structural("late write", *late))};
}

std::vector<std::vector<Bounded>> Trial::oracle(const Problem& problem) const {
  const ArithmeticScope scope(kernel_.arithmetic);
  std::vector<std::vector<Bounded>> values(problem.values.size());
  std::vector<View<Bounded>> views;
  for (std::size_t t = 0; t < values.size(); ++t) {
    const Shape shape = problem.shape(static_cast<int>(t));
    values[t].reserve(static_cast<std::size_t>(shape.size()));
    const bool real = is_floating(problem.dtype(static_cast<int>(t)));
    for (const float x : problem.values[t]) values[t].push_back(real ? Bounded::input(x) : Bounded(x, 0, 0, false));
    values[t].resize(static_cast<std::size_t>(shape.size()));
    views.emplace_back(values[t].data(), shape);
  }
  falsify::oracle(problem.op->name).bounded(views, problem.params);
  std::vector<std::vector<Bounded>> outputs;
  for (int t : outputs_of(*problem.op)) {
    std::vector<Bounded>& output = values[static_cast<std::size_t>(t)];
    const DType dtype = problem.dtype(t);
    if (is_floating(dtype) && dtype != DType::f32)
      for (Bounded& x : output) x = stored(dtype, x);
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Outcome Trial::against_oracle(Tier tier, const Problem& problem, const Run& run) const {
  const auto want = oracle(problem);
  Outcome outcome;
  const std::vector<int> outputs = outputs_of(op_);
  for (std::size_t o = 0; o < outputs.size(); ++o)
    outcome &= compare(tier, op_.tensors[static_cast<std::size_t>(outputs[o])].name, problem.shape(outputs[o]),
                       run.outputs[o], want[o], problem.dtype(outputs[o]));
  return outcome;
}

Outcome try_obligation(Check check, const OpDescriptor& op, const Kernel& kernel, const Case& c, Worker& worker) {
  Trial trial(op, kernel, c, worker);
  try {
    if (!c.prelude.empty()) trial.run(prelude(op, kernel, c));
    const Outcome outcome = check(trial);
    trial.expect_quiet();
    return outcome;
  } catch (const Interrupted& interrupted) {
    return interrupted.outcome;
  }
}

}  // namespace assay::falsify
