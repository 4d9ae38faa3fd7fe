// The rules by which other projects test blocks and training steps, on mutants of a training step in double.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "falsify/program/step.hpp"

namespace assay::falsify {

struct StepRule {
  std::string_view name, compares, source;
  bool falls = false;        ///< asks that the loss falls, and compares nothing
  bool updates = true;       ///< the project's own update is a part of what it tests
  bool forward = false;      ///< logits alone, by their normalized mean square
  bool accumulates = false;  ///< one batch, and the same samples in micro-batches
  bool real_lengths = false;
  int steps = 1;
  /// Each |got - want| <= absolute + relative |want|. Negative: it is not compared.
  struct Tolerance {
    double absolute = -1, relative = 0;
  } losses{}, logits{}, gradients{}, parameters{};
};
std::span<const StepRule> step_rules();

/// The right results of a case under every rule.
class StepRules {
 public:
  explicit StepRules(const BlockCase& c);
  ~StepRules();

  /// Returns for each rule whether it accepts the mutant.
  std::vector<bool> accept(const ProgramMutant& mutant) const;

 private:
  struct Results;
  Results run(const StepRule& rule, const ProgramMutant& mutant) const;

  BlockCase c_;
  StepProgram right_;
  std::vector<Results> wanted_;
};

}  // namespace assay::falsify
