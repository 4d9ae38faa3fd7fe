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
};

/// All mutants of a program on its plan, at most `alternatives` of a kind at one operand, constant or storage.
/// O(steps²).
std::vector<ProgramMutant> program_mutants(const program::Program& program, const program::Plan& plan,
                                           std::size_t alternatives = 2);

/// Makes one step of a mutant's program in its run `r`, counted from 0.
template <class T>
void run_mutated_step(const ProgramMutant& mutant, Execution<T>& execution, int r, std::size_t s,
                      const program::Step& step) {
  if (r > 0 && static_cast<int>(s) == mutant.stale_step) return;
  if (static_cast<int>(s) == mutant.forgetful_step)
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
      if (step.op->tensors[t].role == Role::inout) fill(execution[step.tensors[t]], T(0));
  execution.run(step);
}

/// Runs a mutant, or with none of its marks a right program, `runs` times in a number type. `prepare(run, execution)`
/// sets inputs before each run.
template <class T>
void run_mutant(const ProgramMutant& mutant, Execution<T>& execution, int runs,
                const std::function<void(int, Execution<T>&)>& prepare) {
  for (int r = 0; r < runs; ++r) {
    prepare(r, execution);
    for (std::size_t s = 0; s < mutant.program.steps.size(); ++s)
      run_mutated_step(mutant, execution, r, s, mutant.program.steps[s]);
  }
}

}  // namespace assay::falsify
