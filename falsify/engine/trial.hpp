// One obligation tried on one case with one kernel: what a check sees.
#pragma once

#include <initializer_list>
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

/// A call of the kernel under test, and what it gave.
struct Done {
  const Problem& problem;
  const Run& run;
};

/// What calls have in common whose results are related bit for bit.
enum class Related {
  always,       ///< all that the results depend on
  by_batch,     ///< a row and all that it depends on, among other rows or in another number of them
  unless_lost,  ///< what a kernel forms that keeps all pins of its contract
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

  /// Runs a call and the same with inputs scaled by powers of two: output number o is 2^exponents[o] times what it was, bit for bit
  /// where no number on the way leaves the normal range of the declared formats, in either call. Elsewhere both are held to their bounds.
  Outcome scales(const Problem& plain, const Problem& scaled, const std::vector<int>& exponents);

  /// Throws Interrupted where the kernel wrote to tensors of its last run after it had returned.
  void expect_quiet() const;

  /// Compares every output of a run with the oracle; at shapes where that takes too long (joint.hpp), a sample of its places.
  Outcome against_oracle(Tier tier, const Problem& problem, const Run& run) const;

  /// Where the contract pins payloads of NaNs: each NaN of an output is the element of an input that the reference puts there, bit for bit.
  Outcome against_copies(const Problem& problem, const Run& run) const;

  /// The kernel keeps every float32 and every pin, so that one result is right where every sum has a single term.
  bool holds_floats() const {
    const Arithmetic& a = kernel_.arithmetic;
    return a.inputs == Format::f32 && a.accumulator == Format::f32 && a.loses == Loss::nothing;
  }
  /// The tier of integers whose sums float32 holds.
  Tier exact_tier() const { return kernel_.arithmetic.accumulator == Format::f32 ? Tier::exact : Tier::worst_case; }
  /// What every call is held to: bits of copies, otherwise the worst case.
  Tier strictest() const;
  /// The same of one problem: exact values where those alone are right.
  Tier tier(const Problem& problem) const { return problem.exact && !op_.copies ? Tier::exact : strictest(); }

  /// `bits` compares what several calls have in common. It stands for kernels that promise those bits. Where a kernel declares that it
  /// does not (Kernel::deterministic, Kernel::batch_invariant, Arithmetic::loses), different bits are right if each of the calls is within its own
  /// bounds: their results are no further apart then than the sum of both. A contract that pins batch invariance has the last word.
  Outcome related(Outcome bits, Related by, std::initializer_list<Done> calls) const;
  /// The calls so far are none of the check's.
  void forget_calls() { calls_.clear(); }
  /// Has the finding name the call that failed, the element of that call, and what was not written (failed_call.cpp).
  void explain(Finding& finding);

 private:
  /// What the oracle says of one output: of all of its elements, or of those at these positions.
  struct Judged {
    std::vector<Bounded> want;
    std::vector<std::size_t> places;
  };
  std::vector<Judged> affordable_oracle(const Problem& problem) const;
  Outcome within_bounds(std::initializer_list<Done> calls) const;

  /// A call that was made, and its outputs if it returned.
  struct Made {
    Problem problem;
    Poison poison;
    std::optional<Run> run;
  };
  /// What the kernel's limits say that outputs hold before a call.
  Preset preset(const Problem& problem) const;
  /// The call laid out as device and kernel allow.
  Stage stage(const Problem& problem, Poison poison) const { return stage(problem, poison, preset(problem)); }
  Stage stage(const Problem& problem, Poison poison, Preset preset) const;
  /// The number of the call that failed in `calls_`; makes `finding` one of that call alone where it is wrong by itself.
  std::size_t find_failed(Finding& finding, bool& alone) const;
  /// The finding's element holds what it held before the call, whatever that was.
  bool not_written(Made made, const Finding& finding);

  const OpDescriptor& op_;
  const Kernel& kernel_;
  const Case& case_;
  Worker& worker_;
  std::optional<Stage> last_;  ///< of the last run that went well
  std::vector<Made> calls_;
  /// The oracle of the last call before which an output held what is right there.
  mutable std::optional<std::pair<Problem, std::vector<std::vector<Bounded>>>> whole_;
};

/// Runs one check on one case. A prelude in the case is run first. An explained finding (Trial::explain) costs an oracle for each
/// call that the check made.
enum class Explain { no, yes };
Outcome try_obligation(Check check, const OpDescriptor& op, const Kernel& kernel, const Case& c, Worker& worker,
                       Explain explain = Explain::no);

/// Indices of the outputs (or inputs) of an operation, in contract order; what is read and overwritten is both.
std::vector<int> outputs_of(const OpDescriptor& op);
std::vector<int> inputs_of(const OpDescriptor& op);

}  // namespace assay::falsify
