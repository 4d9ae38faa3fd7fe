// llm.c's dev/cuda programs: every kernel, at several block sizes, against plain C by validate_result, with a tolerance
// per file. karpathy/llm.c: dev/cuda/common.h (0f112f1b) and main() of the file named at each rule, including the files
// of its branch for Llama 3 (rmsnorm_*.cu, rope.cu).
#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "falsify/policies/fill.hpp"

namespace assay::falsify::policies::llmc_policy {
namespace {

constexpr double kTf32 = 1e-1;        // matmul_forward.cu, where setup_main() turns TF32 on
constexpr float kEpsilon16 = 0.079F;  // common.h, validate_result under ENABLE_BF16
constexpr float kAttention16 =
    1e-2F;  // attention_forward.cu, accuracy_threshold of kernels 5 and up, without ENABLE_BF16

/// `limit` of a rule is the epsilon that multiplies |reference|: FLT_EPSILON, or 0.079 under ENABLE_BF16; `limit2` is
/// the tolerance. Elements with a nonfinite reference are skipped; NaN passes, since no comparison with it is true.
Rejection rejects(const Rule& rule, const Output& output) {
  const bool half = output.dtype != DType::f32, attention = rule.op.starts_with("attention");
  const float epsilon = half && !attention ? kEpsilon16 : static_cast<float>(rule.limit);
  const auto own = static_cast<float>(output.tf32 ? std::max(rule.limit2, kTf32) : rule.limit2);
  const float tolerance = half && attention ? kAttention16 : own;
  for (std::size_t i = 0; i < output.want.size(); ++i) {
    if (!std::isfinite(output.want[i])) continue;
    const float allowed = tolerance + std::fabs(output.want[i]) * epsilon;
    if (std::fabs(output.want[i] - output.got[i]) > allowed)
      return fmt::format("element {} is {}, not {}", i, output.got[i], output.want[i]);
  }
  return std::nullopt;
}

Rule rule(std::string_view op, std::vector<Sample> samples, double tolerance, Fill fill = uniform(-1, 1)) {
  return {.op = op,
          .samples = std::move(samples),
          .fill = std::move(fill),
          .limit = static_cast<double>(FLT_EPSILON),
          .limit2 = tolerance};
}

/// softmax_forward.cu, classifier_fused.cu: three outliers a row, twenty times as large. Weights are ours: 1.
Fill with_outliers(double low) {
  return [low](Problem& problem, Random& random) {
    raw(-1, 1)(problem, random);
    std::vector<float>& logits = problem.values[0];
    for (float& x : logits) x = static_cast<float>(low + (1 - low) * random.uniform());
    if (const int weights = tensor_named(*problem.op, "weights"); weights >= 0)
      std::ranges::fill(problem.values[static_cast<std::size_t>(weights)], 1.0F);
    const auto n = static_cast<std::size_t>(problem.dims[1]);
    for (std::size_t row = 0; row < logits.size(); row += n)
      for (int k = 0; k < 3; ++k) logits[row + random.below(n)] *= 20;
    make_consistent(problem, random);
  };
}

/// adamw.cu: the mean of squares from make_random_float_01.
Fill moments() {
  return then(uniform(-1, 1), "v", [](Random& random, std::size_t) { return static_cast<float>(random.uniform()); });
}

/// Positions of one sequence from its first token on.
Fill counted() {
  return then(uniform(-1, 1), "positions", [](Random&, std::size_t at) { return static_cast<float>(at); });
}

/// global_norm.cu: the square of the norm within 1e-2 + 0.079 of it (built with ENABLE_BF16) on 70.8 million values of
/// U(-1e-3, 1e-3), whose squares sum to 23.6. Here fewer and larger values have the same sum.
Rule sum_of_squares() {
  constexpr Index kValues = 1 << 20;
  constexpr double kRange = 8.22e-3;
  Rule rule{.op = "global_grad_norm", .samples = {{{kValues}}}, .fill = uniform(-kRange, kRange)};
  rule.compared = false;
  rule.check = [](Caller&, const Problem& problem, const Outputs& got) -> Rejection {
    const double norm = unrounded(problem, Reference::oracle)[0][0], square = norm * norm;
    const double ours = static_cast<double>(got[0][0]) * static_cast<double>(got[0][0]);
    if (std::fabs(ours - square) > 1e-2 + static_cast<double>(kEpsilon16) * square)
      return fmt::format("the sum of squares is {}, not {}", ours, square);
    return std::nullopt;
  };
  return rule;
}

const std::vector<Rule>& rules() {
  // B * T = 8192 rows, C = 768 channels, OC = 3072, V = 50257; summed dims have these extents, the others are reduced.
  constexpr Index C = 768, OC = 3072, BT = 8192, V = 50257;
  static const std::vector<Rule> all{
      rule("linear", {{{32, C, 256, 1}}}, 1e-1),                         // matmul_forward.cu
      rule("matmul_nt", {{{32, C, 256}}}, 1e-1),                         // matmul_forward.cu without its bias
      rule("matmul", {{{32, OC, 256}}}, 1e-3),                           // matmul_backward.cu, dinp
      rule("matmul_tn", {{{64, BT, 64}}}, 1e-3),                         // matmul_backward.cu, dweight
      rule("softmax", {{{4, V}}}, 1e-4, with_outliers(-1)),              // softmax_forward.cu
      rule("embedding", {{{64, 1000, C}}}, 1e-5),                        // encoder_forward.cu
      rule("embedding_backward", {{{64, 1000, C}}}, 1e-5),               // encoder_backward.cu, dwte
      rule("attention", {{{1, 256, 256, 2, 2, 64}, {0.125, 1}}}, 1e-3),  // attention_forward.cu, kernels 1 to 4
      rule("attention_backward", {{{1, 256, 256, 2, 2, 64}, {0.125, 1}}}, 1e-3),  // attention_backward.cu, dinp
      rule("cross_entropy", {{{4, V}, {1}}}, 1e-4, with_outliers(0)),             // classifier_fused.cu, losses
      rule("cross_entropy_backward", {{{4, V}}}, 1e-4, with_outliers(0)),         // classifier_fused.cu, dlogits
      rule("residual_add", {{{1024, C}, {1}}}, 1e-5),  // residual_forward.cu; 1e-2 as built there, with bfloat16
      rule("bias_add_backward", {{{BT, 128}}}, 5e-3),  // matmul_backward_bias.cu
      rule("rmsnorm", {{{1024, C}, {1e-8}}}, 1e-5),    // rmsnorm_forward.cu, out and rms; it has no eps
      rule("rmsnorm_backward", {{{1024, 1024}}, {{BT, 128}}},
           1e-3),  // rmsnorm_backward.cu; 1e-1 and 5e-1 as built there
      rule("rope", {{{256, 8, 128}, {10000, 1, 0}}}, 1e-5, counted()),  // rope.cu, without its scaled frequencies
      rule("rope_backward", {{{256, 8, 128}, {10000, 1, 0}}}, 1e-5, counted()),                // rope.cu
      rule("adamw_step", {{{1048576, 0}, {1e-3, 0.9, 0.999, 1e-8, 0, 10}}}, 1e-4, moments()),  // adamw.cu
      sum_of_squares(),
  };
  return all;
}

const PolicyRegistration registration({
    .name = "llm.c",
    .source = "karpathy/llm.c, dev/cuda/common.h (0f112f1b) and the tolerances of dev/cuda/*.cu",
    .rules = rules,
    .rejects = rejects,
    .before = Before::recycled,  // outputs are allocated once and reused for every block size
    .reference = Reference::mirror,
    .runs = 2,  // block sizes
    .notes =
        {"llm.c: what sums run over has the length that it has there; rows, heads, sequences and the vocabulary of "
         "embeddings are cut down for their cost; float32 kernels are held to its tolerances for float32"},
    .order = 40,
});

}  // namespace
}  // namespace assay::falsify::policies::llmc_policy
