// PyTorch's torch.autograd.gradcheck with its default arguments (torch/autograd/gradcheck.py: eps 1e-6, atol 1e-5, rtol
// 1e-3, nondet_tol 0, fast_mode off): the whole Jacobian, a column from each one-hot upstream gradient, against central
// differences in double, and every column twice, bit by bit.
//
// gradcheck differences its function in double; every float32 kernel fails it. Here the double reference is
// differenced, and the kernel computes the columns.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "falsify/engine/trial.hpp"
#include "falsify/policies/backward.hpp"
#include "falsify/policies/fill.hpp"

namespace assay::falsify::policies::pytorch_gradcheck_policy {
namespace {

constexpr double kEps = 1e-6, kAbsolute = 1e-5, kRelative = 1e-3;

constexpr double kRange = 9;  // make_tensor, for inputs that the backward operation lacks

/// A pair of tensors of the two operations: an input and its gradient, or an output and its upstream gradient.
struct Pair {
  std::size_t forward, backward;
};

/// Returns the pairs of a forward tensor x and a backward tensor dx.
std::vector<Pair> pairs(const OpDescriptor& forward, const std::vector<int>& of_forward, const OpDescriptor& backward,
                        const std::vector<int>& of_backward) {
  std::vector<Pair> found;
  for (const int f : of_forward)
    for (const int b : of_backward)
      if (backward.tensors[static_cast<std::size_t>(b)].name ==
          fmt::format("d{}", forward.tensors[static_cast<std::size_t>(f)].name))
        found.push_back({static_cast<std::size_t>(f), static_cast<std::size_t>(b)});
  return found;
}

/// Returns the index of an output tensor among the operation's outputs.
std::size_t place(const OpDescriptor& op, std::size_t tensor) {
  const std::vector<int> outputs = outputs_of(op);
  return static_cast<std::size_t>(std::ranges::find(outputs, static_cast<int>(tensor)) - outputs.begin());
}

/// d out[j] / d in[i], for all outputs with an upstream gradient: [i][output][j].
using Jacobian = std::vector<std::vector<std::vector<double>>>;

Jacobian numerical(const Problem& forward, std::size_t input) {
  std::vector<std::vector<double>> values;
  for (const std::vector<float>& v : forward.values) values.emplace_back(v.begin(), v.end());
  Jacobian jacobian;
  for (double& x : values[input]) {
    const double at = x;
    x = at + kEps;
    std::vector<std::vector<double>> up = evaluate(forward, values);
    x = at - kEps;
    const std::vector<std::vector<double>> down = evaluate(forward, values);
    x = at;
    for (std::size_t o = 0; o < up.size(); ++o)
      for (std::size_t j = 0; j < up[o].size(); ++j) up[o][j] = (up[o][j] - down[o][j]) / (2 * kEps);
    jacobian.push_back(std::move(up));
  }
  return jacobian;
}

/// Returns the kernel's column for one upstream element; throws Caught if two calls differ.
Outputs column(Caller& caller, Problem& problem, const Pair& upstream, std::size_t element) {
  std::vector<float>& dy = problem.values[upstream.backward];
  dy[element] = 1;
  const Outputs first = caller.run(problem), second = caller.run(problem);
  dy[element] = 0;
  for (std::size_t o = 0; o < first.size(); ++o)
    for (std::size_t i = 0; i < first[o].size(); ++i)
      if (first[o][i] != second[o][i] && !(std::isnan(first[o][i]) && std::isnan(second[o][i])))
        throw Caught{"two calls differ"};
  return first;
}

Rejection compare(Caller& caller, const Problem& at, const OpDescriptor& forward_op) {
  Problem problem = at;
  const Problem forward = forward_of(problem, forward_op.name, kRange);
  const OpDescriptor& op = caller.op();
  const std::vector<Pair> gradients = pairs(forward_op, inputs_of(forward_op), op, outputs_of(op));
  std::vector<Jacobian> wanted;
  for (const Pair& gradient : gradients) wanted.push_back(numerical(forward, gradient.forward));
  for (const Pair& upstream : pairs(forward_op, outputs_of(forward_op), op, inputs_of(op)))
    for (std::size_t j = 0; j < problem.values[upstream.backward].size(); ++j) {
      const Outputs got = column(caller, problem, upstream, j);
      for (std::size_t g = 0; g < gradients.size(); ++g) {
        const std::vector<float>& values = got[place(op, gradients[g].backward)];
        for (std::size_t i = 0; i < values.size(); ++i) {
          const double want = wanted[g][i][place(forward_op, upstream.forward)][j], a = static_cast<double>(values[i]);
          if (!(std::fabs(a - want) <= kAbsolute + kRelative * std::fabs(want)))
            return fmt::format("{}[{}] of element {} is {}, not {}", op.tensors[gradients[g].backward].name, i, j, a,
                               want);
        }
      }
    }
  return std::nullopt;
}

/// Makes a rule of one backward operation: a one-hot upstream gradient, saved values from the reference.
Rule checked(std::string_view op, std::string_view forward, std::vector<Sample> samples, Fill fill = uniform(-9, 9)) {
  Rule rule{.op = op, .samples = std::move(samples), .fill = {}};
  rule.fill = [fill = std::move(fill), forward](Problem& problem, Random& random) {
    fill(problem, random);
    save_forward(problem, forward, kRange);
    for (const Pair& upstream :
         pairs(operation(forward), outputs_of(operation(forward)), *problem.op, inputs_of(*problem.op)))
      std::ranges::fill(problem.values[upstream.backward], 0.0F);
  };
  rule.compared = false;
  rule.check = [forward](Caller& caller, const Problem& problem, const Outputs&) {
    return compare(caller, problem, operation(forward));
  };
  return rule;
}

/// Uses the shapes of pytorch.cpp with Jacobians of at most a few thousand elements.
const std::vector<Rule>& rules() {
  constexpr Index S = 5, M = 10, L = 20;
  static const Fill labels = then(
      then(uniform(-9, 9), "targets", [](Random& random, std::size_t) { return static_cast<float>(random.uniform()); }),
      "pos_weight", [](Random& random, std::size_t) { return static_cast<float>(9 * random.uniform()); });
  static const std::vector<Rule> all{
      checked("softmax_backward", "softmax", {{{1, S}}, {{S, S}}, {{S * M, S}}}),
      checked("silu_backward", "silu", {{{1, L}}, {{1, 1}}, {{M, S}}}),
      checked("bias_add_backward", "bias_add", {{{S, M}}, {{M, S}}}),
      checked("embedding_backward", "embedding", {{{1, M, S}}, {{S, M, S}}, {{S * S, M, S}}}),
      checked("rmsnorm_backward", "rmsnorm", {{{1, 6}}, {{2, 6}}, {{1, 1}}, {{1, 2}}}, uniform(-9, 1000)),
      checked("rmsnorm_backward", "rmsnorm", {{{1, 6}}, {{2, 6}}, {{1, 2}}}),
      checked("attention_backward", "attention",
              {{{4, 3, 6, 1, 1, 8}, {0.35355339, 0}},
               {{4, 3, 6, 1, 1, 8}, {0.35355339, 1}},
               {{4, 3, 6, 2, 4, 8}, {0.35355339, 0}}}),
      checked("cross_entropy_backward", "cross_entropy", {{{2, 3}}, {{4, 3}}, {{12, 3}}}),
      checked("bce_with_logits_backward", "bce_with_logits", {{{1, 1}}, {{1, S}}, {{S, S}}}, labels),
  };
  return all;
}

const PolicyRegistration registration({
    .name = "gradcheck",
    .source = "pytorch/pytorch, torch/autograd/gradcheck.py: defaults, on sample inputs",
    .rules = rules,
    .before = Before::recycled,
    .reference = Reference::oracle,
    .float32_only = true,
    .notes = {"gradcheck: a row of its own, for backward kernels: it needs float64, so the double reference is "
              "differenced and the float32 kernel gives the gradients"},
    .order = 22,
});

}  // namespace
}  // namespace assay::falsify::policies::pytorch_gradcheck_policy
