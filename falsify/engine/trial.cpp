#include "falsify/engine/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/half.hpp"
#include "falsify/engine/joint.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify {
namespace {

Finding structural(Finding::Kind kind, std::string message) { return {kind, std::move(message), "", {}, 0, 0, 0}; }

/// Ends the check after a reply other than `done`. `advice` applies to a kernel that has never returned normally.
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
    case Status::violated: outcome = Outcome::falsify(structural(Finding::Kind::contract, reply.detail)); break;
    case Status::failed:
      outcome = Outcome::falsify(structural(Finding::Kind::error, went_wrong("the call failed")));
      break;
    case Status::crashed:
      outcome = Outcome::falsify(structural(Finding::Kind::crash, went_wrong("the kernel crashed")));
      break;
    case Status::hung:
      outcome = Outcome::falsify(structural(Finding::Kind::hang, went_wrong("the kernel did not return")));
      break;
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

/// False where every float32 is an input as it is.
bool rounds_inputs(const Roundings& r) {
  return r.of.inputs != Format::f32 || r.of.flushes_subnormals || r.aligned_floor > 0;
}

/// True if both problems are the same call.
bool same_bits_in(const Problem& a, const Problem& b) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  return a.dims == b.dims && a.params == b.params &&
         std::ranges::equal(a.values, b.values,
                            [&](const auto& x, const auto& y) { return std::ranges::equal(x, y, {}, bits, bits); });
}

}  // namespace

std::vector<int> outputs_of(const OpDescriptor& op) { return tensors_without(op, Role::in); }
std::vector<int> inputs_of(const OpDescriptor& op) { return tensors_without(op, Role::out); }

Problem Trial::problem(Strategy strategy) const {
  Case c = case_;
  c.strategy = strategy;
  c.values.clear();
  return restrict_integers(op_, kernel_, make_problem(op_, c, kernel_.arithmetic, kernel_.storage));
}

Problem Trial::problem(std::vector<Index> dims) const {
  Case c = case_;
  c.dims = std::move(dims);
  c.values.clear();
  c = admitted(op_, kernel_, std::move(c));
  return restrict_integers(op_, kernel_, make_problem(op_, c, kernel_.arithmetic, kernel_.storage));
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
    preset.values[static_cast<std::size_t>(output)].assign(static_cast<std::size_t>(problem.shape(output).size()),
                                                           0.0F);
  if (limits.absent.empty()) return preset;
  // Outputs that the kernel does not write hold the right values from the start, for certificates and for relations
  // between calls.
  if (!whole_ || !same_bits_in(whole_->first, problem)) whole_.emplace(problem, oracle(problem));
  const std::vector<std::vector<Bounded>>& want = whole_->second;
  const std::vector<int> outputs = outputs_of(op_);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (limits.gives(outputs[o])) continue;
    const auto t = static_cast<std::size_t>(outputs[o]);
    for (const Bounded& x : want[o]) preset.values[t].push_back(static_cast<float>(x.value));
    preset.frozen[t] = true;
  }
  return preset;
}

bool Trial::takes(const std::vector<Index>& dims) const {
  return !kernel_.limits || !kernel_.limits->refuse || !kernel_.limits->refuse(dims, case_.params);
}

Stage Trial::stage(const Problem& problem, Poison poison, Preset preset) const {
  Case placed = case_;
  std::optional<std::size_t> only_far;
  std::size_t most_bytes = SIZE_MAX;
  const BackendTraits backend = traits(kernel_.backend);
  if (!backend.guard_pages) placed.placement = Placement::sentinels;
  if (backend.bounded_buffers && placed.layout == Layout::far_rows) most_bytes = worker_.largest_buffer(kernel_);
  // A GPU has memory for one such tensor only.
  if (!backend.host) only_far = random("far tensor").below(problem.values.size());
  return {worker_.arena(), problem, placed, poison, std::move(preset), only_far, most_bytes};
}

Run Trial::run(const Problem& problem, Poison poison, contract::Level level) {
  expect_quiet();
  last_.reset();
  if (const auto why = outside(kernel_, problem)) {
    Outcome outcome = Outcome::not_applicable("it takes a call that the kernel does not: " + *why);
    // Only drawn dims and params count as a refusal; other calls are the relation's choice.
    const bool drawn = problem.dims == case_.dims && problem.params == case_.params;
    if (drawn && kernel_.limits->refuse && kernel_.limits->refuse(problem.dims, problem.params))
      outcome.kind = Outcome::Kind::refused, outcome.reason = *why;
    throw Interrupted{outcome};
  }
  calls_.push_back({problem, poison, {}});
  const Stage& stage = last_.emplace(this->stage(problem, poison));
  const bool knows_how = worker_.has_returned();
  const Reply reply = worker_.run(op_, kernel_, problem.dims, problem.params, stage.tensors(), level);
  if (!knows_how && !kernel_.advice.empty() && reply.status == Reply::Status::done && stage.untouched()) {
    last_.reset();
    throw Interrupted{Outcome::falsify(
        structural(Finding::Kind::error, fmt::format("{} (it returned, and wrote no output)", kernel_.advice)))};
  }
  std::optional<std::string> damage;
  Run run;
  if (reply.status == Reply::Status::done) {
    for (int t : outputs_of(*problem.op)) run.outputs.push_back(stage.read(t));
    damage = stage.damage();
  }
  if (reply.status == Reply::Status::done && !damage) {
    calls_.back().run = run;
    return run;
  }
  last_.reset();
  if (damage) throw Interrupted{Outcome::falsify(structural(Finding::Kind::out_of_bounds, *damage))};
  interrupt(reply, knows_how ? "" : kernel_.advice);
}

std::optional<Outcome> Trial::reject(const Problem& problem, std::string_view what) {
  expect_quiet();
  last_.reset();
  Preset preset;
  preset.frozen.assign(op_.tensors.size(), true);
  const Stage stage = this->stage(problem, Poison::finite, std::move(preset));
  if (!worker_.forbids(op_, kernel_, problem.dims, problem.params, stage.tensors())) return std::nullopt;
  const Reply reply = worker_.run(op_, kernel_, problem.dims, problem.params, stage.tensors(), contract::Level::off);
  const auto fails = [&](std::string_view how) {
    calls_.push_back({problem, Poison::finite, {}});
    return Outcome::falsify(
        structural(Finding::Kind::contract, fmt::format("it says that it rejects {}, and {}", what, how)));
  };
  if (reply.status == Reply::Status::done) return fails("took the call");
  if (reply.status != Reply::Status::refused && reply.status != Reply::Status::failed) return fails(reply.detail);
  if (const auto damage = stage.damage()) return fails("refused, but " + *damage);
  return Outcome{};
}

void Trial::expect_quiet() const {
  if (!last_) return;
  if (const auto late = last_->late_damage())
    throw Interrupted{Outcome::falsify(structural(Finding::Kind::late_write, *late))};
}

std::vector<std::vector<Bounded>> Trial::oracle(const Problem& problem) const {
  const ArithmeticScope scope(kernel_.arithmetic);
  std::vector<std::vector<Bounded>> values(problem.values.size());
  std::vector<View<Bounded>> views;
  const bool rounds = rounds_inputs(Roundings::current());
  for (std::size_t t = 0; t < values.size(); ++t) {
    const Shape shape = problem.shape(static_cast<int>(t));
    values[t].reserve(static_cast<std::size_t>(shape.size()));
    if (rounds && is_floating(problem.dtype(static_cast<int>(t))))
      for (const float x : problem.values[t]) values[t].push_back(Bounded::input(x));
    else
      for (const float x : problem.values[t]) values[t].emplace_back(x, 0, 0, false);
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

/// Returns the oracle of a call reduced to the sample's places.
std::vector<Trial::Judged> Trial::affordable_oracle(const Problem& problem) const {
  std::vector<Judged> judged;
  const auto sample = sample_of(*problem.op, problem.dims, random("sample"));
  if (!sample) {
    for (std::vector<Bounded>& want : oracle(problem)) judged.push_back({std::move(want), {}});
    return judged;
  }
  Problem part{problem.op, problem.dims, problem.params, {}, problem.storage, problem.exact, problem.integers_kept};
  part.dims[sample->dim] = static_cast<Index>(sample->at.size());
  part.values.resize(problem.values.size());
  const auto positions = [&](int t) {
    return sampled_positions(problem.op->tensors[static_cast<std::size_t>(t)], problem.dims, *sample);
  };
  for (std::size_t t = 0; t < problem.values.size(); ++t) {
    if (problem.values[t].empty()) continue;
    const std::vector<std::size_t> places = positions(static_cast<int>(t));
    part.values[t].resize(places.size());
    std::ranges::transform(places, part.values[t].begin(), [&](std::size_t at) { return problem.values[t][at]; });
  }
  const std::vector<int> outputs = outputs_of(*problem.op);
  std::vector<std::vector<Bounded>> wants = oracle(part);
  for (std::size_t o = 0; o < outputs.size(); ++o) judged.push_back({std::move(wants[o]), positions(outputs[o])});
  return judged;
}

Outcome Trial::against_oracle(Tier tier, const Problem& problem, const Run& run) const {
  const std::vector<Judged> judged = affordable_oracle(problem);
  Outcome outcome;
  const std::vector<int> outputs = outputs_of(op_);
  for (std::size_t o = 0; o < outputs.size(); ++o)
    outcome &= compare(tier, op_.tensors[static_cast<std::size_t>(outputs[o])].name, problem.shape(outputs[o]),
                       run.outputs[o], judged[o].want, problem.dtype(outputs[o]), judged[o].places);
  return outcome;
}

Outcome Trial::against_copies(const Problem& problem, const Run& run) const {
  if (!keeps_payloads(op_) || strictest() != Tier::bits) return {};
  std::vector<std::vector<float>> values = problem.values;
  std::vector<View<float>> views;
  for (std::size_t t = 0; t < values.size(); ++t) {
    const Shape shape = problem.shape(static_cast<int>(t));
    values[t].resize(static_cast<std::size_t>(shape.size()));
    views.emplace_back(values[t].data(), shape);
  }
  falsify::oracle(op_.name).mirror(views, problem.params);
  Outcome outcome;
  const std::vector<int> outputs = outputs_of(op_);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const auto t = static_cast<std::size_t>(outputs[o]);
    outcome &= compare_payloads(op_.tensors[t].name, problem.shape(outputs[o]), run.outputs[o], values[t]);
  }
  return outcome;
}

Outcome Trial::scales(const Problem& given, const Problem& given_scaled, const std::vector<int>& exponents) {
  Problem plain = given, scaled = given_scaled;
  // Values that leave the range of their storage when scaled do not scale: zeros take their place.
  for (std::size_t t = 0; t < scaled.values.size(); ++t) {
    if (!op_.tensors[t].storage || scaled.storage == DType::f32) continue;
    for (std::size_t i = 0; i < scaled.values[t].size(); ++i)
      if (float& x = scaled.values[t][i]; std::isfinite(x) && stored(scaled.storage, x) != x)
        x = plain.values[t][i] = 0;
  }
  const Run once = run(plain), again = run(scaled);
  const std::initializer_list<Done> calls{{plain, once}, {scaled, again}};
  const std::vector<int> outputs = outputs_of(op_);
  std::vector<std::vector<float>> want = once.outputs;
  for (std::size_t o = 0; o != want.size(); ++o)
    for (float& x : want[o]) x = std::ldexp(x, exponents[o]);
  const auto compared = [&](const std::vector<std::vector<float>>& got) {
    Outcome outcome;
    for (std::size_t o = 0; o != want.size(); ++o)
      outcome &= compare_bits(op_.tensors[static_cast<std::size_t>(outputs[o])].name, plain.shape(outputs[o]), got[o],
                              want[o], "inputs scaled by a power of two, against the result scaled");
    return outcome;
  };
  Outcome outcome = related(compared(again.outputs), Related::always, calls);
  if (!outcome.finding || !kernel_.deterministic) return outcome;
  outcome = within_bounds(calls);
  std::vector<std::vector<float>> got = again.outputs;
  for (const Problem* problem : {&plain, &scaled}) {
    const NormalRangeScope scope;
    const auto bounds = oracle(*problem);
    for (std::size_t o = 0; o != want.size(); ++o)
      for (std::size_t i = 0; i < want[o].size(); ++i)
        if (const Bounded& b = bounds[o][i]; b.may_overflow || !std::isfinite(b.value) || !std::isfinite(b.error))
          got[o][i] = want[o][i] = 0;
  }
  return outcome &= compared(got);
}

Outcome Trial::within_bounds(std::initializer_list<Done> calls) const {
  Outcome outcome;
  for (const Done& call : calls) outcome &= against_oracle(tier(call.problem), call.problem, call.run);
  return outcome;
}

Tier Trial::strictest() const {
  return op_.copies && kernel_.arithmetic.loses == Loss::nothing ? Tier::bits : Tier::worst_case;
}

Outcome Trial::related(Outcome bits, Related by, std::initializer_list<Done> calls) const {
  const bool pinned = std::ranges::find(op_.pins, "batch_invariance", &PinInfo::name) != op_.pins.end();
  const bool free = !kernel_.deterministic || (by == Related::by_batch && !kernel_.batch_invariant && !pinned) ||
                    (by == Related::unless_lost && kernel_.arithmetic.loses != Loss::nothing);
  return bits.finding && free ? within_bounds(calls) : bits;
}

Outcome try_obligation(Check check, const OpDescriptor& op, const Kernel& kernel, const Case& c, Worker& worker,
                       Explain explain) {
  worker.set_order(c.order);
  Trial trial(op, kernel, c, worker);
  Outcome outcome;
  try {
    if (!c.prelude.empty())
      trial.run(restrict_integers(
          op, kernel, make_problem(op, admitted(op, kernel, prelude_of(op, c)), kernel.arithmetic, kernel.storage)));
    trial.forget_calls();
    outcome = check(trial);
    trial.expect_quiet();
  } catch (const Interrupted& interrupted) {
    outcome = interrupted.outcome;
  }
  if (explain == Explain::yes && outcome.finding) trial.explain(*outcome.finding);
  return outcome;
}

}  // namespace assay::falsify
