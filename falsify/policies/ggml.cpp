// ggml's test-backend-ops, mode "test": the outputs of one operation against those of the CPU back end by their
// normalized mean squared error, with sentinels around every tensor. All line references: tests/test-backend-ops.cpp of
// ggml-org/llama.cpp at 0054f928.
#include <fmt/format.h>

#include <cfloat>
#include <cmath>

#include "falsify/policies/fill.hpp"
#include "falsify/policies/measures.hpp"

namespace assay::falsify::policies {
namespace {

constexpr double kDefault = 1e-7;  // test_case::max_nmse_err
constexpr double kProduct = 5e-4;  // test_mul_mat, test_out_prod, test_flash_attn_ext: max_nmse_err
constexpr double kSoftmax = 1e-6;  // test_soft_max::max_nmse_err
constexpr double kCopy = 0;        // test_cpy::max_nmse_err, source and destination of one type
constexpr double kDecode = 1e-6;   // test_cpy::max_nmse_err otherwise

constexpr Layout kView = Layout::padded;  // cases with v = 1, k_v or a permutation: views into larger tensors

bool infinite(float x) { return std::isinf(x) || std::fabs(x) == FLT_MAX; }  // isinf_or_max

Rejection rejects(const Rule& rule, const Output& output) {
  for (std::size_t i = 0; i < output.got.size(); ++i) {
    const float got = output.got[i], want = output.want[i];
    if (std::isnan(got) || std::isnan(want)) return fmt::format("NaN at {}", i);
    if (infinite(got) != infinite(want) || (infinite(got) && std::signbit(got) != std::signbit(want)))
      return fmt::format("Inf at {}", i);
  }
  // What a cache receives is a SET_ROWS of float32: the default.
  const double limit = output.tensor.ends_with("_cache") ? kDefault : rule.limit;
  const double error = nmse(output.want, output.got);
  if (error > limit) return fmt::format("NMSE {:.3g} > {:.3g}", error, limit);  // NaN, of zeros against zeros, passes
  return std::nullopt;
}

/// Q4_K blocks of uniform values: init_tensor_uniform quantizes what it draws.
Fill quantized() {
  return [](Problem& problem, Random& random) {
    uniform(-1, 1)(problem, random);
    Problem weights{&operation("q4_k_quantize"), {problem.dims[0], problem.dims[1]}, {}, {{}, {}}, DType::f32};
    for (Index i = 0; i < weights.dims[0] * weights.dims[1]; ++i)
      weights.values[0].push_back(static_cast<float>(2 * random.uniform() - 1));
    problem.values[0] = mirror_of("q4_k_quantize", weights)[0];
  };
}

/// tensor_to_float decodes blocks before they are compared.
Rejection decoded(Caller& caller, const Problem& problem, const Outputs& got) {
  Problem call{&operation("q4_k_dequantize"), problem.dims, {}, {got[0], {}}, DType::f32};
  const std::vector<float> ours = mirror_of("q4_k_dequantize", call)[0];
  call.values[0] = mirror_of(caller.op().name, problem)[0];
  const std::vector<float> theirs = mirror_of("q4_k_dequantize", call)[0];
  return rejects({.op = caller.op().name, .samples = {}, .fill = {}, .limit = kDecode},
                 {.tensor = "blocks", .dtype = DType::f32, .got = ours, .want = theirs});
}

/// (m, k, n) of our product, whose rows are ggml's columns of b. From the MUL_MAT cases of make_test_cases_eval in
/// float32.
std::vector<Sample> products() {
  std::vector<Sample> samples;
  for (Index n = 1; n < 10; ++n) samples.push_back({{n, 256, 16}});
  for (Index k : {256, 4}) samples.insert(samples.end(), {{{1, k, 16}}, {{4, k, 16}}, {{16, k, 16}}});
  samples.insert(samples.end(), {{{8, 256, 16}, {}, kView},
                                 {{16, 256, 16}, {}, kView},
                                 {{1, 1024, 16}},
                                 {{8, 1024, 16}},
                                 {{16, 1024, 16}},
                                 {{32, 32, 16}, {}, kView},
                                 {{77, 77, 64}},
                                 {{64, 256, 1}},
                                 {{1, 128, 1056}, {}, kView},
                                 {{1, 129, 1057}, {}, kView},
                                 {{1, 1056, 128}, {}, kView},
                                 {{1, 1057, 129}, {}, kView}});
  return samples;
}

std::vector<Sample> linear_layers() {
  std::vector<Sample> samples;
  for (const Sample& s : products()) samples.push_back({{s.dims[0], s.dims[1], s.dims[2], 0}, {}, s.layout});
  samples.insert(samples.end(),
                 {{{1, 256, 32, 1}}, {{1, 256, 32, 1}, {}, kView}});  // test_mul_mat_vec_fusion, with_bias
  return samples;
}

std::vector<Sample> vectors() {
  std::vector<Sample> samples;
  for (const Sample& s : products())
    if (s.dims[0] == 1) samples.push_back({{s.dims[2], s.dims[1]}, {}, s.layout});
  return samples;
}

const std::vector<Rule>& rules() {
  // test_soft_max, test_soft_max_back: ne0, ne1 of {16, 1024} and one less; those of 10^6 elements and more left out.
  static const std::vector<Sample> rows{{{16, 16}}, {{15, 15}}, {{16, 1024}}, {{15, 1023}}, {{1024, 16}}, {{1023, 15}}};
  // test_unary, test_glu, test_glu_split: {128, 2, 2, 2} and {5, 7, 11, 13}, plain and as views.
  static const std::vector<Sample> unary{{{8, 128}}, {{1001, 5}}, {{8, 128}, {}, kView}, {{1001, 5}, {}, kView}};
  // test_rms_norm: {64, 5, 4, 3}, {1025, 5, 4, 3}; eps above 1e-2 is none of our contract's; test_rms_norm_mul_add: one
  // row.
  static const std::vector<Sample> norms{{{60, 64}, {1e-6}},          {{60, 64}, {1e-4}},   {{60, 64}, {1e-2}},
                                         {{60, 1025}, {1e-6}},        {{60, 1025}, {1e-2}}, {{60, 64}, {1e-6}, kView},
                                         {{60, 1025}, {1e-4}, kView}, {{1, 1}, {1e-6}},     {{1, 511}, {1e-6}},
                                         {{1, 1025}, {1e-6}},         {{1, 8192}, {1e-6}},  {{1, 16896}, {1e-6}}};
  // test_rope: positions below n_ctx = 512, ours consecutive; modes NORMAL and NEOX.
  static const std::vector<Sample> ropes{{{2, 32, 128}, {10000, 1, 0, 17}},  {{2, 32, 128}, {10000, 1, 0, 510}, kView},
                                         {{2, 64, 128}, {10000, 1, 0, 300}}, {{2, 1, 64}, {10000, 0, 0, 5}},
                                         {{2, 71, 64}, {10000, 0, 0, 255}},  {{2, 8, 64}, {10000, 0, 0, 400}, kView},
                                         {{4, 32, 80}, {10000, 1, 0, 88}},   {{2, 128, 64}, {10000, 0, 0, 7}}};
  // test_bin_bcast: src0 = ne * nr.
  static const std::vector<Sample> sums{{{8, 1}},    {{5, 10}},    {{20, 10}},    {{60, 10}},           {{120, 10}},
                                        {{1, 1280}}, {{16, 1280}}, {{256, 1280}}, {{60, 10}, {}, kView}};
  static const std::vector<Rule> all{
      {"matmul", products(), uniform(-1, 1), kProduct},
      {"matmul_nt", products(), uniform(-1, 1), kProduct},
      // test_out_prod: 256, n and k of {1, 16}.
      {"matmul_tn", {{{256, 1, 1}}, {{256, 1, 16}}, {{256, 16, 1}}, {{256, 16, 16}}}, uniform(-1, 1), kProduct},
      {"gemv", vectors(), uniform(-1, 1), kProduct},
      {"linear", linear_layers(), uniform(-1, 1), kProduct},
      {"q4_k_gemv", {{{16, 256}}, {{1, 256}}}, quantized(), kProduct},
      {"q4_k_dequantize", {{{64, 256}}, {{24, 256}, {}, kView}}, quantized(), kDecode},
      {.op = "q4_k_quantize",
       .samples = {{{64, 256}}, {{24, 256}, {}, kView}},
       .fill = uniform(-150, 150),
       .limit = kDecode,
       .check = decoded,
       .compared = false},
      {"softmax", rows, uniform(-1, 1), kSoftmax},
      {"softmax_backward", rows, raw(-1, 1), kDefault},
      {"silu", unary, uniform(-150, 150), kDefault},
      {"silu_backward", {{{60, 64}}}, uniform(-1, 1), kDefault},  // test_silu_back
      {"silu_mul", unary, uniform(-150, 150), kDefault},
      {"rmsnorm", norms, uniform(-10, 10), kDefault},
      {"rmsnorm_backward", {{{60, 64}}, {{60, 1025}}}, uniform(-10, 10), kDefault},
      {"rope", ropes, uniform(-1, 1), kDefault},
      {"rope_backward", ropes, uniform(-1, 1), kDefault},
      // test_get_rows and _back: (n, m, r) = (1, 8, 2) and (256, 5, 4).
      {"embedding", {{{2, 8, 1}}, {{4, 5, 256}}, {{4, 5, 256}, {}, kView}}, uniform(-1, 1), kDefault},
      {"embedding_backward", {{{2, 8, 1}}, {{4, 5, 256}}, {{4, 5, 256}, {}, kView}}, uniform(-1, 1), kDefault},
      {"residual_add", sums, uniform(-1, 1), kDefault},
      {"bias_add", {{{16, 1280}}, {{256, 1280}}, {{32, 10}}, {{256, 5120}}}, uniform(-1, 1), kDefault},
      {"bias_add_backward", {{{2, 384}}, {{2, 8}}, {{4, 48}}}, uniform(-1, 1), kDefault},  // test_repeat_back
      {"scale", {{{1000, 10}, {2}}, {{1000, 100}, {2}}}, uniform(-1, 1), kDefault},
      {"accumulate",
       {{{16, 256}, {1}}, {{96, 256}, {1}}, {{96, 128}, {1}, kView}},
       uniform(-1, 1),
       kDefault},  // test_acc
      // test_cont (transposed) and test_cpy with transposition.
      {"transpose",
       {{{1, 2}}, {{15, 2}}, {{3, 2}}, {{4, 1}}, {{8, 1}}, {{10, 10}}, {{4, 256}}, {{256, 4}}, {{2, 2}}},
       uniform(-150, 150),
       kCopy},
      {"tensor_layout",
       {{{4, 256}}, {{6, 128}, {}, kView}, {{24, 256}, {}, Layout::mixed}, {{105, 32}}},
       uniform(-150, 150),
       kCopy},
      // test_cross_entropy_loss: dense labels there, one target here.
      {"cross_entropy",
       {{{60, 10}, {1}}, {{1, 30000}, {1}}},
       then(uniform(-100, 100), "weights", [](Random&, std::size_t) { return 1.0F; }),
       kDefault},
      {"cross_entropy_backward", {{{60, 10}}, {{1, 30000}}}, uniform(-1, 1), kDefault},
      // test_opt_step_adamw: tensors and parameters uniform in (0, 1); those that our contract bounds, at its bound.
      {"adamw_step",
       {{{600}, {0.5, 0.7, 0.7, 1e-3, 0.5, 2}}, {{600}, {0.9, 0.9, 0.6, 1e-3, 0.1, 1}}},
       uniform(0, 1),
       kDefault},
      // test_flash_attn_ext: head sizes 40 to 128, 4 heads of keys, groups of 1 and 4, 113 and 512 keys, 1 to 75
      // queries. A causal case stands for its masks.
      {"attention",
       {{{1, 1, 113, 4, 4, 64}, {0.125, 0}},
        {{1, 3, 113, 4, 4, 40}, {0.158, 0}},
        {{1, 32, 113, 4, 4, 72}, {0.118, 0}},
        {{1, 75, 113, 4, 4, 64}, {0.125, 1}},
        {{1, 3, 512, 4, 16, 64}, {0.125, 0}},
        {{3, 3, 113, 4, 4, 64}, {0.125, 0}, kView},
        {{1, 1, 512, 4, 4, 128}, {0.088, 0}}},
       uniform(-1, 1),
       kProduct},
      {"attention_decode",
       {{{1, 113, 4, 4, 64}, {0.125}},
        {{1, 512, 4, 16, 64}, {0.125}},
        {{3, 113, 4, 4, 72}, {0.118}},
        {{1, 512, 4, 4, 128}, {0.088}}},
       uniform(-1, 1),
       kProduct},
  };
  return all;
}

const PolicyRegistration registration({
    .name = "ggml",
    .source = "ggml-org/llama.cpp 0054f928, tests/test-backend-ops.cpp, mode test",
    .rules = rules,
    .rejects = rejects,
    .before = Before::random,  // test_case::initialize_tensors fills the output like every other tensor
    .guard = Guard::sentinels,
    .reference = Reference::mirror,
    .notes =
        {"ggml: operations that it has under another name or as two nodes count as covered (OUT_PROD, REPEAT_BACK, "
         "MUL_MAT + ADD); cases of 10^6 elements and more are left out; its seeds are random, ours are fixed"},
    .order = 10,
});

}  // namespace
}  // namespace assay::falsify::policies
