// PyTorch's operator tests: torch.testing.assert_close with its default tolerances on the shapes of the sample inputs,
// and again with the tolerances of its test between devices. Sources in pytorch/pytorch: torch/testing/_comparison.py
// (_DTYPE_PRECISIONS), torch/testing/_internal/common_methods_invocations.py (sample_inputs_*),
// torch/testing/_internal/opinfo/core.py (elementwise operations), test/test_ops.py (test_compare_cpu,
// test_noncontiguous_samples), test/test_transformers.py, test/test_nn.py.
//
// Expected values come from float32 code: PyTorch compares float32 results with another device or with a decomposition
// in float32; test_numpy_ref, its comparison with double, runs in double only.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "falsify/policies/fill.hpp"
#include "falsify/policies/measures.hpp"

namespace assay::falsify::policies::pytorch_policy {
namespace {

constexpr Index S = 5, M = 10, L = 20;  // common_methods_invocations.py
// @tf32_on_and_off(0.05) of test_linalg.py, test_addmm: for N(0, 1). Products of values of U(-9, 9) have 27 times the
// standard deviation.
constexpr double kTf32 = 27 * 0.05;
constexpr Layout kStrided = Layout::padded;  // test_noncontiguous_samples
constexpr Layout kMixed = Layout::mixed;

Rejection rejects(const Rule&, const Output& output) {
  // _DTYPE_PRECISIONS; integers are compared exactly. TestCase.assertEqual has equal_nan=True.
  double relative = 0, absolute = 0;
  switch (output.dtype) {
    case DType::f32: relative = 1.3e-6, absolute = output.tf32 ? kTf32 : 1e-5; break;
    case DType::f16: relative = 1e-3, absolute = 1e-5; break;
    case DType::bf16: relative = 1.6e-2, absolute = 1e-5; break;
    case DType::i32:
    case DType::u8: break;
  }
  const std::ptrdiff_t at = first_beyond(output.got, output.want, relative, absolute, true);
  if (at < 0) return std::nullopt;
  const auto i = static_cast<std::size_t>(at);
  return fmt::format("element {} is {}, not {}", i, output.got[i], output.want[i]);
}

/// The same on another device: test_ops.py, test_compare_cpu, atol = rtol = 1e-3 for every type.
Rejection rejects_between_devices(const Rule&, const Output& output) {
  const double tolerance = is_floating(output.dtype) ? 1e-3 : 0;
  const std::ptrdiff_t at = first_beyond(output.got, output.want, tolerance, output.tf32 ? kTf32 : tolerance, true);
  if (at < 0) return std::nullopt;
  const auto i = static_cast<std::size_t>(at);
  return fmt::format("element {} is {}, not {}", i, output.got[i], output.want[i]);
}

/// make_tensor without limits.
Fill sample_inputs() { return uniform(-9, 9); }

/// generate_elementwise_binary_{small,large,extremal}_value_tensors, which unary operations use too.
Fill reference_inputs() {
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  static constexpr float kValues[] = {0,
                                      -0.0F,
                                      0.001F,
                                      -0.001F,
                                      0.25F,
                                      -0.25F,
                                      1,
                                      -1,
                                      1.5707964F,
                                      -1.5707964F,
                                      3.1415927F,
                                      -3.1415927F,
                                      3.141583F,
                                      -3.141583F,
                                      3.141603F,
                                      -3.141603F,
                                      501,
                                      -501,
                                      1001.2F,
                                      -1001.2F,
                                      13437.7F,
                                      -13437.7F,
                                      4988429.2F,
                                      -4988429.2F,
                                      1e20F,
                                      -1e20F,
                                      kInfinity,
                                      -kInfinity,
                                      std::numeric_limits<float>::quiet_NaN()};
  return [](Problem& problem, Random& random) {
    for_each_real(problem, [&](std::vector<float>& values, const TensorInfo&) {
      for (float& x : values) x = kValues[random.below(std::size(kValues))];
    });
  };
}

Fill labels() {
  return then(then(sample_inputs(), "targets",
                   [](Random& random, std::size_t) { return static_cast<float>(random.uniform()); }),
              "pos_weight", [](Random& random, std::size_t) { return static_cast<float>(9 * random.uniform()); });
}

/// test/test_nn.py, test_clip_grad_norm: gradients 1 .. 100 and ten of 0.001, max_norm = 2 and eps = 1e-6.
Fill counted_gradients() {
  return then(sample_inputs(), "g",
              [](Random&, std::size_t at) { return at < 100 ? static_cast<float>(at + 1) : 0.001F; });
}

/// test/test_transformers.py, _check_equal and the fudge factors of test_mem_efficient_attention_*: the largest error
/// against double may be `fudge` times that of plain code in the type of the tensors, or 1e-5. Inputs are U(0, 1).
Rejection attention_error(Caller& caller, const Problem& problem, const Outputs& got) {
  const auto golden = unrounded(problem, Reference::oracle);
  const Outputs plain = expected(problem, Reference::mirror);
  for (std::size_t o = 0; o < got.size(); ++o) {
    const std::string_view name = caller.op().tensors[caller.op().tensors.size() - got.size() + o].name;
    const double fudge = name == "dq" ? 160 : name == "dk" ? 25 : name == "dv" ? 8 : 4;
    double of_plain = 0, of_kernel = 0;
    for (std::size_t i = 0; i < got[o].size(); ++i) {
      if (static_cast<double>(got[o][i]) == golden[o][i]) continue;
      const double error = std::fabs(static_cast<double>(got[o][i]) - golden[o][i]);
      if (!std::isfinite(error)) return fmt::format("{}: element {} is {}", name, i, got[o][i]);
      of_kernel = std::max(of_kernel, error);
      of_plain = std::max(of_plain, std::fabs(static_cast<double>(plain[o][i]) - golden[o][i]));
    }
    // PyTorch compares the logarithms through gradients only; here as between two devices.
    if (of_kernel > std::max(name == "logsumexp" ? 1e-3 : 1e-5, fudge * of_plain))
      return fmt::format("{}: off by {:.3g}, plain code by {:.3g}", name, of_kernel, of_plain);
  }
  return std::nullopt;
}

Rule attention_rule(std::string_view op, std::vector<Sample> samples) {
  return {.op = op, .samples = std::move(samples), .fill = uniform(0, 1), .check = attention_error, .compared = false};
}

Rule rule(std::string_view op, std::vector<Sample> samples, Fill fill = sample_inputs()) {
  return {.op = op, .samples = std::move(samples), .fill = std::move(fill)};
}

/// Appends the same samples with strides.
std::vector<Sample> and_strided(std::vector<Sample> samples, Layout layout = kStrided) {
  const std::vector<Sample> plain = samples;
  for (Sample s : plain) {
    s.layout = layout;
    samples.push_back(s);
  }
  return samples;
}

/// sample_inputs_linear: features (3, 4) and (8, 8), batches of none, 0, 8 and 2 x 3, with and without a bias.
std::vector<Sample> linear_layers() {
  std::vector<Sample> samples;
  for (const auto& [in, out] : {std::pair<Index, Index>{3, 4}, {8, 8}})
    for (const Index batch : {1, 0, 8, 6})
      for (const Index biases : {1, 0}) samples.push_back({{batch, in, out, biases}});
  samples.push_back({{4, 2, 4, 0}});
  return and_strided(samples);
}

/// Rules for an elementwise operation: sample inputs, then the shapes and the values of its reference inputs.
std::vector<Rule> elementwise(std::string_view op, const std::vector<double>& params) {
  const auto samples = [&](std::initializer_list<std::pair<Index, Index>> shapes) {
    std::vector<Sample> list;
    for (const auto& [m, n] : shapes) list.push_back({{m, n}, params});
    return list;
  };
  return {rule(op, and_strided(samples({{1, L}, {1, 1}, {0, 3}, {S, 1}, {M, S}, {S * M, S}}))),
          rule(op, samples({{1, 812}, {1029, 917}, {0, 5}})),
          rule(op, and_strided(samples({{29, 29}})), reference_inputs())};
}

const std::vector<Rule>& rules() {
  // sample_inputs_matmul: batches fold into rows, a broadcast second factor into calls.
  static const std::vector<Sample> products = and_strided({{{1, L, 1}},
                                                           {{S, M, 1}},
                                                           {{1, M, S}},
                                                           {{S, M, S}},
                                                           {{S, 0, M}},
                                                           {{S * S, M, 1}},
                                                           {{S * S, M, S}},
                                                           {{S * S, 0, S}},
                                                           {{0, 0, 0}},
                                                           {{M, M, S}},
                                                           {{S * S * M, M, 1}},
                                                           {{S, S, S}}});
  // sample_inputs_softmax_variant, along the last axis.
  static const std::vector<Sample> rows = and_strided({{{1, S}}, {{S, S}}, {{S * M, S}}, {{S * M * S, M}}});
  // test_mem_efficient_attention_vs_math_ref_grads: 4 heads, lengths 4, 8 .. 2048 (to 128 here), head sizes 8 .. 128.
  static const std::vector<Sample> heads = [] {
    constexpr Index kSizes[] = {8, 16, 32, 64, 128}, kLengths[] = {4, 8, 64, 128};
    std::vector<Sample> list;
    for (const Index s : kLengths)
      for (const Index t : kLengths) list.push_back({{1, s, t, 4, 4, kSizes[list.size() % 5]}, {0.125, 0}});
    for (const Index s : kLengths)
      for (const Index d : kSizes) list.push_back({{1, s, s, 4, 4, d}, {0.125, 1}});
    for (Sample& sample : list) sample.params[0] = 1 / std::sqrt(static_cast<double>(sample.dims[5]));
    return list;
  }();
  // sample_inputs_embedding: one, S and S x S ids in a table of M rows; 2 x 2 ids in a table of S rows.
  static const std::vector<Sample> tables = and_strided({{{1, M, S}}, {{S, M, S}}, {{S * S, M, S}}, {{4, S, S}}});
  // sample_inputs_rms_norm: an eps of 0.5, which is 1e-2 here, and the default of float32.
  static const std::vector<Sample> norms = and_strided({{{1, 6}, {1e-2}},
                                                        {{2, 6}, {1e-2}},
                                                        {{1, 1}, {1.1920929e-7}},
                                                        {{1, 2}, {1.1920929e-7}},
                                                        {{0, 1}, {1.1920929e-7}}});
  static const std::vector<Rule> all = [] {
    std::vector<Rule> list{
        rule("matmul", products),
        rule("matmul_nt", products),
        rule("matmul_tn", products),
        rule("gemv", and_strided({{{S, M}}, {{1, L}}, {{S, 0}}})),
        rule("linear", linear_layers(), uniform(-2, 2)),
        rule("softmax", rows),
        rule("softmax_backward", rows),
        rule("bias_add", and_strided({{{S, M}}, {{S * M, S}}, {{M, S}}})),
        rule("bias_add_backward", and_strided({{{S, M}}, {{S * M, S}}, {{M, S}}})),
        rule("embedding", tables),
        rule("embedding_backward", tables),
        // low = -9, high = 1000; and again with the others' range, where eps matters.
        rule("rmsnorm", norms, uniform(-9, 1000)),
        rule("rmsnorm", norms),
        rule("rmsnorm_backward", and_strided({{{1, 6}}, {{2, 6}}, {{1, 1}}, {{1, 2}}})),
        attention_rule("attention", heads),
        attention_rule("attention_backward", heads),
        // sample_inputs_cross_entropy: (2, 3) and up to six-dimensional inputs, with weights, mean and sum.
        rule("cross_entropy", and_strided({{{2, 3}, {2}}, {{2, 3}, {1}}, {{4, 3}, {1}}, {{12, 3}, {2}}})),
        rule("cross_entropy_backward", and_strided({{{2, 3}}, {{4, 3}}, {{12, 3}}})),
        // sample_inputs_binary_cross_entropy_with_logits.
        rule("bce_with_logits", and_strided({{{1, 1}}, {{1, S}}, {{S, S}}, {{S * S, S}}}), labels()),
        rule("bce_with_logits_backward", and_strided({{{1, 1}}, {{1, S}}, {{S, S}}, {{S * S, S}}}), labels()),
        rule("transpose", and_strided({{{S, M}}, {{M, S}}, {{1, L}}, {{S, 0}}})),
        rule("tensor_layout", and_strided({{{S, M}}, {{M, S}}, {{1, L}}, {{S, 0}}}, kMixed)),
        // sample_inputs_linalg_vector_norm: (), (S), (S, S), (S, M, S).
        rule("global_grad_norm", {{{1}}, {{S}}, {{S * S}}, {{S * M * S}}}),
        rule("clip_grad_norm", {{{110}, {2, 1e-6}}}, counted_gradients()),
        // common_optimizers.py, optim_inputs_func_adamw: lr 0.01, weight_decay 0.1; test_optim.py runs several steps.
        rule("adamw_step", {{{55, 0}, {1e-3, 0.9, 0.999, 1e-8, 0.01, 1}},
                            {{55, 0}, {1e-2, 0.9, 0.999, 1e-8, 0.01, 2}},
                            {{55, 0}, {1e-3, 0.9, 0.999, 1e-8, 0.1, 7}}}),
    };
    for (const auto& [op, params] : std::initializer_list<std::pair<std::string_view, std::vector<double>>>{
             {"silu", {}}, {"silu_backward", {}}, {"residual_add", {2}}, {"scale", {3.14F}}, {"accumulate", {2}}})
      for (Rule& r : elementwise(op, params)) list.push_back(std::move(r));
    return list;
  }();
  return all;
}

Policy opinfo() {
  return {
      .name = "PyTorch",
      .source =
          "pytorch/pytorch 003029b0, torch/testing/_comparison.py and sample inputs of "
          "common_methods_invocations.py",
      .rules = rules,
      .rejects = rejects,
      .before = Before::recycled,  // its allocators hand out memory of freed tensors
      .reference = Reference::mirror,
      .notes =
          {"PyTorch: assert_close's defaults on the sample inputs, without the overrides that its tests have one "
           "by one: its false alarms are of this rule, not of PyTorch's suite; gradients are held to the reference "
           "like outputs"},
      .order = 20,
  };
}

/// Attention on its sample inputs; no gradients to compare between devices.
const std::vector<Rule>& rules_between_devices() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> list;
    for (const Rule& r : rules())
      if (!r.op.starts_with("attention")) list.push_back(r);
    // sample_inputs_scaled_dot_product_attention: batch 4, 3 queries, 6 keys, 4 heads of 8; without heads; grouped
    // heads.
    list.push_back(rule("attention", and_strided({{{4, 3, 6, 4, 4, 8}, {0.35355339, 0}},
                                                  {{4, 3, 6, 4, 4, 8}, {0.35355339, 1}},
                                                  {{4, 3, 6, 1, 1, 8}, {0.35355339, 0}},
                                                  {{4, 3, 6, 1, 1, 8}, {0.35355339, 1}},
                                                  {{4, 3, 6, 2, 4, 8}, {0.35355339, 0}},
                                                  {{4, 3, 6, 2, 4, 8}, {0.35355339, 1}}})));
    return list;
  }();
  return all;
}

Policy between_devices() {
  Policy policy = opinfo();
  policy.name = "PyTorch devices";
  policy.source = "pytorch/pytorch, test/test_ops.py, test_compare_cpu: atol = rtol = 1e-3 on the same inputs";
  policy.rules = rules_between_devices;
  policy.rejects = rejects_between_devices;
  policy.float32_only = true;  // OpDTypes.any_common_cpu_cuda_one
  policy.notes = {
      "PyTorch devices: how test_compare_cpu holds a CUDA result to the CPU's, on the same inputs, in float32"};
  policy.order = 21;
  return policy;
}

const PolicyRegistration defaults(opinfo());
const PolicyRegistration devices(between_devices());

}  // namespace
}  // namespace assay::falsify::policies::pytorch_policy
