// ggml's test-backend-ops, mode "test": compares the outputs of one operation with those of the CPU back end by
// normalized mean squared error, with sentinels around every tensor. All names: tests/test-backend-ops.cpp of
// ggml-org/llama.cpp at 0054f928; shapes are ne = {columns, rows, ...} of make_test_cases_eval.
#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "falsify/policies/fill.hpp"
#include "falsify/policies/measures.hpp"

namespace assay::falsify::policies::ggml_policy {
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
  // A cache output corresponds to a SET_ROWS of float32: the default.
  const double limit = output.tensor.ends_with("_cache") ? kDefault : rule.limit;
  const double error = nmse(output.want, output.got);
  if (error > limit) return fmt::format("NMSE {:.3g} > {:.3g}", error, limit);  // NaN, of zeros against zeros, passes
  return std::nullopt;
}

/// Q4_K blocks of uniform values: init_tensor_uniform quantizes its draws.
Fill quantized() {
  return [](Problem& problem, Random& random) {
    uniform(-1, 1)(problem, random);
    Problem weights{&operation("q4_k_quantize"), {problem.dims[0], problem.dims[1]}, {}, {{}, {}}, DType::f32};
    for (Index i = 0; i < weights.dims[0] * weights.dims[1]; ++i)
      weights.values[0].push_back(static_cast<float>(2 * random.uniform() - 1));
    problem.values[0] = mirror_of("q4_k_quantize", weights)[0];
  };
}

/// tensor_to_float decodes blocks before the comparison.
Rejection decoded(Caller& caller, const Problem& problem, const Outputs& got) {
  Problem call{&operation("q4_k_dequantize"), problem.dims, {}, {got[0], {}}, DType::f32};
  const std::vector<float> ours = mirror_of("q4_k_dequantize", call)[0];
  call.values[0] = mirror_of(caller.op().name, problem)[0];
  const std::vector<float> theirs = mirror_of("q4_k_dequantize", call)[0];
  return rejects({.op = caller.op().name, .samples = {}, .fill = {}, .limit = kDecode},
                 {.tensor = "blocks", .dtype = DType::f32, .got = ours, .want = theirs});
}

/// (m, k, n) of our product, whose rows are ggml's columns of b. From the MUL_MAT cases of make_test_cases_eval with an
/// unquantized a, of float32 or of 16 bits alike.
std::vector<Sample> products() {
  std::vector<Sample> samples;
  for (Index n = 1; n < 10; ++n) samples.push_back({{n, 256, 16}});
  for (Index k : {256, 4}) samples.insert(samples.end(), {{{1, k, 16}}, {{4, k, 16}}, {{16, k, 16}}});
  samples.insert(samples.end(), {{{8, 256, 16}, {}, kView},
                                 {{16, 256, 16}, {}, kView},
                                 {{1, 1024, 16}},
                                 {{8, 1024, 16}},
                                 {{16, 1024, 16}},
                                 {{2, 128, 64}},
                                 {{2, 128, 83}},
                                 {{2, 64, 83}},
                                 {{45, 128, 64}},
                                 {{45, 64, 128}},
                                 {{1, 193, 1056}, {}, kView},
                                 {{1, 67, 1056}, {}, kView},
                                 {{32, 32, 16}, {}, kView},
                                 {{77, 77, 64}},
                                 {{64, 256, 1}}});
  for (Index m : {0, 1})
    for (Index k : {0, 1})
      samples.insert(samples.end(), {{{1, 128 + k, 1056 + m}, {}, kView}, {{1, 1056 + k, 128 + m}, {}, kView}});
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

/// test_rms_norm and tests that contain it: rows of U(-10, 10). Our contract's eps ends at 1e-2; eps s^2 on x s is the
/// same call, which covers an eps of 0.1, 1 and 10. 1e-8 replaces an eps of 0.
std::vector<Rule> norms() {
  const auto rule = [](double range, double eps, std::vector<Sample> samples) {
    const double scale = eps > 1e-2 ? std::sqrt(1e-2 / eps) : 1;
    for (Sample& s : samples) s.params = {std::clamp(eps, 1e-8, 1e-2)};
    return Rule{"rmsnorm", std::move(samples), uniform(-range * scale, range * scale), kDefault};
  };
  const std::vector<Sample> shapes{{{60, 64}}, {{4, 32}, {}, kView}, {{60, 1025}}, {{4, 512}, {}, kView}};
  std::vector<Rule> list;
  for (const double eps : {0.0, 1e-6, 1e-4, 1e-1, 10.0}) list.push_back(rule(10, eps, shapes));
  list.push_back(rule(10, 1, {{{60, 64}}, {{60, 1025}}}));  // test_rms_norm_mul_add, test_add_rms_norm
  list.push_back(rule(10, 1e-6, {{{1, 1}}, {{1, 511}}, {{1, 1025}}, {{1, 8192}}, {{1, 16896}}}));
  // test_rms_norm_mul_rope: U(-1, 1).
  list.push_back(rule(1, 1e-6, {{{1, 768}}, {{3, 768}}, {{15, 768}}, {{64, 128}}, {{1600, 128}}, {{4, 8192}}}));
  return list;
}

/// test_opt_step_adamw: everything uniform in (0, 1), including the parameters. beta1h and beta2h correspond to one
/// step here.
std::vector<Rule> steps() {
  return {{"adamw_step",
           {{{600, 0}, {0.5, 0.7, 0.3, 0.4, 0.5, 2}}, {{600, 0}, {0.9, 0.2, 0.6, 0.8, 0.1, 1}}},
           uniform(0, 1),
           kDefault}};
}

/// test_flash_attn_ext, cases without sinks, ALiBi and soft caps: 4 heads of keys in groups of 1, 4, 12 and 16; 113,
/// 512 and 1024 keys; 1, 3, 32 and 75 queries. Every head size with every storage, although ggml tests 64 and 72 in
/// float32 only. A causal case replaces its random masks.
std::vector<Rule> heads() {
  const auto call = [](Index batch, Index queries, Index keys, Index groups, Index d, double causal,
                       Layout layout = kView) {
    return Sample{{batch, queries, keys, 4, 4 * groups, d}, {1 / std::sqrt(static_cast<double>(d)), causal}, layout};
  };
  const std::vector<Sample> calls{call(1, 1, 113, 1, 64, 0),   call(1, 3, 113, 1, 40, 0),
                                  call(1, 32, 113, 1, 72, 0),  call(1, 75, 113, 1, 64, 1),
                                  call(1, 3, 512, 4, 64, 0),   call(3, 3, 113, 1, 64, 0),
                                  call(1, 1, 512, 1, 128, 0),  call(1, 3, 113, 1, 80, 0),
                                  call(1, 32, 113, 1, 96, 0),  call(1, 3, 113, 1, 192, 0),
                                  call(1, 3, 113, 1, 256, 0),  call(1, 3, 1024, 1, 64, 0),
                                  call(1, 75, 512, 1, 64, 0),  call(1, 1, 512, 12, 128, 0),
                                  call(1, 1, 512, 16, 192, 0), call(1, 32, 512, 1, 64, 0, Layout::tight)};
  std::vector<Sample> decoded;
  for (const Sample& s : calls)
    if (s.dims[1] == 1) decoded.push_back({{s.dims[0], s.dims[2], s.dims[3], s.dims[4], s.dims[5]}, {s.params[0]}});
  for (Sample extra : {Sample{{3, 113, 4, 4, 72}, {0.118}}, Sample{{1, 512, 4, 16, 64}, {0.125}}})
    decoded.push_back(extra);
  return {{"attention", calls, uniform(-1, 1), kProduct}, {"attention_decode", decoded, uniform(-1, 1), kProduct}};
}

const std::vector<Rule>& rules() {
  // test_soft_max: ne0, ne1 of {16, 1024} and one less, in place, and rows of 200,000. Cases of 10^6 elements and more
  // are omitted here and below.
  static const std::vector<Sample> rows{{{16, 16}},   {{15, 15}}, {{16, 1024}}, {{15, 1023}},  {{1024, 16}},
                                        {{1023, 15}}, {{64, 16}}, {{144, 16}},  {{1, 200000}}, {{4, 200000}}};
  // test_soft_max_back.
  static const std::vector<Sample> rows_back{{{16, 16}},   {{15, 15}}, {{16, 1024}}, {{15, 1023}}, {{1024, 16}},
                                             {{1023, 15}}, {{96, 16}}, {{96, 1024}}, {{6144, 16}}};
  // test_unary, test_glu, test_glu_split: {128, 2, 2, 2} and {5, 7, 11, 13}, plain and as views.
  static const std::vector<Sample> unary{{{8, 128}}, {{1001, 5}}, {{8, 128}, {}, kView}, {{1001, 5}, {}, kView}};
  // test_rope: positions below n_ctx = 512; modes NORMAL and NEOX. {80, 32} rotates a part of each
  // head in ggml and the whole head here.
  static const std::vector<Sample> ropes{{{2, 32, 128}, {10000, 1, 0}}, {{2, 32, 128}, {10000, 1, 0}, kView},
                                         {{2, 40, 128}, {10000, 1, 0}}, {{2, 52, 128}, {10000, 1, 0}},
                                         {{2, 64, 128}, {10000, 1, 0}}, {{2, 1, 64}, {10000, 0, 0}},
                                         {{2, 71, 64}, {10000, 0, 0}},  {{2, 8, 64}, {10000, 0, 0}, kView},
                                         {{4, 32, 80}, {10000, 1, 0}},  {{2, 128, 64}, {10000, 0, 0}}};
  static const Fill positioned = then(
      uniform(-1, 1), "positions", [](Random& random, std::size_t) { return static_cast<float>(random.below(512)); });
  // test_bin_bcast of equal shapes; src_overlap has views.
  static const std::vector<Sample> sums{
      {{8, 1}},    {{102400, 1}}, {{5, 10}},     {{20, 10}},    {{60, 10}},           {{240, 16}},
      {{1, 1280}}, {{1, 640}},    {{256, 1280}}, {{20480, 16}}, {{80, 10}, {}, kView}};
  // test_get_rows, test_get_rows_back: (r, m, n); a view of the ids is half of them.
  static const std::vector<Sample> gathered{{{2, 8, 1}}, {{4, 5, 256}}, {{2, 5, 256}}, {{28, 5, 256}}};
  static const Fill one_class = then(uniform(-100, 100), "weights", [](Random&, std::size_t) { return 1.0F; });
  static const Fill one_class_back = then(uniform(-1, 1), "weights", [](Random&, std::size_t) { return 1.0F; });
  static const std::vector<Rule> all = [] {
    std::vector<Rule> list{
        {"matmul", products(), uniform(-1, 1), kProduct},
        {"matmul_nt", products(), uniform(-1, 1), kProduct},
        // test_out_prod: 256, n and k of {1, 16}.
        {"matmul_tn", {{{256, 1, 1}}, {{256, 1, 16}}, {{256, 16, 1}}, {{256, 16, 16}}}, uniform(-1, 1), kProduct},
        {"gemv", vectors(), uniform(-1, 1), kProduct},
        {"linear", linear_layers(), uniform(-1, 1), kProduct},
        {"q4_k_gemv", {{{16, 256}}, {{1, 256}}, {{16, 1024}}, {{32, 256}}}, quantized(), kProduct},
        {"q4_k_dequantize", {{{64, 256}}, {{24, 256}, {}, kView}}, quantized(), kDecode},
        {.op = "q4_k_quantize",
         .samples = {{{64, 256}}, {{24, 256}, {}, kView}},
         .fill = uniform(-150, 150),
         .limit = kDecode,
         .check = decoded,
         .compared = false},
        {"softmax", rows, uniform(-1, 1), kSoftmax},
        {"softmax_backward", rows_back, raw(-1, 1), kDefault},
        {"silu", unary, uniform(-150, 150), kDefault},
        {"silu_backward", {{{60, 64}}}, uniform(-1, 1), kDefault},  // test_silu_back
        {"silu_mul", unary, uniform(-150, 150), kDefault},
        {"rmsnorm_backward", {{{60, 64}}, {{60, 1025}}}, uniform(-10, 10), kDefault},
        {"rope", ropes, positioned, kDefault},
        {"rope_backward", ropes, positioned, kDefault},
        {"embedding", gathered, uniform(-1, 1), kDefault},
        {"embedding", {{{4, 5, 76800}}}, uniform(-1, 1), kDefault},
        {"embedding_backward", gathered, uniform(-1, 1), kDefault},
        {"embedding_backward", {{{4, 70000, 1}}}, uniform(-1, 1), kDefault},
        {"residual_add", sums, uniform(-1, 1), kDefault},
        // test_bin_bcast, src1 of one row: {1280} and {5120} by 256, {10, 5, 4, 3} by 2, {1} by 32.
        {"bias_add", {{{256, 1280}}, {{1, 1280}}, {{256, 5120}}, {{2, 600}}, {{32, 1}}}, uniform(-1, 1), kDefault},
        // test_repeat_back: {8, 6, 4, 2} by 2, along one dimension at a time.
        {"bias_add_backward", {{{1, 384}}, {{2, 384}}, {{2, 192}}, {{2, 48}}, {{2, 8}}}, uniform(-1, 1), kDefault},
        // test_scale: 2, without its bias.
        {"scale", {{{1000, 10}, {2}}, {{1000, 100}, {2}}}, uniform(-1, 1), kDefault},
        // test_acc.
        {"accumulate",
         {{{16, 256}, {1}}, {{96, 256}, {1}}, {{96, 128}, {1}, kView}, {{96, 64}, {1}, kView}},
         uniform(-1, 1),
         kDefault},
        // test_cont (transposed) and test_cpy with transposition.
        {"transpose",
         {{{1, 2}}, {{15, 2}}, {{3, 2}}, {{4, 1}}, {{8, 1}}, {{10, 10}}, {{4, 256}}, {{1, 256}}, {{256, 4}}, {{2, 2}}},
         uniform(-150, 150),
         kCopy},
        {"tensor_layout",
         {{{4, 256}}, {{6, 128}, {}, kView}, {{24, 256}, {}, Layout::mixed}, {{105, 32}}},
         uniform(-150, 150),
         kCopy},
        // test_cross_entropy_loss and _back: labels are a softmax in ggml, one target here.
        {"cross_entropy", {{{60, 10}, {1}}, {{1, 30000}, {1}}}, one_class, kDefault},
        {"cross_entropy_backward", {{{60, 10}}, {{1, 30000}}}, one_class_back, kDefault},
    };
    for (const std::vector<Rule>& more : {norms(), steps(), heads()}) list.insert(list.end(), more.begin(), more.end());
    return list;
  }();
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
         "MUL_MAT + ADD), and every output of ours is compared, those that its operations have not (rrms, logsumexp) "
         "too; "
         "cases of 10^6 elements and more are left out; its seeds are random, ours are fixed"},
    .order = 10,
});

}  // namespace
}  // namespace assay::falsify::policies::ggml_policy
