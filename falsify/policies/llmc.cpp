// llm.c's dev/cuda programs: every kernel, at several block sizes, against plain C by validate_result, with a tolerance
// that each file chooses. Lines: dev/cuda/common.h (0f112f1b) and the file named at each rule.
#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "falsify/policies/fill.hpp"

namespace assay::falsify::policies {
namespace {

constexpr double kTf32 = 1e-1;        // matmul_forward.cu, where setup_main() turns TF32 on
constexpr float kEpsilon16 = 0.079F;  // common.h, validate_result under ENABLE_BF16

/// `limit` of a rule is the epsilon that multiplies |reference|: FLT_EPSILON, or 0.079 under ENABLE_BF16; `limit2` the
/// tolerance. Elements whose reference is not finite are skipped; NaN passes, since no comparison with it is true.
Rejection rejects(const Rule& rule, const Output& output) {
  const float epsilon = output.dtype == DType::f32 ? static_cast<float>(rule.limit) : kEpsilon16;
  const auto tolerance = static_cast<float>(output.tf32 ? std::max(rule.limit2, kTf32) : rule.limit2);
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

/// softmax_forward.cu: three outliers a row, twenty times as large.
Fill with_outliers() {
  return [](Problem& problem, Random& random) {
    uniform(-1, 1)(problem, random);
    std::vector<float>& logits = problem.values[0];
    const auto n = static_cast<std::size_t>(problem.dims[1]);
    for (std::size_t row = 0; row < logits.size(); row += n)
      for (int k = 0; k < 3; ++k) logits[row + random.below(n)] *= 20;
  };
}

/// adamw.cu: the mean of squares from make_random_float_01.
Fill moments() {
  return then(uniform(-1, 1), "v", [](Random& random, std::size_t) { return static_cast<float>(random.uniform()); });
}

const std::vector<Rule>& rules() {
  constexpr Index C = 768, V = 50257;  // channels and vocabulary; B * T = 8192 and OC are cut down for their cost
  static const std::vector<Rule> all = [] {
    std::vector<Rule> list{
        rule("linear", {{{32, C, 256, 1}}}, 1e-1),                         // matmul_forward.cu
        rule("matmul_nt", {{{32, C, 256}}}, 1e-1),                         // matmul_forward.cu without its bias
        rule("matmul", {{{32, 256, C}}}, 1e-3),                            // matmul_backward.cu, dinp
        rule("matmul_tn", {{{256, 64, C}}}, 1e-3),                         // matmul_backward.cu, dweight
        rule("softmax", {{{4, V}}}, 1e-4, with_outliers()),                // softmax_forward.cu
        rule("embedding", {{{64, 1000, C}}}, 1e-5),                        // encoder_forward.cu
        rule("embedding_backward", {{{64, 1000, C}}}, 1e-5),               // encoder_backward.cu
        rule("attention", {{{1, 128, 128, 2, 2, 64}, {0.125, 1}}}, 1e-4),  // attention_forward.cu
        rule("attention_backward", {{{1, 128, 128, 2, 2, 64}, {0.125, 1}}}, 1e-3),  // attention_backward.cu, dinp
        rule("cross_entropy", {{{4, V}, {1}}}, 1e-4),                               // classifier_fused.cu, losses
        rule("cross_entropy_backward", {{{4, V}}}, 1e-4),                           // classifier_fused.cu, dlogits
        rule("residual_add", {{{1024, C}, {1}}}, 1e-5),                             // residual_forward.cu
        rule("bias_add_backward", {{{1024, C}}}, 5e-3),                             // matmul_backward_bias.cu
        rule("adamw_step", {{{1048576}, {1e-3, 0.9, 0.999, 1e-8, 0, 10}}}, 1e-4, moments()),  // adamw.cu
        rule("global_grad_norm", {{{1048576}}}, 1e-2,
             uniform(-1e-3, 1e-3)),  // global_norm.cu, which is built with ENABLE_BF16
    };
    list.back().limit = static_cast<double>(kEpsilon16);
    return list;
  }();
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
        {"llm.c: B * T, the vocabulary of embeddings, output channels and the norm's parameters are cut down for their "
         "cost; channels and the vocabulary of logits are as they are"},
    .order = 40,
});

}  // namespace
}  // namespace assay::falsify::policies
