// Mutants of programs: what goes wrong when right operations are put together wrongly.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "falsify/program/execute.hpp"
#include "program/program.hpp"

namespace assay::falsify {

enum class ProgramFault {
  dropped_step,      ///< its outputs keep what their memory held
  swapped_operands,  ///< two of one shape
  wrong_operand,     ///< another value of the same shape
  repeated_step,     ///< a sum in place is made twice
  other_constant,    ///< a parameter of an operation
  shared_slot,       ///< two live values in the same memory
  stale_value,       ///< from the second run on, a step is left out
  forgotten_sum,     ///< a sum in place begins at zero in every run
  other_version,     ///< an operand is as it was before a step in place, or as it is after one
  fewer_places,      ///< a step computes, or sums, one row or column fewer
  other_integers,    ///< lengths, positions or ids of a neighbour, one lower or one higher
  other_order,       ///< two neighbouring steps, of which one needs the other, are exchanged
  not_copied,        ///< what the host sets arrives in the first run alone, or it reads results of the run before
  planted,           ///< by name (block_faults.hpp)
};
std::string_view name(ProgramFault fault);

struct ProgramMutant {
  ProgramFault fault = ProgramFault::dropped_step;
  std::string description;  ///< "layers.0.q_proj (matmul_nt): reads b for a"
  program::Program program;
  program::Plan plan;
  int stale_step = -1;      ///< left out from the second run on
  int forgetful_step = -1;  ///< what it adds to is zero before
  /// The step reads this operand with other contents.
  struct Operand {
    int step = -1;
    std::size_t tensor = 0;
    int writer = -1;  ///< as before this step if it is an earlier one, else as behind it
    int shift = 0;    ///< of integers without a writer: each of its neighbour (0), or moved by so much
  } operand{};
  program::Value not_set{}, not_read{};  ///< by the host: not after the first run; not since the run before
};

/// All mutants of a program on its plan, at most `alternatives` of a kind at one operand, constant or storage.
/// O(steps²).
std::vector<ProgramMutant> program_mutants(const program::Program& program, const program::Plan& plan,
                                           std::size_t alternatives = 2);

template <class T>
std::vector<T> elements(View<T> view) {
  std::vector<T> all;
  for (Index n = 0; n < view.size(); ++n) all.push_back(view.data()[offset_of(view.shape(), view.strides(), n)]);
  return all;
}
template <class T>
void set_elements(View<T> view, const std::vector<T>& all) {
  for (std::size_t n = 0; n < all.size(); ++n)
    view.data()[offset_of(view.shape(), view.strides(), static_cast<Index>(n))] = all[n];
}

/// Integers of an operand, each of its neighbour or moved by so much, as far as the contract admits them.
template <class T>
std::vector<T> shifted(const program::Step& step, std::size_t tensor, int shift, std::vector<T> all) {
  const TensorInfo& info = step.op->tensors[tensor];
  if (shift == 0) std::ranges::rotate(all, all.begin() + 1);
  for (T& n : all)
    if (const T moved = n + T(shift);
        info.least == nullptr || (T(static_cast<double>(info.least(step.dims))) <= moved &&
                                  moved <= T(static_cast<double>(info.most(step.dims)))))
      n = moved;
  return all;
}

/// Makes the steps of a mutant's program.
template <class T>
class MutatedSteps {
 public:
  MutatedSteps(const ProgramMutant& mutant, Execution<T>& execution) : mutant_(mutant), execution_(execution) {}

  /// Before the steps [first, end) of a run: takes contents that one of them reads although a later one writes them.
  void begin(std::size_t first, std::size_t end) {
    const ProgramMutant::Operand& other = mutant_.operand;
    if (other.writer <= other.step || other.step < static_cast<int>(first) || other.writer >= static_cast<int>(end))
      return;
    Execution<T> ahead = execution_;
    for (auto s = static_cast<int>(first); s <= other.writer; ++s) ahead.run(steps()[static_cast<std::size_t>(s)]);
    contents_ = elements(ahead[operand()]);
  }
  /// Makes step s, as `step`, in run `r`, counted from 0.
  void run(int r, std::size_t s, const program::Step& step) {
    const ProgramMutant::Operand& other = mutant_.operand;
    if (r > 0 && static_cast<int>(s) == mutant_.stale_step) return;
    if (static_cast<int>(s) == mutant_.forgetful_step)
      for (std::size_t t = 0; t < step.tensors.size(); ++t)
        if (step.op->tensors[t].role == Role::inout) fill(execution_[step.tensors[t]], T(0));
    if (static_cast<int>(s) == other.writer && other.writer < other.step) contents_ = elements(execution_[operand()]);
    if (static_cast<int>(s) != other.step) return execution_.run(step);
    const std::vector<T> now = elements(execution_[operand()]);
    set_elements(execution_[operand()], other.writer < 0 ? shifted(step, other.tensor, other.shift, now) : contents_);
    execution_.run(step);
    set_elements(execution_[operand()], now);
  }

 private:
  const std::vector<program::Step>& steps() const { return mutant_.program.steps; }
  program::Value operand() const {
    return steps()[static_cast<std::size_t>(mutant_.operand.step)].tensors[mutant_.operand.tensor];
  }

  const ProgramMutant& mutant_;
  Execution<T>& execution_;
  std::vector<T> contents_;
};

/// Runs a mutant, or with none of its marks a right program, `runs` times in a number type. `prepare(run, execution)`
/// sets inputs before each run.
template <class T>
void run_mutant(const ProgramMutant& mutant, Execution<T>& execution, int runs,
                const std::function<void(int, Execution<T>&)>& prepare) {
  const std::vector<program::Step>& steps = mutant.program.steps;
  MutatedSteps<T> mutated(mutant, execution);
  for (int r = 0; r < runs; ++r) {
    const std::vector<T> set = mutant.not_set && r > 0 ? elements(execution[mutant.not_set]) : std::vector<T>();
    prepare(r, execution);
    if (mutant.not_set && r > 0) set_elements(execution[mutant.not_set], set);
    mutated.begin(0, steps.size());
    for (std::size_t s = 0; s < steps.size(); ++s) mutated.run(r, s, steps[s]);
  }
}

}  // namespace assay::falsify
