// The obligations of a training step.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include "core/errors.hpp"
#include "falsify/program/check.hpp"
#include "falsify/program/obligations.hpp"
#include "falsify/program/step.hpp"
#include "program/model/adapters.hpp"
#include "program/model/parameters.hpp"
#include "serve/reservation.hpp"

namespace assay::falsify {
namespace {

using namespace program;

StepPrograms altered(const SystemTrial& trial, const TrainingOptions& options) {
  StepPrograms all =
      options.compute_again ? step_programs(classifier_of(trial.block()), options) : trial.step().programs;
  for (Program* p : {&all.gradients, &all.forward, &all.norm, &all.update}) trial.alter(*p);
  return all;
}

/// The trainer of a case on its device, behind the case's steps.
class OnDevice {
 public:
  explicit OnDevice(const SystemTrial& trial, const TrainingOptions& options)
      : c(trial.block()), opening_(std::in_place, trial.on(), bytes_at_most(trial)),
        trainer(classifier_of(c), options, altered(trial, options), trial.on(), trial.options()) {
    opening_.reset();
    for_each_set_by_host(trainer.session().program(), [&](Value v) {
      const Program& program = trainer.session().program();
      if (program.storage_of(v).kind == Kind::parameter) set(trainer.session(), v, numbers_of(c, program, v));
    });
    const Means means = means_of(c, trial.step().joined);
    TrainerState state = trainer.state();
    state.m.assign(means.m.begin(), means.m.end()), state.v.assign(means.v.begin(), means.v.end());
    state.steps = c.step.steps;
    trainer.set_state(state);
  }
  explicit OnDevice(const SystemTrial& trial) : OnDevice(trial, options_of(trial.block())) {}

  /// Takes one of the case's steps.
  Update step(int number) {
    for (const auto& batch : samples_of(c, number)) trainer.accumulate(batch);
    return trainer.apply();
  }

  BlockCase c;

 private:
  static std::size_t bytes_at_most(const SystemTrial& trial) {
    std::size_t bytes = std::size_t{1} << 26;  // and what kernels take while they are prepared
    const StepPrograms& all = trial.step().programs;
    for (const Program* p : {&all.gradients, &all.forward, &all.norm, &all.update})
      for (const Storage& s : p->storages) bytes += static_cast<std::size_t>(s.elements) * size_of(s.dtype) + 256;
    return bytes;
  }

  /// Its sessions reserve from it: to find out how much memory is free costs as much as to open one.
  std::optional<Reservation> opening_;

 public:
  Trainer trainer;

 private:
};

Outcome same_state(const TrainerState& got, const TrainerState& want, std::string_view meaning) {
  Outcome outcome = same<float>("parameters", got.parameters, want.parameters, meaning);
  outcome &= same<float>("m", got.m, want.m, meaning);
  outcome &= same<float>("v", got.v, want.v, meaning);
  return outcome &= holds(got.steps == want.steps,
                          fmt::format("{}: {} steps are counted, and {} are wanted", meaning, got.steps, want.steps));
}

/// A step in double with bounds: the mean gradient's norm, parameters and means after the samples of these runs.
class InDouble {
 public:
  /// `own` holds elements of parameters by name that are not the case's.
  InDouble(const SystemTrial& trial, const BlockCase& c, const MicroBatches& batches,
           const std::map<std::string, std::vector<double>>& own_elements = {}) {
    // The case's own are built once.
    const std::unique_ptr<StepProgram> other =
        &c == &trial.block() ? nullptr : std::make_unique<StepProgram>(step_program(c));
    const StepProgram& right = other ? *other : trial.step().joined;
    ProgramMutant own{{}, "", right.program, plan(right.program)};
    trial.alter(own.program);
    StepExecution<double> exact(own, right, c, std::nan(""));
    StepExecution<Bounded> bounded(own, right, c, Bounded(std::nan("")));
    bounded.of_double = true;
    for (const Parameter& p : right.program.parameters)
      if (const auto found = own_elements.find(p.name); found != own_elements.end())
        write(exact.memory[p.value], found->second), write(bounded.memory[p.value], found->second);
    for (const auto& batch : batches) exact.accumulate(batch), bounded.accumulate(batch);
    norm = exact.apply(), norm_error = bounded.apply().error;
    for (std::size_t leaf = 0; leaf < right.leaves.size(); ++leaf)
      for (const auto& [what, v] : {std::pair<std::string_view, Value>{"gradient", right.of.leaf_gradients[leaf]},
                                    {"parameter", right.leaves[leaf]},
                                    {"m", right.m[leaf]},
                                    {"v", right.v[leaf]}}) {
        const ValueInfo& info = right.program[v];
        Expected& e = all.emplace_back(Expected{fmt::format("{} of {}", what, right.program[right.leaves[leaf]].name),
                                                {},
                                                info.shape,
                                                read(exact.memory[v]),
                                                {}});
        for (const Bounded& b : read(bounded.memory[v])) e.bound.push_back(0x1p-29 * b.error);
      }
  }

  double norm = 0, norm_error = 0;
  std::vector<Expected> all;
};

Outcome within_both(const InDouble& want, const InDouble& got) {
  Outcome outcome;
  for (std::size_t e = 0; e < want.all.size(); ++e) {
    Expected both = want.all[e];
    for (std::size_t i = 0; i < both.bound.size(); ++i) both.bound[i] += got.all[e].bound[i];
    outcome &= judge(both, got.all[e].want);
  }
  const double bound = 0x1p-29 * (want.norm_error + got.norm_error);
  return outcome &= holds(std::fabs(want.norm - got.norm) <= bound || std::isinf(bound),
                          fmt::format("the norm is {:.9g}, and {:.9g} is wanted", got.norm, want.norm));
}

Outcome same_bits(const InDouble& want, const InDouble& got, std::string_view meaning) {
  Outcome outcome = same<double>("norm", std::vector{got.norm}, std::vector{want.norm}, meaning);
  for (std::size_t e = 0; e < want.all.size(); ++e)
    outcome &= same<double>(want.all[e].name, got.all[e].want, want.all[e].want, meaning);
  return outcome;
}

Outcome losses(const SystemTrial& trial) { return of_rows(trial, "FALSIFY-SYS-002"); }
Outcome gradients(const SystemTrial& trial) { return of_rows(trial, "FALSIFY-SYS-003"); }
Outcome updates(const SystemTrial& trial) { return of_rows(trial, "FALSIFY-SYS-020"); }

Outcome steps(const SystemTrial& trial) {
  OnDevice on(trial);
  Outcome outcome;
  bool checks = true;
  on.trainer.set_runner([&](std::string_view program, Session& session) {
    if (!checks) return session.run();
    const CheckedRun run = check_steps(session, trial.block().seed);
    outcome.elements += run.elements, outcome.nonzero += run.nonzero,
        outcome.worst = std::max(outcome.worst, run.worst);
    if (!run.fault || outcome.finding) return;
    outcome.kind = Outcome::Kind::falsified, outcome.finding = run.fault->finding;
    outcome.finding->tensor = run.fault->value;
    outcome.finding->message = fmt::format("{}, {}: {}", program, describe(*run.fault, session.program().steps.size()),
                                           run.fault->finding.message);
  });
  // The last of the runs is checked: it adds to what others have left.
  const MicroBatches batches = samples_of(on.c, 0);
  for (std::size_t n = 0; n < batches.size(); ++n) {
    checks = n + 1 == batches.size();
    on.trainer.accumulate(batches[n]);
  }
  on.trainer.apply();
  return outcome;
}

/// R16: the trainer of this back end against the formulas' bounds, with the kernels that it has chosen. Between its steps
/// the host sets another learning rate, evaluates, and takes a step that is skipped.
Outcome composed(const SystemTrial& trial) {
  constexpr double kSmall = 0.01;  // of the rms
  OnDevice on(trial);
  std::map<std::string, std::vector<Arithmetic>> of_kernels;
  on.trainer.set_runner([&](std::string_view program, Session& session) {
    std::vector<Arithmetic>& all = of_kernels[std::string(program)];
    for (std::size_t s = 0; s < session.program().steps.size() && all.size() < session.program().steps.size(); ++s)
      all.push_back(session.kernel(s).arithmetic);
    session.run();
  });
  const StepProgram& right = trial.step().joined;
  const ProgramMutant own{{}, "", right.program, plan(right.program)};
  StepExecution<Bounded> bounded(own, right, on.c, Bounded(std::nan("")));
  bounded.memory.rounds_stores = true;
  Outcome outcome;
  const auto compare = [&](const std::string& name, const std::vector<float>& got, const std::vector<Bounded>& want) {
    double squares = 0;
    for (const Bounded& w : want) squares += w.value * w.value;
    const double rms = std::sqrt(squares / static_cast<double>(want.size()));
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double error = std::fabs(static_cast<double>(got[i]) - want[i].value), bound = want[i].error;
      if (bound < kSmall * rms) {
        ++outcome.elements;
        outcome.nonzero += want[i].value != 0;
        outcome.zero_passes += want[i].value != 0 && std::fabs(want[i].value) <= bound;
      }
      if (error > 0 && std::isfinite(bound)) outcome.worst = std::max(outcome.worst, error / bound);
      if (error <= bound || std::isnan(want[i].value) || outcome.finding) continue;
      outcome.kind = Outcome::Kind::falsified;
      outcome.finding = Finding{Finding::Kind::value, "", name, {static_cast<Index>(i)}, got[i], want[i].value, bound};
      outcome.finding->message = fmt::format("got {:.9g}, want {:.9g} within {:.3g}, the bound of the whole step",
                                             got[i], want[i].value, bound);
    }
    trial.bounds += static_cast<std::int64_t>(want.size());
  };
  for (const int number : {0, 1}) {
    if (number == 1) {
      const double lr = 0.5 * on.c.step.lr + 0.004;
      on.trainer.set_lr(lr), bounded.lr = lr;
      on.trainer.evaluate(samples_of(on.c, 2)[0]);
      Gradients lost = on.trainer.gradients();
      std::ranges::fill(lost.sums, std::numeric_limits<float>::infinity());
      lost.samples = 1;
      on.trainer.set_gradients(lost);
      outcome &= holds(on.trainer.apply().skipped && on.trainer.skipped() == 1 && on.trainer.samples() == 0,
                       "a gradient that is not finite is not skipped");
    }
    const Update update = on.step(number);
    if (number == 0)
      for (const char* program : {"gradients", "norm", "update"})
        bounded.arithmetic.insert(bounded.arithmetic.end(), of_kernels[program].begin(), of_kernels[program].end());
    for (const auto& batch : samples_of(on.c, number)) bounded.accumulate(batch);
    compare(fmt::format("norm of step {}", number + 1), {static_cast<float>(update.norm)}, {bounded.apply()});
    bounded.clear();
  }
  const TrainerState state = on.trainer.state();
  compare("parameters", state.parameters, read(bounded.memory[right.of.parameters]));
  compare("m", state.m, read(bounded.memory[right.of.m]));
  compare("v", state.v, read(bounded.memory[right.of.v]));
  return outcome;
}

/// R8 and R10.
Outcome moves(const SystemTrial& trial) {
  const bool narrow = in_16_bits(trial.block());  // where gradients are off by more than bounds of float32 say
  OnDevice on(trial);
  Session& session = on.trainer.session();
  const auto bytes = [&](Value v) {
    std::vector<std::byte> all(static_cast<std::size_t>(session.program()[v].shape.size()) *
                               size_of(session.program().storage_of(v).dtype));
    session.get(v, all);
    return all;
  };
  std::map<std::string, std::vector<std::byte>> before;
  for_each_set_by_host(session.program(), [&](Value v) {
    if (session.program().storage_of(v).kind == Kind::parameter) before[session.program()[v].name] = bytes(v);
  });
  on.step(0), on.step(1);
  Outcome outcome;
  std::map<std::string, const Expected*> expected;
  for (const Expected& e : trial.wiring().expected()) expected[e.name] = &e;
  for_each_set_by_host(session.program(), [&](Value v) {
    const std::string& name = session.program()[v].name;
    if (!before.contains(name)) return;
    const auto found = expected.find(name + " after the steps");
    if (found == expected.end()) {
      outcome &= holds(bytes(v) == before[name], fmt::format("{} does not train, and has changed", name));
      return;
    }
    if (narrow) return;
    const std::vector<double> was = numbers_of(on.c, session.program(), v);
    const std::vector<float> now = session.get<float>(v);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const auto p = static_cast<float>(was[i]);
      const double ulp = std::nextafter(std::fabs(p), std::numeric_limits<float>::infinity()) - std::fabs(p),
                   by = std::fabs(found->second->want[i] - was[i]) - 0x1p29 * found->second->bound[i];
      if (by > ulp / 2)
        outcome &=
            holds(now[i] != p, fmt::format("{} stays {}, and two steps change it by {:.3g} at least", name, p, by));
    }
  });
  return outcome;
}

/// R1, R2 and R13: the gradient is the mean over samples, however they come.
Outcome accumulation(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  const MicroBatches given = samples_of(c, 0);
  MicroBatches one(1), singles;
  for (const auto& batch : given)
    for (const Sample& sample : batch) one[0].push_back(sample), singles.push_back({sample});
  BlockCase whole = c, single = c;
  whole.batch = std::ssize(one[0]), single.batch = 1;
  const InDouble want(trial, whole, one);
  Outcome outcome = within_both(want, InDouble(trial, c, given));
  outcome &= within_both(want, InDouble(trial, single, singles));
  // Shards of unequal size, one of them empty.
  MicroBatches shards{{}, {}, {}};
  for (std::size_t i = 0; i < one[0].size(); ++i) shards[i % 3 == 1 ? 0 : 2].push_back(one[0][i]);
  return outcome &= within_both(want, InDouble(trial, whole, shards));
}

/// R2: a shard without samples changes no bit, and the trainer counts samples, not runs.
Outcome empty_shards(const SystemTrial& trial) {
  OnDevice one(trial), two(trial);
  one.step(0);
  two.trainer.accumulate({});
  for (const auto& batch : samples_of(two.c, 0)) two.trainer.accumulate(batch), two.trainer.accumulate({});
  two.trainer.apply();
  Outcome outcome = same_state(two.trainer.state(), one.trainer.state(), "runs without a sample change this");
  const Update none = two.trainer.apply();
  return outcome &= holds(none.samples == 0 && two.trainer.steps() == two.c.step.steps + 1,
                          "a step is counted although no sample has come");
}

/// R3.
Outcome loss_scale(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  if (c.config.weights == WeightFormat::f16) return Outcome::not_applicable("subnormal gradients in f16 do not scale");
  const MicroBatches batches = samples_of(c, 0);
  const double k = static_cast<double>(1 << (1 + c.seed % 5));
  const auto step = [&](double scale) {
    StepProgram s = trial.step().joined;
    trial.alter(s.program);
    Session session(s.program, trial.on(), trial.options());
    set_all(session, c);
    const auto set = [&](Value v, const auto& numbers) {
      falsify::set(session, v, std::vector<double>(numbers.begin(), numbers.end()));
    };
    const Means means = means_of(c, s);
    set(s.of.m, means.m), set(s.of.v, means.v);
    const Batch batch = batch_of(classifier_of(c), options_of(c), batches[0]);
    set(s.of.ids, batch.ids), set(s.of.lengths, batch.lengths), set(s.of.weights, classifier_of(c).class_weights);
    if (c.multi_label) set(s.of.targets, batch.labels);
    else set(s.of.targets, batch.targets);
    std::vector<double> upstream(batch.upstream.begin(), batch.upstream.end());
    for (double& u : upstream) u *= scale;
    set(s.of.upstream, upstream);
    for (const Step& each : s.program.steps)
      if (each.label == "update.scale") session.set_param(each.label, "alpha", each.params[0] / scale);
    session.run();
    return TrainerState{session.get<float>(s.of.parameters), session.get<float>(s.of.m), session.get<float>(s.of.v)};
  };
  return same_state(step(k), step(1), fmt::format("a loss that counts {} times changes the update", k));
}

/// R5: places behind the tokens change nothing.
Outcome padding(const SystemTrial& trial) {
  BlockCase longer = trial.block();
  longer.s += 1 + static_cast<Index>(longer.seed % 3);
  const MicroBatches batches = samples_of(trial.block(), 0);
  return same_bits(InDouble(trial, trial.block(), batches), InDouble(trial, longer, batches),
                   fmt::format("with {} places for tokens, not {}, this differs", longer.s, trial.block().s));
}

/// R7.
Outcome recomputed(const SystemTrial& trial) {
  TrainingOptions again = options_of(trial.block());
  again.compute_again = true;
  OnDevice kept(trial), computed(trial, again);
  for (const int number : {0, 1}) kept.step(number), computed.step(number);
  return same_state(computed.trainer.state(), kept.trainer.state(), "layers that are computed again change this");
}

/// R11.
Outcome resumed(const SystemTrial& trial) {
  OnDevice whole(trial), resumed(trial);
  whole.step(0);
  resumed.trainer.set_state(whole.trainer.state());
  whole.step(1), resumed.step(1);
  return same_state(resumed.trainer.state(), whole.trainer.state(), "a trainer that goes on from a state differs");
}

Outcome not_finite(const SystemTrial& trial) {
  OnDevice on(trial), without(trial);
  const TrainerState before = on.trainer.state();
  TrainerState broken = before;
  broken
      .parameters[static_cast<std::size_t>(on.trainer.session().program()[trial.step().joined.leaves.back()].offset)] =
      std::nanf("");
  on.trainer.set_state(broken);
  const Update update = on.step(0);
  Outcome outcome = holds(update.skipped && on.trainer.skipped() == 1 && on.trainer.steps() == on.c.step.steps,
                          fmt::format("a gradient of norm {} is not skipped and counted", update.norm));
  const TrainerState after = on.trainer.state();
  outcome &= same<float>("m", after.m, before.m, "a step that is skipped changes this");
  outcome &= same<float>("v", after.v, before.v, "a step that is skipped changes this");
  on.trainer.set_state(before);
  without.step(1), on.step(1);
  return outcome &= same_state(on.trainer.state(), without.trainer.state(), "a step that was skipped leaves something");
}

/// F-CLASS-001 and -005.
Outcome judged(const SystemTrial& trial, bool logits) {
  OnDevice on(trial);
  Outcome outcome;
  for (const auto& batch : samples_of(on.c, 0)) {
    std::vector<Judgement> all = on.trainer.accumulate(batch);
    const std::vector<Judgement> evaluated = on.trainer.evaluate(batch);
    outcome &= holds(all.size() == batch.size() && evaluated.size() == batch.size(), "a sample is not judged");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Judgement& j = all[i];
      if (logits)
        outcome &= holds(
            std::ssize(j.logits) == on.c.classes &&
                std::ranges::all_of(j.logits, [](float x) { return std::isfinite(x); }),
            fmt::format("sample {} has {} logits, not all finite, for {} classes", i, j.logits.size(), on.c.classes));
      else
        outcome &= holds(std::isfinite(j.loss) && j.loss >= 0, fmt::format("the loss of sample {} is {}", i, j.loss));
      outcome &= same<float>("logits", evaluated[i].logits, j.logits, "an evaluation decides otherwise than training");
    }
  }
  return outcome;
}
Outcome logits(const SystemTrial& trial) { return judged(trial, true); }
Outcome finite_losses(const SystemTrial& trial) { return judged(trial, false); }

/// F-CLASS-002 and C-GPUFWD-001: refused before anything changes.
Outcome refusals(const SystemTrial& trial, const std::vector<std::function<void(Sample&)>>& changes) {
  OnDevice on(trial), without(trial);
  const MicroBatches batches = samples_of(on.c, 0);
  Outcome outcome;
  for (std::size_t n = 0; n < changes.size(); ++n) {
    std::vector<Sample> batch = batches[0];
    changes[n](batch.back());
    bool refused = false;
    try {
      on.trainer.accumulate(batch);
    } catch (const InputError&) {
      refused = true;
    }
    outcome &= holds(refused, fmt::format("wrong sample {} is taken", n + 1));
  }
  on.step(0), without.step(0);
  return outcome &= same_state(on.trainer.state(), without.trainer.state(), "a batch that is refused changes this");
}
Outcome labels(const SystemTrial& trial) {
  const auto classes = static_cast<std::int32_t>(trial.block().classes);
  if (trial.block().multi_label)
    return refusals(trial, {[](Sample& s) { s.labels.pop_back(); }, [](Sample& s) { s.labels.push_back(1); }});
  return refusals(trial, {[=](Sample& s) { s.label = classes; }, [](Sample& s) { s.label = -1; }});
}
Outcome tokens(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  return refusals(trial, {[&](Sample& s) { s.tokens.resize(static_cast<std::size_t>(c.s) + 1); },
                          [](Sample& s) { s.tokens.clear(); },
                          [&](Sample& s) { s.tokens[0] = static_cast<std::int32_t>(c.config.vocabulary); },
                          [](Sample& s) { s.tokens[0] = -1; }});
}

Outcome begins(const SystemTrial& trial) {
  Trainer trainer(classifier_of(trial.block()), options_of(trial.block()), trial.on(), trial.options());
  const TrainerState state = trainer.state();
  Outcome outcome = holds(state.steps == 0 && state.skipped == 0 && !state.m.empty(), "a trainer begins behind steps");
  for (const std::vector<float>* all : {&state.m, &state.v})
    for (const float x : *all) outcome &= holds(x == 0, fmt::format("a mean begins as {}", x));
  return outcome;
}

/// Returns the text of a trainer's refusal.
std::string refusal(const SystemTrial& trial) {
  const TrainingOptions options = options_of(trial.block());
  try {
    const Trainer trainer(classifier_of(trial.block()), options, altered(trial, options), trial.on(), trial.options());
  } catch (const Unavailable& e) {
    return e.what();
  }
  return "nothing";
}

Outcome budget(const SystemTrial& trial) {
  const StepPrograms& p = trial.step().programs;
  const std::size_t bytes = bytes_together(std::array{&p.gradients, &p.forward, &p.norm, &p.update});
  const Reservation less(trial.on(), bytes - 1);
  const std::string said = refusal(trial);
  Outcome outcome = holds(said.find(fmt::format("{} bytes requested", bytes)) != said.npos,
                          fmt::format("a trainer of {} bytes, with one fewer, says {}", bytes, said));
  return outcome &= holds(less.remaining() == bytes - 1, "memory stays allocated");
}

Outcome no_allocation(const SystemTrial& trial) {
  OnDevice on(trial);
  on.step(0);
  // The host's kernels take scratch in a call, which a recording of a device holds already.
  const std::size_t bytes = trial.on().on_processor() ? std::size_t{1} << 30 : 0;
  const Reservation least(trial.on(), bytes);
  try {
    on.step(1);
  } catch (const Unavailable& e) {
    return holds(false, fmt::format("a step allocates: {}", e.what()));
  }
  return holds(least.remaining() == bytes, fmt::format("{} bytes stay allocated", bytes - least.remaining()));
}

Outcome one_update(const SystemTrial& trial) {
  OnDevice on(trial);
  const StepProgram& values = trial.step().joined;
  const MicroBatches batches = samples_of(on.c, 0);
  std::size_t samples = 0;
  for (const auto& batch : batches) on.trainer.accumulate(batch), samples += batch.size();
  const Update update = on.trainer.apply();
  Outcome outcome = holds(update.samples == static_cast<Index>(samples) && on.trainer.steps() == on.c.step.steps + 1,
                          fmt::format("{} samples in {} batches are {} in {} steps", samples, batches.size(),
                                      update.samples, on.trainer.steps() - on.c.step.steps));
  for (const Value g : values.of.leaf_gradients)
    for (const float x : on.trainer.session().get<float>(g))
      outcome &= holds(x == 0, fmt::format("{} is {} behind the step", values.program[g].name, x));
  return outcome;
}

Outcome synchronized(const SystemTrial& trial) {
  OnDevice on(trial);
  on.step(0);
  const TrainerState state = on.trainer.state();
  Outcome outcome;
  for (const Parameter& p : on.trainer.session().program().parameters) {
    if (!p.trainable) continue;
    const ValueInfo& info = on.trainer.session().program()[p.value];
    const auto first = state.parameters.begin() + info.offset;
    outcome &= same<float>(p.name, get_parameter(on.trainer.session(), p),
                           std::vector<float>(first, first + info.shape.size()), "it is not the device's");
  }
  return outcome;
}

// On the device that trains: the ids of the seed's CUDA trainer, for every back end.

/// Memory that a trainer takes, of all its programs together.
std::size_t bytes_of(const SystemTrial& trial) {
  constexpr std::size_t kEnough = std::size_t{1} << 28;
  const TrainingOptions options = options_of(trial.block());
  const Reservation enough(trial.on(), kEnough);
  const Trainer trainer(classifier_of(trial.block()), options, altered(trial, options), trial.on(), trial.options());
  return kEnough - enough.remaining();
}

Outcome all_or_nothing(const SystemTrial& trial) {
  const std::size_t bytes = bytes_of(trial), again = bytes_of(trial);
  Outcome outcome = holds(again == bytes, fmt::format("a trainer takes {} bytes, and the next one {}", bytes, again));
  for (const std::size_t less : {bytes - 1, bytes / 2}) {
    const Reservation reserved(trial.on(), less);
    const std::string said = refusal(trial);
    outcome &= holds(said.find("bytes requested") != said.npos,
                     fmt::format("a trainer of {} bytes, with {}, says {}", bytes, less, said));
    outcome &= holds(reserved.remaining() == less, "a part of a trainer stays allocated");
  }
  return outcome;
}

Outcome after_a_refusal(const SystemTrial& trial) {
  OnDevice without(trial);
  without.step(0);
  const std::size_t bytes = plan(trial.step().programs.gradients).bytes;
  std::string said;
  {
    const Reservation less(trial.on(), bytes - 1);
    said = refusal(trial);
  }
  Outcome outcome = holds(said != "nothing", "a trainer opens without memory for it");
  OnDevice on(trial);
  on.step(0);
  return outcome &= same_state(on.trainer.state(), without.trainer.state(), "a trainer behind a refused one differs");
}

/// Returns the contents of a parameter's memory: numbers, or codes.
std::vector<float> contents(Session& session, Value v) {
  if (session.program().storage_of(v).dtype != DType::u8) return session.get<float>(v);
  const std::vector<std::uint8_t> codes = session.get<std::uint8_t>(v);
  return {codes.begin(), codes.end()};
}
void for_each_parameter(Session& session, const std::function<void(Value)>& f) {
  for_each_set_by_host(session.program(), [&](Value v) {
    if (session.program().storage_of(v).kind == Kind::parameter) f(v);
  });
}

Outcome from_the_host(const SystemTrial& trial) {
  OnDevice on(trial);
  Session& session = on.trainer.session();
  Outcome outcome;
  for_each_parameter(session, [&](Value v) {
    const std::vector<double> numbers = numbers_of(on.c, session.program(), v);
    outcome &=
        same<float>(session.program()[v].name, contents(session, v), std::vector<float>(numbers.begin(), numbers.end()),
                    "the device holds another than it was given");
  });
  return outcome;
}

/// "model.layers.3." of "model.layers.3.mlp.silu_mul"; -1 of none.
Index layer_of(std::string_view name) {
  constexpr std::string_view kLayers = "model.layers.";
  return name.starts_with(kLayers) ? std::atoi(name.data() + kLayers.size()) : -1;
}
std::string_view within_layer(std::string_view name) {
  return name.substr(name.find('.', std::string_view("model.layers.").size()));
}

Outcome every_layer(const SystemTrial& trial) {
  OnDevice on(trial);
  const Program& p = on.trainer.session().program();
  std::map<Index, std::vector<std::string>> of_layers;
  for (const Parameter& parameter : p.parameters)
    if (layer_of(parameter.name) >= 0) of_layers[layer_of(parameter.name)].emplace_back(within_layer(parameter.name));
  Outcome outcome = holds(std::ssize(of_layers) == on.c.config.layers,
                          fmt::format("{} of {} layers have parameters", of_layers.size(), on.c.config.layers));
  for (auto& [layer, names] : of_layers)
    outcome &=
        holds(names == of_layers.begin()->second, fmt::format("layer {} has {} parameters, and the first one has {}",
                                                              layer, names.size(), of_layers.begin()->second.size()));
  return outcome;
}

Outcome layers_in_order(const SystemTrial& trial) {
  OnDevice on(trial);
  std::map<Index, std::vector<std::string>> of_layers;
  Index last = 0;
  Outcome outcome;
  for (const Step& step : on.trainer.session().program().steps) {
    const Index layer = layer_of(step.label);
    if (layer < 0) continue;
    outcome &= holds(layer >= last, fmt::format("{} runs behind layer {}", step.label, last));
    last = layer;
    of_layers[layer].emplace_back(within_layer(step.label));
  }
  outcome &= holds(std::ssize(of_layers) == on.c.config.layers,
                   fmt::format("{} layers run, of {}", of_layers.size(), on.c.config.layers));
  for (const auto& [layer, steps] : of_layers)
    outcome &=
        holds(steps == of_layers.begin()->second, fmt::format("layer {} has other steps than the first one", layer));
  return outcome;
}

Outcome inputs(const SystemTrial& trial) {
  OnDevice on(trial);
  const StepPrograms& values = trial.step().programs;
  Outcome outcome;
  const auto numbers = [](const auto& all) { return std::vector<float>(all.begin(), all.end()); };
  for (const auto& samples : samples_of(on.c, 0)) {
    const Batch batch = batch_of(classifier_of(on.c), options_of(on.c), samples);
    on.trainer.set_runner([&](std::string_view, Session& session) {
      for (const auto& [name, v, want] :
           {std::tuple{"ids", values.ids, &batch.ids}, {"lengths", values.lengths, &batch.lengths}})
        outcome &= same<float>(name, numbers(session.get<std::int32_t>(v)), numbers(*want), "the device got another");
      session.run();
    });
    on.trainer.accumulate(samples);
  }
  return outcome;
}

Outcome evaluation(const SystemTrial& trial) {
  OnDevice on(trial), without(trial);
  const MicroBatches batches = samples_of(on.c, 0);
  on.trainer.accumulate(batches[0]), without.trainer.accumulate(batches[0]);
  const auto all_of = [](Trainer& trainer) {
    std::vector<float> all = trainer.gradients().sums;
    for_each_parameter(trainer.session(), [&](Value v) {
      for (const float x : contents(trainer.session(), v)) all.push_back(x);
    });
    return all;
  };
  const std::vector<float> before = all_of(on.trainer);
  for (const auto& batch : batches) on.trainer.evaluate(batch);
  Outcome outcome = same<float>("gradients and parameters", all_of(on.trainer), before, "an evaluation changes this");
  on.trainer.apply(), without.trainer.apply();
  return outcome &=
         same_state(on.trainer.state(), without.trainer.state(), "an evaluation before the update changes it");
}

Outcome twice(const SystemTrial& trial) {
  OnDevice one(trial), two(trial);
  for (const int number : {0, 1}) one.step(number), two.step(number);
  return same_state(two.trainer.state(), one.trainer.state(), "the second of two equal trainers differs");
}

Outcome adapters_begin(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  if (c.config.adapters.on.empty()) return Outcome::not_applicable("no adapters");
  Trainer trainer(classifier_of(c), options_of(c), trial.on(), trial.options());
  StepPrograms programs = step_programs(classifier_of(c), options_of(c));
  trial.alter(programs.gradients);
  Session session(programs.gradients, trial.on(), trial.options());
  initialize(session, c.seed);
  Outcome outcome;
  Index found = 0;
  for (const Parameter& p : session.program().parameters) {
    const bool a = p.name.ends_with("lora_A.weight"), b = p.name.ends_with("lora_B.weight");
    if (!a && !b) continue;
    const std::vector<float> values = get_parameter(session, p);
    const bool zeros = std::ranges::all_of(values, [](float x) { return x == 0; });
    outcome &= holds(b == zeros, fmt::format("{} begins as {}", p.name, zeros ? "zeros" : "other than zeros"));
    ++found;
  }
  const Index wanted = 2 * std::ssize(c.config.adapters.on) * c.config.layers;
  outcome &= holds(found == wanted, fmt::format("{} tensors of adapters, and {} are wanted", found, wanted));
  const Gradients g = trainer.gradients();
  return outcome &= holds(g.samples == 0 && std::ranges::all_of(g.sums, [](float x) { return x == 0; }),
                          "gradients begin as other than zeros");
}

Outcome every_leaf(const SystemTrial& trial) {
  OnDevice on(trial);
  const StepProgram& values = trial.step().joined;
  for (const auto& batch : samples_of(on.c, 0)) on.trainer.accumulate(batch);
  const TrainerState before = [&] {
    OnDevice fresh(trial);
    return fresh.trainer.state();
  }();
  const Gradients g = on.trainer.gradients();
  on.trainer.apply();
  const TrainerState after = on.trainer.state();
  Outcome outcome =
      holds(after.steps == before.steps + 1, fmt::format("{} steps are counted for one", after.steps - before.steps));
  for (const Value leaf : values.leaves) {
    const ValueInfo& info = values.program[leaf];
    bool any = false, m = false, v = false;
    for (Index i = info.offset; i < info.offset + info.shape.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      any = any || std::fabs(g.sums[at]) > 1e-12F;
      m = m || after.m[at] != before.m[at], v = v || after.v[at] != before.v[at];
    }
    outcome &= holds(!any || (m && v), fmt::format("{} has a gradient, and its means stay", info.name));
  }
  return outcome;
}

/// The gradients of a packed base are those of a base that holds what the codes mean.
Outcome packed_backward(const SystemTrial& trial) {
  BlockCase packed = trial.block();
  if (packed.config.weights != WeightFormat::nf4) return Outcome::not_applicable("the base is not packed");
  BlockCase plain = packed;
  plain.config.weights = WeightFormat::f32;
  const std::map<std::string, std::vector<double>> own = elements_of(packed, step_program(packed).program);
  const MicroBatches batches = samples_of(packed, 0);
  return within_both(InDouble(trial, plain, batches, own), InDouble(trial, packed, batches));
}

/// Adapters and what else trains beside a frozen base, through peft's files.
Outcome through_files(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  if (c.config.adapters.on.empty()) return Outcome::not_applicable("no adapters");
  OnDevice on(trial);
  if (!has_frozen_bases(on.trainer.session().program()))
    return Outcome::not_applicable("a weight trains beside its adapter");
  on.step(0);
  std::string pattern = (std::filesystem::temp_directory_path() / "assay-adapter-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw Unavailable("temporary folder", pattern + " cannot be made");
  const std::unique_ptr<std::string, void (*)(std::string*)> folder(
      &pattern, [](std::string* path) { std::filesystem::remove_all(*path); });
  save_adapters(on.trainer.session(), c.config.adapters, pattern, "base");
  OnDevice other(trial);
  load_adapters(other.trainer.session(), pattern);
  const auto samples = samples_of(c, 1)[0];
  const std::vector<Judgement> want = on.trainer.evaluate(samples), got = other.trainer.evaluate(samples);
  Outcome outcome;
  for (std::size_t i = 0; i < want.size(); ++i)
    outcome &= same<float>("logits", got[i].logits, want[i].logits,
                           "behind the files of the adapter the model decides otherwise");
  return outcome;
}

constexpr BlockPart kStep[] = {BlockPart::step};

constexpr SystemObligation kObligations[] = {
    {{"FALSIFY-SYS-001",
      "every step of every program, forward, backward, norm and update, is within its own worst-case bound on the "
      "operands that it really got",
      "steps", "the kernel of the step that is named, or memory that serves two values at once"},
     kStep,
     true,
     &steps},
    {{"FALSIFY-SYS-002", "the losses of two steps are the equations', in double, of samples without padding", "losses",
      "operands, constants or order of the forward steps, or a parameter that was updated wrongly"},
     kStep,
     false,
     &losses},
    {{"FALSIFY-SYS-003",
      "the gradient of every leaf is the derivative of the sum of all losses of all micro-batches, in double",
      "gradients", "a path of the backward pass that is missing, cut, doubled or exchanged, or a batch that is lost"},
     kStep,
     false,
     &gradients},
    {{"FALSIFY-SYS-020",
      "the norm of the mean gradient of all parameters together, the parameters and AdamW's means are the equations', "
      "in double, behind each of two steps",
      "updates", "the mean, the norm, the place of clipping, AdamW's constants, or a gradient that is not cleared"},
     kStep,
     false,
     &updates},
    {{"FALSIFY-SYS-004",
      "on the device, two steps of different learning rates are within the bound of the whole programs, with an "
      "evaluation and a skipped step between them",
      "composed", "a kernel of the back end, or what the host does between the programs"},
     kStep,
     false,
     &composed},
    {{"FALSIFY-SYS-005",
      "every parameter that trains moves where its update exceeds half an ulp, and no frozen one does", "moves",
      "a leaf that is cut off, an update that is rounded away, or a base that is written to"},
     kStep,
     false,
     &moves},
    {{"FALSIFY-SYS-006", "more places for tokens than they need change nothing, bitwise", "padding",
      "lengths, the mask, or the mean over tokens"},
     kStep,
     false,
     &padding},
    {{"FALSIFY-SYS-021",
      "unequal micro-batches, single samples and shards of any size, one of them empty, are one batch", "accumulation",
      "a mean of means, or a norm of parts"},
     kStep,
     false,
     &accumulation},
    {{"FALSIFY-SYS-022", "runs without a sample change no bit, and no step is counted without one", "empty_shards",
      "a mean over runs"},
     kStep,
     false,
     &empty_shards},
    {{"FALSIFY-SYS-023", "a loss that counts 2^k times, and a mean divided by 2^k, give the same update, bitwise",
      "loss_scale", "the gradient is clipped before the scale is taken from it, or eps meets a scaled gradient"},
     kStep,
     false,
     &loss_scale},
    {{"FALSIFY-SYS-024", "layers that are computed again change no bit", "recomputed",
      "a value that is made again from another input"},
     kStep,
     false,
     &recomputed},
    {{"FALSIFY-SYS-025", "a trainer that goes on from a state is the one that went on, bitwise", "resumed",
      "something outside of the state: a mean, the step's number, a gradient"},
     kStep,
     false,
     &resumed},
    {{"FALSIFY-SYS-026",
      "a gradient that is not finite skips the step and is counted; parameters and means stay, and the next step is "
      "as without it",
      "not_finite", "an update that is applied all the same, or a gradient that stays"},
     kStep,
     false,
     &not_finite},
    {{"FALSIFY-SYS-028",
      "every constant and extent of a step is the configuration's, forward, backward and update, at any size",
      "as_configured", "a constant that the builder takes from elsewhere, or only of some sizes"},
     kStep,
     true,
     &as_configured},
    {{"F-CLASS-001", "each sample has a finite logit for each class, the same ones in training and evaluation",
      "logits", "the head, or a forward pass of evaluation's own"},
     kStep,
     false,
     &logits},
    {{"F-CLASS-002", "labels beyond the classes, and targets of another length, are refused before anything changes",
      "labels", "a check that only some builds have"},
     kStep,
     false,
     &labels},
    {{"F-CLASS-005", "every loss is finite and not negative", "finite_losses", "an exponential, or a clamp"},
     kStep,
     false,
     &finite_losses},
    {{"C-GPUFWD-001",
      "samples without tokens, with too many or beyond the vocabulary are refused before anything changes", "tokens",
      "a sample that is cut silently"},
     kStep,
     false,
     &tokens},
    {{"C-GPUTRAINIT-001", "a trainer begins behind no step with means of zero", "begins", "memory that is not cleared"},
     kStep,
     false,
     &begins},
    {{"C-GPUTRAINIT-002", "memory is reserved whole, or refused with figures before any is allocated", "budget",
      "an estimate beside the plan"},
     kStep,
     false,
     &budget},
    {{"C-GPUBACK-001", "a step allocates nothing, and leaves nothing allocated on the host", "no_allocation",
      "a kernel that takes scratch of its own"},
     kStep,
     false,
     &no_allocation},
    {{"C-NF4BATCH-001", "a batch is one update, and gradients are zero behind it", "one_update",
      "an update for each run, or gradients that stay"},
     kStep,
     false,
     &one_update},
    {{"C-SYNCWT-001", "the host reads of every parameter what the device has trained", "synchronized",
      "a copy that was made before the step"},
     kStep,
     false,
     &synchronized},
    {{"F-CUDA-003",
      "a trainer that a device refused leaves no trace: the next one trains with the bits of one that came first",
      "after_a_refusal", "something that an attempt leaves on the device"},
     kStep,
     false,
     &after_a_refusal},
    {{"F-CUDA-005", "every parameter on the device is the host's, bitwise, codes and scales of packed ones too",
      "from_the_host", "a copy that is cut, or two parameters in one place"},
     kStep,
     false,
     &from_the_host},
    {{"F-CUDA-006", "every layer has its parameters on the device, the same names in each", "every_layer",
      "a layer that was not brought up"},
     kStep,
     false,
     &every_layer},
    {{"F-CUDA-007", "tokens and lengths on the device are the batch's", "inputs",
      "an upload that another one overwrites"},
     kStep,
     false,
     &inputs},
    {{"F-CUDA-008", "the forward pass runs every layer once, in order, with the same steps", "layers_in_order",
      "a layer that is skipped, or run twice"},
     kStep,
     false,
     &layers_in_order},
    {{"F-CUDA-009", "an evaluation changes no gradient, parameter or mean", "evaluation",
      "an evaluation that shares what training keeps"},
     kStep,
     false,
     &evaluation},
    {{"F-CUDA-014", "two trainers of the same case have the same bits behind two steps", "twice",
      "an order of sums that depends on time"},
     kStep,
     false,
     &twice},
    {{"C-NF4LORA-INIT-001", "adapters begin as nothing: B and all gradients are zero, and A is not", "adapters_begin",
      "memory that is not cleared, or an adapter without a place"},
     kStep,
     false,
     &adapters_begin},
    {{"C-GPUOPT-001", "one update counts one step, and moves both means of every parameter that has a gradient",
      "every_leaf", "a parameter that the update leaves out"},
     kStep,
     false,
     &every_leaf},
    {{"C-NF4BACK-001", "gradients through packed weights are those through the weights that they decode to, in double",
      "packed_backward", "a product with codes or scales of another row"},
     kStep,
     false,
     &packed_backward},
    {{"C-QLORA-CKPT-001", "adapters that were saved and loaded in peft's format decide with the same bits",
      "through_files", "a tensor that the files lack, or hold transposed"},
     kStep,
     false,
     &through_files},
    {{"C-VRAM-001", "a trainer takes the same memory each time; with a byte less it is refused, and keeps none",
      "all_or_nothing", "an allocation beside the plan, or a session that stays open"},
     kStep,
     false,
     &all_or_nothing},
};

}  // namespace

std::span<const SystemObligation> step_obligations() { return kObligations; }

}  // namespace assay::falsify
