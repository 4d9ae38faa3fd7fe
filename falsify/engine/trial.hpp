// One obligation tried on one case with one kernel: the interface of a check.
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

/// The contract's requires clauses reject the case: a bug of the case's generator, never of the kernel.
struct InvalidCase : std::logic_error {
  using std::logic_error::logic_error;
};

/// Outputs of a run, in the order of the contract's outputs.
struct Run {
  std::vector<std::vector<float>> outputs;
};

/// A call of the kernel under test, and its outputs.
struct Done {
  const Problem& problem;
  const Run& run;
};

/// Property shared by calls whose results are related bit for bit.
enum class Related {
  always,       ///< all that the results depend on
  by_batch,     ///< a row and its inputs, in a batch of other rows or of another size
  unless_lost,  ///< all that a kernel computes that keeps all pins of its contract
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
  /// Returns whether the kernel's own limits allow a call of these dims, with the params of the case.
  bool takes(const std::vector<Index>& dims) const;
  /// Returns reproducible randomness for a purpose of the check.
  Random random(std::string_view purpose) const { return Random(derive(case_.seed, purpose)); }

  /// Returns the call of the case.
  Problem problem() const {
    return restrict_integers(op_, kernel_, make_problem(op_, case_, kernel_.arithmetic, kernel_.storage));
  }
  /// Returns a call with the same dims and values by another strategy.
  Problem problem(Strategy strategy) const;
  /// Returns a call with other dims and values by the case's strategy.
  Problem problem(std::vector<Index> dims) const;

  /// Runs the kernel under test: guards around every tensor, poisoned outputs, inputs compared afterwards. Throws
  /// Interrupted unless it returns normally and damages nothing. Evaluates ensures clauses and certificates at level
  /// full only: otherwise they would fail before the check under trial.
  Run run(const Problem& problem, Poison poison, contract::Level level = contract::Level::pre);
  Run run(const Problem& problem) { return run(problem, case_.seed & 1 ? Poison::nan : Poison::finite); }
  /// The same, under load from other threads.
  Run run(const Problem& problem, BackgroundLoad beside) {
    worker_.beside(beside);
    return run(problem);
  }

  /// Runs the kernel on a call that the contract forbids and that the kernel declares to reject: it must report an
  /// error and write nothing. Returns nothing if the call is not forbidden.
  std::optional<Outcome> reject(const Problem& problem, std::string_view what);

  /// Returns the bounded oracle, under the arithmetic that the kernel declares. Computed in this process, after the
  /// kernel, out of its reach.
  std::vector<std::vector<Bounded>> oracle(const Problem& problem) const;

  /// Runs a call and the same call with inputs scaled by powers of two: output number o must be 2^exponents[o] times
  /// its unscaled value, bit for bit if all intermediate results of both calls stay in the normal range of the declared
  /// formats. Otherwise both calls must meet their bounds.
  Outcome scales(const Problem& plain, const Problem& scaled, const std::vector<int>& exponents);

  /// Throws Interrupted if the kernel wrote to tensors of its last run after returning.
  void expect_quiet() const;

  /// Compares every output of a run with the oracle; at shapes where this takes too long (joint.hpp), a sample of its
  /// places.
  Outcome against_oracle(Tier tier, const Problem& problem, const Run& run) const;

  /// Checks payloads if the contract pins them: each NaN of an output is the input element that the reference puts
  /// there, bit for bit.
  Outcome against_copies(const Problem& problem, const Run& run) const;

  /// True if the kernel keeps every float32 and every pin, so that a sum of a single term has one right result.
  bool holds_floats() const {
    const Arithmetic& a = kernel_.arithmetic;
    return a.inputs == Format::f32 && a.accumulator == Format::f32 && a.loses == Loss::nothing;
  }
  /// Returns the tier for integers whose sums are exact in float32.
  Tier exact_tier() const { return kernel_.arithmetic.accumulator == Format::f32 ? Tier::exact : Tier::worst_case; }
  /// Returns the strictest tier that holds for every call: bits for copies, otherwise the worst case.
  Tier strictest() const;
  /// The same for one problem: exact if only the exact values are right.
  Tier tier(const Problem& problem) const { return problem.exact && !op_.copies ? Tier::exact : strictest(); }

  /// `bits` compares the shared results of several calls, and stands for kernels that promise these bits. If a kernel
  /// declares otherwise (Kernel::deterministic, Kernel::batch_invariant, Arithmetic::loses), different bits are right
  /// if each call is within its own bounds: the results then differ by at most the sum of both bounds. A contract that
  /// pins batch invariance overrides the declaration.
  Outcome related(Outcome bits, Related by, std::initializer_list<Done> calls) const;
  /// Discards the calls so far, which do not belong to the check.
  void forget_calls() { calls_.clear(); }
  /// Adds the failed call, the element of that call, and unwritten elements to the finding (failed_call.cpp).
  void explain(Finding& finding);

 private:
  /// Expected values of one output: of all elements, or of those at these positions.
  struct Judged {
    std::vector<Bounded> want;
    std::vector<std::size_t> places;
  };
  std::vector<Judged> affordable_oracle(const Problem& problem) const;
  Outcome within_bounds(std::initializer_list<Done> calls) const;

  /// A call, with its outputs if it returned.
  struct MadeCall {
    Problem problem;
    Poison poison;
    std::optional<Run> run;
  };
  /// Returns the contents of outputs before a call that the kernel's limits require.
  Preset preset(const Problem& problem) const;
  /// Lays out the call as device and kernel allow.
  Stage stage(const Problem& problem, Poison poison) const { return stage(problem, poison, preset(problem)); }
  Stage stage(const Problem& problem, Poison poison, Preset preset) const;
  /// Returns the number of the failed call in `calls_`; reduces `finding` to that call if it is wrong by itself.
  std::size_t find_failed(Finding& finding, bool& alone) const;
  /// True if the finding's element still holds its value from before the call.
  bool not_written(MadeCall made, const Finding& finding);

  const OpDescriptor& op_;
  const Kernel& kernel_;
  const Case& case_;
  Worker& worker_;
  std::optional<Stage> last_;  ///< of the last run that returned normally
  std::vector<MadeCall> calls_;
  /// Oracle of the last call with preset outputs.
  mutable std::optional<std::pair<Problem, std::vector<std::vector<Bounded>>>> whole_;
};

/// Runs one check on one case, after the case's prelude, if any. An explained finding (Trial::explain) costs an oracle
/// for each call that the check made.
enum class Explain { no, yes };
Outcome try_obligation(Check check, const OpDescriptor& op, const Kernel& kernel, const Case& c, Worker& worker,
                       Explain explain = Explain::no);

/// Returns the indices of the outputs (or inputs) of an operation, in contract order; an inout tensor is both.
std::vector<int> outputs_of(const OpDescriptor& op);
std::vector<int> inputs_of(const OpDescriptor& op);

}  // namespace assay::falsify
