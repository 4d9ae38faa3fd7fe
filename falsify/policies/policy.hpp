// Other projects' rules for accepting a kernel, each as its own test code has them: which calls it makes, what fills
// the inputs, what memory the outputs start from, what is watched, and what it accepts. The same wrong kernels judged
// under all of them make the table of `assay mutants --policies`.
//
// One file a policy. Beside every number stands where the project says it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/engine/inputs.hpp"
#include "falsify/engine/worker.hpp"

namespace assay::falsify::policies {

/// One call that a project's tests make: dims and params in the order of our contract.
struct Sample {
  std::vector<Index> dims;
  std::vector<double> params{};
  Layout layout = Layout::tight;  ///< padded where the project runs views or strides
};

/// Fills the inputs of a problem that holds Gaussian values and consistent saved ones.
using Fill = std::function<void(Problem& problem, Random& random)>;

/// One output as a policy sees it, dense.
struct Output {
  std::string_view tensor;
  DType dtype = DType::f32;
  std::span<const float> got;
  std::span<const float> want;  ///< the policy's reference, rounded to the type of the output
  bool tf32 = false;            ///< the kernel declares TF32 inputs
};

/// Why a kernel is not accepted, in a few words; empty where it is.
using Rejection = std::optional<std::string>;
using Outputs = std::vector<std::vector<float>>;

class Caller;

/// What a project does for one operation.
struct Rule {
  std::string_view op;
  std::vector<Sample> samples;
  Fill fill;
  double limit = 0;   ///< of the policy's own measure; relative where it has two
  double limit2 = 0;  ///< absolute
  /// Further checks on a problem whose outputs were accepted: properties, finite differences. May call the kernel.
  std::function<Rejection(Caller& caller, const Problem& problem, const Outputs& got)> check{};
  bool compared = true;  ///< outputs are compared with a reference
};

/// What outputs hold before a call.
enum class Before {
  zeros,     ///< fresh memory
  recycled,  ///< what the call before wrote; zeros before the first
  random,    ///< uniform between -1 and 1
  poison,    ///< NaN, or all bits set
};
/// What is watched around tensors.
enum class Guard { none, sentinels, page_behind };
/// Where expected values come from.
enum class Reference {
  oracle,  ///< the double reference: the project's is as precise, or more so than float32
  mirror,  ///< the reference run in float32: the project's is float32 code
};

/// What became of one kernel under one policy.
struct Judgement {
  bool covered = true;        ///< the project has a test for the operation
  Rejection rejected;         ///< the first
  std::string unavailable{};  ///< why nothing ran: no device
  int cases = 0;
  int refused = 0;  ///< of them, not taken by the kernel
  double seconds = 0;
};

struct JudgeOptions {
  int cases = 50;  ///< of each obligation, for our own campaign
  std::uint64_t seed = 1;
  std::chrono::milliseconds limit{10'000};  ///< a call that takes longer is a hang, under every policy
};

struct Policy {
  std::string_view name;
  std::string_view source;  ///< project, files, revision
  std::function<const std::vector<Rule>&()> rules{};
  Rejection (*rejects)(const Rule& rule, const Output& output) = nullptr;
  Before before = Before::zeros;
  Guard guard = Guard::none;
  Reference reference = Reference::oracle;
  int runs = 1;               ///< calls on the same inputs, one after another
  bool float32_only = false;  ///< no tests of kernels that store 16 bits
  std::vector<std::string_view> notes{};
  /// Judges by itself: our own campaign.
  std::function<Judgement(const OpDescriptor& op, const Kernel& kernel, const JudgeOptions& options)> judge{};
  int order = 0;  ///< in the table

  /// Those for one operation; empty where the project has no test for it.
  std::vector<const Rule*> rules_for(std::string_view op) const;
};

struct PolicyRegistration {
  explicit PolicyRegistration(Policy policy);
};
/// In the order of the table.
std::span<const Policy* const> policies();
/// Throws InputError if there is none of this name.
const Policy& policy(std::string_view name);

/// Ends a judgement from inside a call: the kernel crashed, hung, threw, or wrote where it is watched.
struct Caught {
  std::string reason;
};
/// The kernel does not take the call.
struct Refused {};

/// Runs a kernel in its worker, with the memory and the guards of a policy. A crash or a hang is seen under every
/// policy.
class Caller {
 public:
  Caller(const Policy& policy, const OpDescriptor& op, const Kernel& kernel, Worker& worker)
      : policy_(policy), op_(op), kernel_(kernel), worker_(worker) {}

  const OpDescriptor& op() const { return op_; }
  const Kernel& kernel() const { return kernel_; }
  /// Throws Caught, Refused, Unavailable.
  Outputs run(const Problem& problem, Layout layout = Layout::tight);

 private:
  std::vector<float> before(const Problem& problem, int tensor, std::size_t output) const;

  const Policy& policy_;
  const OpDescriptor& op_;
  const Kernel& kernel_;
  Worker& worker_;
  Outputs last_;
};

/// Inputs of a sample: what the policy's rule fills, in values that the kernel's storage holds.
Problem make_sample(const OpDescriptor& op, const Kernel& kernel, const Rule& rule, const Sample& sample,
                    std::uint64_t seed);
/// Outputs of an operation's double reference on values in double, in contract order.
std::vector<std::vector<double>> evaluate(const Problem& problem, const std::vector<std::vector<double>>& values);
/// Outputs of the reference, in contract order, as it computes them.
std::vector<std::vector<double>> unrounded(const Problem& problem, Reference reference);
/// The same rounded to their types.
Outputs expected(const Problem& problem, Reference reference);

/// One kernel under one policy, until the first rejection.
Judgement judge(const Policy& policy, const OpDescriptor& op, const Kernel& kernel, const JudgeOptions& options,
                Worker& worker);

}  // namespace assay::falsify::policies
