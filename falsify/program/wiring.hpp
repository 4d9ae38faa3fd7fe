// A block's wiring in double, beside its equations: the results of two runs, and the gradient of every leaf after them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "falsify/engine/outcome.hpp"
#include "falsify/program/block.hpp"
#include "falsify/program/mutants.hpp"
#include "falsify/program/step.hpp"

namespace assay::falsify {

/// Numbers that a program should compute.
struct Expected {
  std::string name;        ///< "y of run 1", the leaf that this is the gradient of, or a cache
  std::string_view claim;  ///< the obligation that says so
  Shape shape;
  std::vector<double> want, bound;
};

/// Holds numbers to `expected`. Every one is judged, but evidence is only a number whose bound is below kSmallBound of
/// the largest.
inline constexpr double kSmallBound = 1e-6;
Outcome judge(const Expected& expected, std::span<const double> got);

class Wiring {
 public:
  static constexpr std::size_t kRuns = 2;

  explicit Wiring(const BlockCase& c);

  const program::Differentiated& differentiated() const { return d_; }
  const program::Plan& where() const { return plan_; }
  /// By the equations in long double, and their derivatives in dual numbers: y of each run, then the sum over the runs of
  /// the gradient of each leaf; of decoding, what the runs leave in each cache. Of a training step, whose runs are
  /// steps, gradients are those of the first one, and the norms, the parameters and their means follow. Bounds are those
  /// of float32 arithmetic, scaled to double's unit roundoff.
  const std::vector<Expected>& expected() const { return expected_; }
  /// By the derivative of the program's own forward steps, in complex numbers with a step too small to round.
  std::vector<Expected> by_complex_step() const;

  /// Returns all automatic mutants. What the host sets and reads in a training step has faults by name instead.
  std::vector<ProgramMutant> mutants() const;
  /// Returns what a mutant computes, in the order of expected().
  std::vector<std::vector<double>> run(const ProgramMutant& mutant) const;
  ProgramMutant right() const { return {{}, "", d_.program, plan_}; }
  /// Returns whether the mutant is the program, in fifty digits.
  bool equivalent(const ProgramMutant& mutant) const;

 private:
  void expect_gradients();
  void expect_caches();
  void expect_step();
  void expect(std::string name, std::string_view claim, program::Value of, const std::vector<long double>& want);
  template <class T>
  std::vector<std::vector<T>> results(const ProgramMutant& mutant, const T& poison) const;
  template <class T>
  std::vector<std::vector<T>> results_of_steps(const ProgramMutant& mutant, const T& poison) const;

  BlockCase case_;
  Block block_;
  std::optional<StepProgram> step_;  ///< of a training step
  program::Differentiated d_;
  program::Plan plan_;
  std::vector<program::Value> finals_;  ///< read after the last run
  std::vector<Expected> expected_;
  mutable std::vector<std::vector<Digits50>> digits_;
};

}  // namespace assay::falsify
