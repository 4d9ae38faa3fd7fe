#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "falsify/engine/obligation.hpp"
#include "falsify/engine/oracle.hpp"
#include "falsify/engine/trial.hpp"
#include "falsify/policies/policy.hpp"

namespace assay::falsify::policies {
namespace {

/// The operation for a harness that checks sentinels only: inputs may change, and outputs have initial values.
class Unwatched {
 public:
  explicit Unwatched(const OpDescriptor& op) : op_(op), tensors_(op.tensors.begin(), op.tensors.end()) {
    for (TensorInfo& tensor : tensors_) tensor.role = Role::inout;
    op_.tensors = tensors_;
  }
  const OpDescriptor& op() const { return op_; }

 private:
  OpDescriptor op_;
  std::vector<TensorInfo> tensors_;
};

template <class T, class Value>
std::vector<std::vector<double>> run_reference(const Problem& problem, const std::vector<std::vector<Value>>& inputs,
                                               ReferenceFn<T> reference) {
  std::vector<std::vector<T>> values(inputs.size());
  std::vector<View<T>> views;
  for (std::size_t t = 0; t < values.size(); ++t) {
    const Shape shape = problem.shape(static_cast<int>(t));
    values[t].assign(inputs[t].begin(), inputs[t].end());
    values[t].resize(static_cast<std::size_t>(shape.size()));
    views.emplace_back(values[t].data(), shape);
  }
  reference(views, problem.params);
  std::vector<std::vector<double>> outputs;
  for (int t : outputs_of(*problem.op)) {
    const std::vector<T>& output = values[static_cast<std::size_t>(t)];
    outputs.emplace_back(output.begin(), output.end());
  }
  return outputs;
}

/// Handles a reply other than `done`, the same for every policy.
[[noreturn]] void refuse(const Reply& reply) {
  using Status = Reply::Status;
  switch (reply.status) {
    case Status::refused: throw Refused{};
    case Status::unavailable: throw Unavailable("the kernel's device", reply.detail);
    case Status::invalid: throw std::logic_error("a sample is no call of its operation: " + reply.detail);
    case Status::crashed: throw Caught{"crash: " + reply.detail};
    case Status::hung: throw Caught{"hang: " + reply.detail};
    default: throw Caught{"error: " + reply.detail};
  }
}

/// Compares the outputs of a call with the reference, then runs the rule's own checks.
Rejection rejection(const Policy& policy, const Rule& rule, Caller& caller, const Problem& problem, const Outputs& got,
                    const Outputs& want) {
  const std::vector<int> outputs = outputs_of(caller.op());
  for (std::size_t o = 0; rule.compared && o < outputs.size(); ++o) {
    const Output output{.tensor = caller.op().tensors[static_cast<std::size_t>(outputs[o])].name,
                        .dtype = problem.dtype(outputs[o]),
                        .got = got[o],
                        .want = want[o],
                        .tf32 = caller.kernel().arithmetic.inputs == Format::tf32};
    if (Rejection why = policy.rejects(rule, output)) return fmt::format("{}: {}", output.tensor, *why);
  }
  return rule.check ? rule.check(caller, problem, got) : std::nullopt;
}

}  // namespace

Outputs Caller::run(const Problem& problem, Layout layout) {
  const Unwatched unwatched(op_);
  Problem staged = problem;
  staged.op = &unwatched.op();
  const std::vector<int> outputs = outputs_of(op_);
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (op_.tensors[static_cast<std::size_t>(outputs[o])].role == Role::out)
      staged.values[static_cast<std::size_t>(outputs[o])] = before(problem, outputs[o], o);
  Case c;
  c.layout = layout;
  if (policy_.guard == Guard::page_behind && traits(kernel_.backend).host) c.placement = Placement::page_end;
  const Stage stage(worker_.arena(), staged, c, Poison::finite);
  const Reply reply = worker_.run(op_, kernel_, problem.dims, problem.params, stage.tensors(), contract::Level::pre);
  if (reply.status != Reply::Status::done) refuse(reply);
  Outputs got;
  for (int t : outputs) got.push_back(stage.read(t));
  last_ = got;
  if (policy_.guard != Guard::none)
    if (const auto damage = stage.damage()) throw Caught{*damage};
  return got;
}

std::vector<float> Caller::before(const Problem& problem, int tensor, std::size_t output) const {
  std::vector<float> values(static_cast<std::size_t>(problem.shape(tensor).size()));
  if (policy_.before == Before::poison)
    std::ranges::fill(values, is_floating(problem.dtype(tensor)) ? std::numeric_limits<float>::quiet_NaN() : 255.0F);
  Random random(derive(static_cast<std::uint64_t>(tensor), "before"));
  if (policy_.before == Before::random && is_floating(problem.dtype(tensor)))
    for (float& x : values) x = static_cast<float>(2 * random.uniform() - 1);
  if (policy_.before == Before::recycled && !last_.empty() && !last_[output].empty())
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = last_[output][i % last_[output].size()];
  return values;
}

Problem make_sample(const OpDescriptor& op, const Kernel& kernel, const Rule& rule, const Sample& sample,
                    std::uint64_t seed) {
  Case c;
  c.dims = sample.dims;
  c.params = sample.params;
  for (std::size_t p = c.params.size(); p < op.params.size(); ++p) c.params.push_back(op.params[p].typical);
  c.strategy = Strategy::gaussian;
  c.seed = seed;
  if (c.dims.size() != op.dims.size() || !valid(op, c.dims))
    throw std::logic_error(fmt::format("a sample of {} has dims that its contract does not admit", op.name));
  Problem problem = make_problem(op, c, kernel.arithmetic, kernel.storage);
  Random random(derive(seed, "policy"));
  if (rule.fill) rule.fill(problem, random);
  for (int t : inputs_of(op))
    if (op.tensors[static_cast<std::size_t>(t)].storage)
      for (float& x : problem.values[static_cast<std::size_t>(t)]) x = stored(problem.storage, x);
  return problem;
}

std::vector<std::vector<double>> unrounded(const Problem& problem, Reference reference) {
  const Oracle& oracle = falsify::oracle(problem.op->name);
  return reference == Reference::oracle ? run_reference<double>(problem, problem.values, oracle.exact)
                                        : run_reference<float>(problem, problem.values, oracle.mirror);
}

std::vector<std::vector<double>> evaluate(const Problem& problem, const std::vector<std::vector<double>>& values) {
  return run_reference<double>(problem, values, falsify::oracle(problem.op->name).exact);
}

Outputs expected(const Problem& problem, Reference reference) {
  const std::vector<std::vector<double>> values = unrounded(problem, reference);
  const std::vector<int> outputs = outputs_of(*problem.op);
  Outputs rounded(values.size());
  for (std::size_t o = 0; o < values.size(); ++o)
    for (const double x : values[o]) rounded[o].push_back(stored(problem.dtype(outputs[o]), static_cast<float>(x)));
  return rounded;
}

Judgement judge(const Policy& policy, const OpDescriptor& op, const Kernel& kernel, const JudgeOptions& options,
                Worker& worker) {
  if (policy.judge) return policy.judge(op, kernel, options);
  Judgement result;
  const std::vector<const Rule*> rules = policy.rules_for(op.name);
  result.covered = !rules.empty() && (kernel.storage == DType::f32 || !policy.float32_only);
  if (!result.covered) return result;
  const auto begin = std::chrono::steady_clock::now();
  worker.restart();
  Caller caller(policy, op, kernel, worker);
  std::uint64_t number = 0;
  const auto one_sample = [&](const Rule& rule, const Sample& sample) {
    const Problem problem = make_sample(op, kernel, rule, sample, derive(options.seed + number++, policy.name));
    const Outputs want = rule.compared ? expected(problem, policy.reference) : Outputs{};
    for (int run = 0; run < policy.runs && !result.rejected; ++run) {
      ++result.cases;
      try {
        result.rejected = rejection(policy, rule, caller, problem, caller.run(problem, sample.layout), want);
      } catch (const Refused&) {
        ++result.refused;
      }
    }
  };
  try {
    for (const Rule* rule : rules)
      for (const Sample& sample : rule->samples)
        if (!result.rejected) one_sample(*rule, sample);
  } catch (const Caught& caught) {
    result.rejected = caught.reason;
  } catch (const Unavailable& e) {
    result.unavailable = e.why;
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace assay::falsify::policies
