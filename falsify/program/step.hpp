// A training step as one program and the host's part around it, in number types; and its mirror by published formulas.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "falsify/program/block.hpp"
#include "falsify/program/mutants.hpp"
#include "program/model/training.hpp"

namespace assay::falsify {

program::ClassifierConfig classifier_of(const BlockCase& c);
program::TrainingOptions options_of(const BlockCase& c);

/// Micro-batches of a step, each of other samples: the first is full, and each further one has one fewer, as long as one
/// is left. Lengths are drawn.
using MicroBatches = std::vector<std::vector<program::Sample>>;
MicroBatches samples_of(const BlockCase& c, int step);

/// The programs of a step, one behind the other. Labels of the norm's steps begin with "norm.", those of the update with
/// "update.". The factor of the mean and the step's number are those of the first of a case's steps.
struct StepProgram {
  program::Program program;
  program::StepPrograms of;                  ///< with all values in `program`
  std::vector<program::Value> leaves, m, v;  ///< of each parameter that trains: itself and its means
};
StepProgram step_program(const BlockCase& c);
StepProgram step_program(const BlockCase& c, program::StepPrograms programs);
/// The programs of a case, each alone and one behind the other.
struct StepOfCase {
  explicit StepOfCase(const BlockCase& c);
  program::StepPrograms programs;
  StepProgram joined;
};
StepProgram joined(program::StepPrograms programs);

/// AdamW's means before the first step of a case, in the layout of all parameters that train: zeros behind no step.
struct Means {
  std::vector<double> m, v;
};
Means means_of(const BlockCase& c, const StepProgram& step);

/// Elements of every parameter by name, packed ones as they are decoded.
std::map<std::string, std::vector<double>> elements_of(const BlockCase& c, const program::Program& program);

/// Sets the inputs of a case's forward pass that no batch changes.
template <class T>
void set_constants(Execution<T>& memory, const StepProgram& step, const BlockCase& c) {
  const std::vector<float> weights = classifier_of(c).class_weights;
  write(memory[step.of.weights], std::vector<double>(weights.begin(), weights.end()));
  std::vector<double> places(static_cast<std::size_t>(c.rows()));
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<double>(i % static_cast<std::size_t>(c.s));
  if (step.of.positions) write(memory[step.of.positions], places);
}

/// Sets those that a batch changes. Returns the upstream gradient.
template <class T>
std::vector<double> set_samples(Execution<T>& memory, const StepProgram& step, const BlockCase& c,
                                std::span<const program::Sample> samples) {
  const program::Batch batch = program::batch_of(classifier_of(c), options_of(c), samples);
  const auto doubles = [](const auto& numbers) { return std::vector<double>(numbers.begin(), numbers.end()); };
  write(memory[step.of.ids], doubles(batch.ids)), write(memory[step.of.lengths], doubles(batch.lengths));
  write(memory[step.of.targets], c.multi_label ? doubles(batch.labels) : doubles(batch.targets));
  return doubles(batch.upstream);
}

/// A step's program, or a mutant of it, in a number type, with what the Trainer does on the host: it counts samples,
/// divides by their number, counts steps and clears gradients.
template <class T>
class StepExecution {
 public:
  StepExecution(const ProgramMutant& mutant, const StepProgram& right, const BlockCase& c, const T& poison)
      : memory(mutant.program, mutant.plan, poison), m_(mutant), right_(right), c_(c), steps_(c.step.steps) {
    while (apply_at_ < m_.program.steps.size() && !is_applied(m_.program.steps[apply_at_])) ++apply_at_;
    for_each_set_by_host(m_.program, [&](program::Value v) { write(memory[v], numbers_of(c, m_.program, v)); });
    set_constants(memory, right, c);
    const Means means = means_of(c, right);
    write(memory[right.of.m], means.m), write(memory[right.of.v], means.v);
  }

  /// Adds the gradients of at most a batch of samples.
  void accumulate(std::span<const program::Sample> samples) {
    write(memory[right_.of.upstream], set_samples(memory, right_, c_, samples));
    samples_ += std::ssize(samples);
    mutated_.begin(0, apply_at_);
    for (std::size_t s = 0; s < apply_at_; ++s) run(accumulated_, s, m_.program.steps[s]);
    ++accumulated_;
  }

  /// Takes a step; the gradients stay as they are. Returns the norm of their mean.
  T apply() {
    ++steps_;
    if constexpr (std::is_same_v<T, Bounded>) {
      if (of_double) update_bounds();
      else update();
    } else {
      update();
    }
    ++applied_;
    return memory[right_.of.norm_of_sum].data()[0] / T(static_cast<double>(std::exchange(samples_, 0)));
  }

  /// Of all ranks, whose gradients have taken the place of these.
  void count(Index samples) { samples_ = samples; }

  void clear() {
    for (std::size_t i = 0; i < m_.program.values.size(); ++i) {
      const program::Value v{static_cast<std::int32_t>(i)};
      if (m_.program.storage_of(v).kind == program::Kind::gradient) fill(memory[v], T(0));
    }
  }

  Execution<T> memory;
  std::vector<Arithmetic> arithmetic;  ///< of the kernel of each step; empty: float32's
  std::optional<double> lr;            ///< of the next updates, in place of the case's
  /// Bounds are scaled by 2^-29 afterwards, and are to hold for double.
  bool of_double = false;

 private:
  void run(int r, std::size_t s, const program::Step& step) {
    const ArithmeticScope scope(arithmetic.empty() ? current_arithmetic() : arithmetic[s]);
    mutated_.run(r, s, step);
  }
  void update() {
    mutated_.begin(apply_at_, m_.program.steps.size());
    for (std::size_t s = apply_at_; s < m_.program.steps.size(); ++s) {
      program::Step step = m_.program.steps[s];
      set_param(step, "update.scale", 0, 1 / static_cast<double>(samples_));
      set_param(step, "update.adamw_step", 5, static_cast<double>(steps_));
      if (lr) set_param(step, "update.adamw_step", 0, *lr);
      run(applied_, s, step);
    }
  }

  /// An update divides by the root of squares: there, errors of float32 have no bound that is linear in the unit
  /// roundoff. Those of double are small, and add up: what the update rounds, with exact operands, and what it makes of
  /// the operands' errors in double.
  void update_bounds() {
    const program::Value all[] = {right_.of.parameters, right_.of.m, right_.of.v,
                                  right_.program.steps[apply_at_].tensors[0], right_.of.norm_of_sum};
    std::vector<std::vector<Bounded>> before, rounded;
    for (const program::Value v : all) before.push_back(read(memory[v]));
    const auto set = [&](program::Value v, const std::vector<Bounded>& numbers) {
      std::ranges::copy(numbers, memory[v].data());
    };
    for (const double unit : {0.0, 0x1p-29}) {
      for (std::size_t i = 0; i < 4; ++i) {
        std::vector<Bounded> numbers = before[i];
        for (Bounded& b : numbers) b.error *= unit, b.statistical *= unit;
        set(all[i], numbers);
      }
      update();
      for (const program::Value v : all)
        if (unit == 0) rounded.push_back(read(memory[v]));
    }
    for (const std::size_t i : {0, 1, 2, 4}) {
      std::vector<Bounded> numbers = read(memory[all[i]]);
      for (std::size_t n = 0; n < numbers.size(); ++n) {
        const double own = rounded[i][n].error, inherited = std::max(0.0, numbers[n].error - own);
        numbers[n].error = numbers[n].statistical = std::isfinite(own) ? own + 0x1p29 * inherited : own;
      }
      set(all[i], numbers);
    }
    set(all[3], before[3]);
  }

  static bool is_applied(const program::Step& step) {
    return step.label.starts_with("norm.") || step.label.starts_with("update.");
  }
  /// Sets what the host sets, unless a fault has put something else in its place.
  void set_param(program::Step& step, std::string_view label, std::size_t param, double value) const {
    if (step.label != label) return;
    for (const program::Step& right : right_.program.steps)
      if (right.label == label && right.params[param] == step.params[param]) {
        step.params[param] = value;
        return;
      }
  }

  const ProgramMutant& m_;
  const StepProgram& right_;
  BlockCase c_;
  MutatedSteps<T> mutated_{m_, memory};
  std::size_t apply_at_ = 0;
  int accumulated_ = 0, applied_ = 0;
  Index samples_ = 0, steps_;
};

/// A step by the formulas of its parts, on the samples alone: no padding, batch or flat vector. Derivatives by Traced.
class StepMirror {
 public:
  using Real = long double;
  using Tensors = std::map<std::string, std::vector<Real>>;

  /// `trained` holds the parameters that train.
  StepMirror(const BlockCase& c, Tensors parameters, std::vector<std::string> trained, Tensors m, Tensors v);

  struct Result {
    std::vector<Real> losses;  ///< of the samples of the last micro-batch
    Tensors gradients;         ///< sums over all samples
    Real norm = 0;             ///< of their mean, of all together, before it is clipped
  };
  Result step(const MicroBatches& all);
  /// The loss of one sample.
  Real loss(const program::Sample& sample) const;

  Tensors parameters, m, v;

 private:
  BlockCase c_;
  program::ClassifierConfig classifier_;
  std::vector<std::string> trained_;
  Index steps_;
};

}  // namespace assay::falsify
