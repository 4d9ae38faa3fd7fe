// One obligation tried on one case with one kernel: what a check sees.
#pragma once

#include <optional>
#include <stdexcept>
#include <vector>

#include "core/bounded.hpp"
#include "falsify/engine/admit.hpp"
#include "falsify/engine/comparator.hpp"
#include "falsify/engine/inputs.hpp"
#include "falsify/engine/obligation.hpp"
#include "falsify/engine/oracle.hpp"
#include "falsify/engine/worker.hpp"

namespace assay::falsify {

/// The contract's own requires clauses refuse the case: a fault of whoever made it, never of the kernel.
struct InvalidCase : std::logic_error {
  using std::logic_error::logic_error;
};

/// Outputs of a run, in the order of the contract's outputs.
struct Run {
  std::vector<std::vector<float>> outputs;
};

/// Ends a check from inside Trial::run: the kernel crashed, hung, threw, damaged memory, or refused.
struct Interrupted {
  Outcome outcome;
};

class Trial {
 public:
  Trial(const OpDescriptor& op, const Kernel& kernel, const Case& c, Worker& worker)
      : op_(op), kernel_(kernel), case_(c), worker_(worker) {}

  const OpDescriptor& op() const { return op_; }
  const Kernel& kernel() const { return kernel_; }
  const Case& the_case() const { return case_; }
  /// Reproducible randomness for a purpose of the check's own.
  Random random(std::string_view purpose) const { return Random(derive(case_.seed, purpose)); }

  /// The call of the case.
  Problem problem() const { return keep_to(op_, kernel_, make_problem(op_, case_, kernel_.arithmetic, kernel_.storage)); }
  /// The same dims with values by another strategy.
  Problem problem(Strategy strategy) const;
  /// A call with other dims; values by the case's strategy.
  Problem problem(std::vector<Index> dims) const;

  /// Runs the kernel under test: guards around every tensor, poisoned outputs, inputs compared afterwards.
  /// Throws Interrupted unless it returned normally and damaged nothing.
  /// Ensures clauses and certificates are evaluated at level full only: they would otherwise answer before the
  /// check that is being tried.
  Run run(const Problem& problem, Poison poison, contract::Level level = contract::Level::pre);
  Run run(const Problem& problem) { return run(problem, case_.seed & 1 ? Poison::nan : Poison::finite); }
  /// The same beside work of other threads.
  Run run(const Problem& problem, Beside beside) {
    worker_.beside(beside);
    return run(problem);
  }

  /// Runs the kernel on a call that the contract forbids and that it says it rejects: it must say so, and touch nothing. Nothing where
  /// the call is not forbidden.
  std::optional<Outcome> reject(const Problem& problem, std::string_view what);

  /// The bounded oracle, under the arithmetic that the kernel declares. Computed in this process, after
  /// the kernel, out of its reach.
  std::vector<std::vector<Bounded>> oracle(const Problem& problem) const;

  /// Throws Interrupted where the kernel wrote to tensors of its last run after it had returned.
  void expect_quiet() const;

  /// Compares every output of a run with the oracle.
  Outcome against_oracle(Tier tier, const Problem& problem, const Run& run) const;

 private:
  /// What the kernel's limits say that outputs hold before a call.
  Preset preset(const Problem& problem) const;
  /// Placement that the device and the kernel allow.
  Case placed() const;

  const OpDescriptor& op_;
  const Kernel& kernel_;
  const Case& case_;
  Worker& worker_;
  std::optional<Stage> last_;  ///< of the last run that went well
};

/// Runs one check on one case. A prelude in the case is run first.
Outcome try_obligation(Check check, const OpDescriptor& op, const Kernel& kernel, const Case& c, Worker& worker);

/// Indices of the outputs (or inputs) of an operation, in contract order; what is read and overwritten is both.
std::vector<int> outputs_of(const OpDescriptor& op);
std::vector<int> inputs_of(const OpDescriptor& op);

}  // namespace assay::falsify
