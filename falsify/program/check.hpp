// Holds each step of a program, on its device and in place, to its operation's own bounds: right at any size and depth,
// since no bound is composed.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "falsify/engine/outcome.hpp"
#include "program/session.hpp"

namespace assay::falsify {

/// The first wrong step of a run.
struct StepFault {
  std::size_t step = 0;  ///< the number of steps: no single one is wrong, but the whole run is, or one before it
  std::string label;     ///< "layers.3.q_proj (linear)"
  std::string value;     ///< name of the value that is wrong
  Finding finding;
};

/// "step 3 of 7, layers.3.q_proj (linear)", or "the whole run", of a run of so many steps.
std::string describe(const StepFault& fault, std::size_t steps);

/// The outcome of a checked run.
struct CheckedRun {
  std::optional<StepFault> fault;
  std::size_t steps = 0;      ///< that are right
  std::int64_t elements = 0;  ///< compared with an expected value
  std::int64_t nonzero = 0;   ///< of them, those that are expected not to be zero
  double worst = 0;           ///< largest error in bounds
};

/// Runs the session's program on what the host has set, once as Session::run() does and once step by step. Before both,
/// each step runs once on copies of its tensors.
/// 1. Every result of a step is within its worst-case bound (the kernel's declared arithmetic) on the inputs that the
///    step really got. Where the oracle of a whole step takes too long, it judges a sample along
///    one independent dim, such as rows, drawn by `seed`.
/// 2. A step finds each operand as its last writer, or the host, left it, and leaves all but its results as it was.
///    Memory that serves two values at once fails here. On the copies it writes its results alone, and leaves what it
///    reads as it is also where an earlier run has changed the original.
/// 3. Both runs give the same bits, unless a kernel declares that it is not deterministic.
/// Stops at the first fault. Afterwards parameters, inputs, states and gradients are as after one run. Costs the bytes
/// of all storages on the host, and the oracle's time on every core.
CheckedRun check_steps(program::Session& session, std::uint64_t seed = 1);

/// A checked run has found a wrong step.
struct WrongStep : std::runtime_error {
  explicit WrongStep(const StepFault& fault);
  StepFault fault;
};

/// Throws WrongStep if the kernel, on zeros, changes anything but its results. A session runs every kernel once to
/// prepare it: one that writes elsewhere ends the process there, unless SessionOptions::choose calls this first.
void expect_in_its_place(const program::Step& step, const Kernel& kernel, Device& device);

/// Returns SessionOptions::check that makes runs by check_steps(), adds to `all`, which outlives the session, and
<<<<<<< f07dcf1b005ab8fb5fc965db19e52d6793b04bce
/// throws WrongStep. Between two checked runs, what no step may change and nobody has set keeps its bits: a parameter
/// that a run in between has damaged is named.
=======
/// throws WrongStep.
>>>>>>> variants
std::function<void(program::Session&)> steps_within_bounds(CheckedRun& all, std::uint64_t seed = 1);

}  // namespace assay::falsify
