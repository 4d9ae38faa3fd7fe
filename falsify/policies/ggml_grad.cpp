// ggml's test-backend-ops, mode "grad": the gradient of sum(out) against finite differences of the same back end in
// float32, accepted by their mean absolute asymmetry. tests/test-backend-ops.cpp of ggml-org/llama.cpp at 0054f928,
// test_case::eval_grad, which omits cases of more than grad_nmax = 10,000 gradients.
#include <fmt/format.h>

#include <cmath>

#include "falsify/engine/trial.hpp"
#include "falsify/policies/backward.hpp"
#include "falsify/policies/fill.hpp"
#include "falsify/policies/measures.hpp"

namespace assay::falsify::policies::ggml_grad_policy {
namespace {

/// ggml's finite differences of one operation, and the tensor names of our pair of operations.
struct Difference {
  std::string_view forward;
  std::string_view input;     ///< of the forward operation
  std::string_view gradient;  ///< output of the backward operation
  std::string_view loss;      ///< output of the forward operation whose elements are summed
  std::string_view upstream;  ///< input of the backward operation that is 1
  float eps;                  ///< grad_eps
  bool four_points;           ///< grad_precise
  double limit;               ///< max_maa_err
};

constexpr double kRange = 1;  // init_tensor_uniform, for inputs that the backward operation lacks

/// Sums the outputs of the float32 reference, which serves as the (correct) forward kernel; the fault is in the
/// backward kernel.
float loss_of(const Problem& forward, const Difference& d) {
  const Outputs outputs = mirror_of(d.forward, forward);
  const std::vector<int> which = outputs_of(*forward.op);
  double sum = 0;  // ggml_sum adds in double
  for (std::size_t o = 0; o < which.size(); ++o)
    if (forward.op->tensors[static_cast<std::size_t>(which[o])].name == d.loss)
      for (float x : outputs[o]) sum += static_cast<double>(x);
  return static_cast<float>(sum);
}

std::vector<float> differences(Problem forward, const Difference& d) {
  std::vector<float>& x = values_of(forward, d.input);
  std::vector<float> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float x0 = x[i];
    const auto at = [&](float offset) {
      x[i] = x0 + offset * d.eps;
      const float f = loss_of(forward, d);
      x[i] = x0;
      return f;
    };
    const float up = at(1), down = at(-1);
    if (d.four_points)
      gradient[i] = static_cast<float>((8.0 * static_cast<double>(at(0.5F)) + static_cast<double>(down) -
                                        (8.0 * static_cast<double>(at(-0.5F)) + static_cast<double>(up))) /
                                       (6.0 * static_cast<double>(d.eps)));
    else gradient[i] = (up - down) / (2.0F * d.eps);
  }
  return gradient;
}

/// Takes saved values from the forward reference; the upstream gradient of a sum is 1.
Fill through_forward(Fill fill, Difference d) {
  return [fill = std::move(fill), d](Problem& problem, Random& random) {
    fill(problem, random);
    save_forward(problem, d.forward, kRange);
    for (int t : inputs_of(*problem.op)) {
      const std::string_view name = problem.op->tensors[static_cast<std::size_t>(t)].name;
      if (name.starts_with("d"))
        std::ranges::fill(problem.values[static_cast<std::size_t>(t)], name == d.upstream ? 1.0F : 0.0F);
    }
  };
}

Rule differenced(std::string_view op, std::vector<Sample> samples, const Fill& fill, const Difference& d) {
  Rule rule{.op = op, .samples = std::move(samples), .fill = through_forward(fill, d), .limit = d.limit};
  rule.compared = false;
  rule.check = [d](Caller& caller, const Problem& problem, const Outputs& got) -> Rejection {
    const std::vector<int> which = outputs_of(caller.op());
    for (std::size_t o = 0; o < which.size(); ++o) {
      if (caller.op().tensors[static_cast<std::size_t>(which[o])].name != d.gradient) continue;
      for (float x : got[o])
        if (!std::isfinite(x)) return fmt::format("{} is not finite", d.gradient);
      const double error = mean_absolute_asymmetry(differences(forward_of(problem, d.forward, kRange), d), got[o]);
      if (error > d.limit)
        return fmt::format("{}: asymmetry {:.3g} > {:.3g}", d.gradient, error, d.limit);  // NaN passes
    }
    return std::nullopt;
  };
  return rule;
}

const std::vector<Rule>& rules() {
  static const auto ones = [](Fill fill, std::string_view tensor) {
    return then(std::move(fill), tensor, [](Random&, std::size_t) { return 1.0F; });
  };
  const std::vector<Sample> unary{{{8, 128}}, {{1001, 5}}}, norms{{{60, 64}}}, rows{{{16, 16}}, {{15, 15}}},
      gathered{{{2, 8, 1}}, {{4, 5, 256}}, {{2, 5, 256}}};
  static const std::vector<Rule> all{
      // test_unary: +-150, eps 15, two points. Its views have more than grad_nmax elements.
      differenced("silu_backward", unary, uniform(-150, 150), {"silu", "x", "dx", "y", "dy", 15.0F, false, 1e-4}),
      // test_glu_split: +-150, the default eps of 0.1; {5, 7, 11, 13} has more than grad_nmax.
      differenced("silu_mul_backward", {{{8, 128}}}, uniform(-150, 150),
                  {"silu_mul", "gate", "dgate", "y", "dy", 0.1F, false, 1e-4}),
      differenced("silu_mul_backward", {{{8, 128}}}, uniform(-150, 150),
                  {"silu_mul", "up", "dup", "y", "dy", 0.1F, false, 1e-4}),
      // test_soft_max: four points, eps 0.1.
      differenced("softmax_backward", rows, raw(-1, 1), {"softmax", "x", "dx", "y", "dy", 0.1F, true, 1e-4}),
      // test_rms_norm: +-10, eps 1, four points.
      differenced("rmsnorm_backward", norms, ones(uniform(-10, 10), "weight"),
                  {"rmsnorm", "x", "dx", "y", "dy", 1.0F, true, 1e-4}),
      // test_repeat, whose backward pass is REPEAT_BACK: {10, 5, 4, 1 or 3}, by 2 along one dimension at a time.
      differenced("bias_add_backward", {{{1, 200}}, {{2, 200}}, {{2, 600}}, {{2, 50}}, {{2, 10}}}, uniform(-1, 1),
                  {"bias_add", "bias", "dbias", "y", "dy", 0.1F, false, 1e-4}),
      // test_rope: max_maa_err 1e-3, four points; cases of more than 2000 elements are omitted for their cost.
      differenced("rope_backward", {{{2, 1, 64}, {10000, 0, 0}}, {{2, 8, 64}, {10000, 0, 0}}},
                  then(uniform(-1, 1), "positions",
                       [](Random& random, std::size_t) { return static_cast<float>(random.below(512)); }),
                  {"rope", "x", "dx", "y", "dy", 0.1F, true, 1e-3}),
      differenced("embedding_backward", gathered, uniform(-1, 1),
                  {"embedding", "table", "dtable", "y", "dy", 0.1F, false, 1e-4}),
      // test_cross_entropy_loss: +-100, eps 1, four points; its loss is the mean.
      differenced("cross_entropy_backward", {{{60, 10}}}, ones(uniform(-100, 100), "weights"),
                  {"cross_entropy", "logits", "dlogits", "total", "dtotal", 1.0F, true, 1e-4}),
  };
  return all;
}

const PolicyRegistration registration({
    .name = "ggml grad",
    .source = "ggml-org/llama.cpp 0054f928, tests/test-backend-ops.cpp, mode grad",
    .rules = rules,
    .before = Before::random,
    .reference = Reference::mirror,
    .notes =
        {"ggml grad: an optional mode, a row of its own, for backward kernels: where its measure is NaN it accepts "
         "any gradient; differences are those of the float32 reference; its gradients of products are left out, "
         "since they fail on unmodified code"},
    .order = 11,
});

}  // namespace
}  // namespace assay::falsify::policies::ggml_grad_policy
