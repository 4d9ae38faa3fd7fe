// Other projects' rules for accepting a kernel, as in their own test code: the calls, the inputs, the initial contents
// of outputs, the guards, and the accepted errors. Judging the same wrong kernels under all rules gives the table of
// `assay mutants --policies`.
//
// One file a policy. Every number names its place in the project's source.
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

/// One call of a project's tests: dims and params in the order of our contract.
struct Sample {
  std::vector<Index> dims;
  std::vector<double> params{};
  Layout layout = Layout::tight;  ///< padded if the project runs views or strides
};

/// Fills the inputs of a problem, which already holds Gaussian values and consistent saved ones.
using Fill = std::function<void(Problem& problem, Random& random)>;

/// One output as given to a policy, dense.
struct Output {
  std::string_view tensor;
  DType dtype = DType::f32;
  std::span<const float> got;
  std::span<const float> want;  ///< the policy's reference, rounded to the type of the output
  bool tf32 = false;            ///< the kernel declares TF32 inputs
};

/// Reason why a kernel is rejected, in a few words; empty if it is accepted.
using Rejection = std::optional<std::string>;
using Outputs = std::vector<std::vector<float>>;

class Caller;

/// A project's test of one operation.
struct Rule {
  std::string_view op;
  std::vector<Sample> samples;
  Fill fill;
  double limit = 0;   ///< of the policy's own measure; relative if it has two
  double limit2 = 0;  ///< absolute
  /// Further checks on a problem whose outputs were accepted: properties, finite differences. May call the kernel.
  std::function<Rejection(Caller& caller, const Problem& problem, const Outputs& got)> check{};
  bool compared = true;  ///< outputs are compared with a reference
};

/// Contents of outputs before a call.
enum class Before {
  zeros,     ///< fresh memory
  recycled,  ///< outputs of the previous call; zeros before the first
  random,    ///< uniform between -1 and 1
  poison,    ///< NaN, or all bits set
};
/// Guards around tensors.
enum class Guard { none, sentinels, page_behind };
/// Source of expected values.
enum class Reference {
  oracle,  ///< the double reference: the project's has more than float32's precision
  mirror,  ///< the reference run in float32: the project's is float32 code
};

/// Result for one kernel under one policy.
struct Judgement {
  bool covered = true;        ///< the project has a test for the operation
  Rejection rejected;         ///< the first
  std::string unavailable{};  ///< reason why nothing ran: no device
  int cases = 0;
  int refused = 0;  ///< number of these refused by the kernel
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
  /// Set for our own campaign, which judges by itself.
  std::function<Judgement(const OpDescriptor& op, const Kernel& kernel, const JudgeOptions& options)> judge{};
  int order = 0;  ///< position in the table

  /// Returns the rules for one operation; empty if the project has no test for it.
  std::vector<const Rule*> rules_for(std::string_view op) const;
};

struct PolicyRegistration {
  explicit PolicyRegistration(Policy policy);
};
/// Returns all policies, in the order of the table.
std::span<const Policy* const> policies();
/// Returns the policy of this name. Throws InputError if there is none.
const Policy& policy(std::string_view name);

/// Ends a judgement from inside a call: the kernel crashed, hung, threw, or wrote into a guard.
struct Caught {
  std::string reason;
};
/// Thrown if the kernel does not take the call.
struct Refused {};

/// Runs a kernel in its worker, with the memory and the guards of a policy. Crashes and hangs are detected under every
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

/// Makes the inputs of a sample by the policy's rule, rounded to the kernel's storage.
Problem make_sample(const OpDescriptor& op, const Kernel& kernel, const Rule& rule, const Sample& sample,
                    std::uint64_t seed);
/// Returns the outputs of an operation's double reference on values in double, in contract order.
std::vector<std::vector<double>> evaluate(const Problem& problem, const std::vector<std::vector<double>>& values);
/// Returns the unrounded outputs of the reference, in contract order.
std::vector<std::vector<double>> unrounded(const Problem& problem, Reference reference);
/// Returns these outputs rounded to their types.
Outputs expected(const Problem& problem, Reference reference);

/// Judges one kernel under one policy, until the first rejection.
Judgement judge(const Policy& policy, const OpDescriptor& op, const Kernel& kernel, const JudgeOptions& options,
                Worker& worker);

}  // namespace assay::falsify::policies
