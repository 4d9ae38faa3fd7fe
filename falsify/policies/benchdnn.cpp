// oneDNN's benchdnn in its correctness mode: fills with exact sums for operations with sums, thresholds of a few
// epsilon elsewhere, NaN in outputs before the call and a protected page behind them. uxlfoundation/oneDNN,
// tests/benchdnn: utils/compare.cpp (compare_p2p, compare_norm), <driver>/<driver>.cpp (fill_*, setup_cmp),
// matmul/cfg.cpp, and the shapes of inputs/<driver>.
#include <fmt/format.h>

#include <array>
#include <cfloat>
#include <cmath>

#include "falsify/policies/fill.hpp"

namespace assay::falsify::policies::benchdnn_policy {
namespace {

/// epsilon_dt: the distance from 1 to the next number.
double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f32: return 0x1p-23;
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    case DType::i32:
    case DType::u8: break;
  }
  return 0;
}

/// compare_p2p: equal; within epsilon of float32 if the expectation is at most 1e-5, else within `relative`; equal NaN
/// and Inf; or within `absolute` (the driver's own check).
bool accepts(float got, float want, double relative, double absolute) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return true;
  const double difference = std::fabs(static_cast<double>(want) - static_cast<double>(got));
  const double size = std::fabs(static_cast<double>(want));
  if (size <= 1e-5 && difference < 0x1p-23) return true;
  return (size > 1e-5 ? difference / size : difference) <= relative || difference < absolute;
}

/// `limit` and `limit2` of a rule are the threshold and the driver's absolute threshold, both in epsilons of the
/// output's type.
Rejection rejects(const Rule& rule, const Output& output) {
  const double unit = epsilon(output.dtype);
  for (std::size_t i = 0; i < output.want.size(); ++i)
    if (!accepts(output.got[i], output.want[i], rule.limit * unit, rule.limit2 * unit))
      return fmt::format("element {} is {}, not {}", i, output.got[i], output.want[i]);
  return std::nullopt;
}

/// matmul.cpp: fill_data, matmul/cfg.cpp: integers of +-64 and +-128, biases of +-8; the first factor as dense as 2^24
/// over the largest product allows.
Fill exact_products(std::size_t first, std::size_t k_dim) {
  return [first, k_dim](Problem& problem, Random& random) {
    const double density =
        std::min(1.0, 0x1p24 / (64.0 * 128.0) / static_cast<double>(std::max<Index>(1, problem.dims[k_dim])));
    std::size_t tensor = 0;
    for_each_real(problem, [&](std::vector<float>& values, const TensorInfo& info) {
      const int range = info.name == "bias" ? 8 : tensor == first ? 64 : 128;
      for (float& x : values)
        x = tensor != first || random.chance(density) ? static_cast<float>(random.between(-range, range)) : 0.0F;
      ++tensor;
    });
  };
}

/// eltwise.cpp: fill_data, thirteen kinds of values; alpha = 1, beta = 0.
Fill eltwise() {
  return [](Problem& problem, Random& random) {
    for_each_real(problem, [&](std::vector<float>& values, const TensorInfo&) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double integer = static_cast<double>(random.between(0, 10)), real = 0.09 * random.uniform();
        const double kinds[] = {integer,        -integer,  real,       -real,          10 * integer,
                                -10 * integer,  10 * real, -10 * real, 88 + 10 * real, 22 + 10 * real,
                                44 + 10 * real, 1,         0};
        values[i] = static_cast<float>(kinds[i % std::size(kinds)]) + 0.0F;
      }
    });
  };
}

/// softmax.cpp: fill_data_fwd: up to 15 neighbours of 88 to 90, negative in every second block of 64 rows, all others
/// the lowest float.
Fill tops() {
  return [](Problem& problem, Random& random) {
    const Index rows = problem.dims[0], n = problem.dims[1];
    for (Index row = 0; row < rows; ++row) {
      float* const x = problem.values[0].data() + row * n;
      const float sign = row / 64 % 2 == 0 ? 1.0F : -1.0F;
      std::vector<float> top;
      for (const auto& [low, high, above] : {std::array<int, 3>{1, 2, 2}, {2, 5, 1}, {5, 8, 0}})
        top.insert(top.end(), static_cast<std::size_t>(random.between(low, high)),
                   88.0F * sign + static_cast<float>(above));
      top.resize(std::min(top.size(), static_cast<std::size_t>(n)));
      std::fill_n(x, n, -FLT_MAX);
      std::ranges::copy(top, x + random.between(0, n - static_cast<Index>(top.size())));
    }
  };
}

/// softmax.cpp: fill_data_bwd: dst and diff_dst of different signs.
Fill opposite_signs() {
  return [](Problem& problem, Random&) {
    for (std::size_t t : {std::size_t{0}, std::size_t{1}})
      for (std::size_t i = 0; i < problem.values[t].size(); ++i) {
        const std::size_t range = t == 0 ? 128 : 8;
        const auto value = static_cast<float>((11 * i + 37 + (t == 0 ? 19 : 0)) % range);
        problem.values[t][i] = t == 0 ? -value / static_cast<float>(range) : value;
      }
  };
}

/// lnorm.cpp: fill_src (a step of 0.25 or 1 to either side of a power of two), fill_scale.
Fill around_means() {
  return [](Problem& problem, Random& random) {
    const Index rows = problem.dims[0], n = problem.dims[1];
    for (Index row = 0; row < rows; ++row) {
      const double mean = 0.25 * static_cast<double>(1 << (row % 7));
      double step = 0;  // of both neighbours; the last of an odd row is the mean
      for (Index c = 0; c < n; ++c) {
        if (c % 2 == 0) step = c + 1 == n ? 0.0 : random.chance(0.5) ? 1.0 : 0.25;
        problem.values[0][static_cast<std::size_t>(row * n + c)] =
            static_cast<float>(mean + (c % 2 == 0 ? step : -step));
      }
    }
    for (std::size_t c = 0; c < problem.values[1].size(); ++c)
      problem.values[1][c] = 0.125F * static_cast<float>(1 << (c % 7));
    make_consistent(problem, random);
  };
}

/// lnorm.cpp: fill_src_bwd, fill_variance_bwd, fill_diff_dst_bwd: -1 and 1, powers of two; zero mean, as in RMS norm.
Fill powers_of_two() {
  return [](Problem& problem, Random& random) {
    for (std::size_t i = 0; i < problem.values[0].size(); ++i) {
      problem.values[0][i] = i % 2 == 0 ? -1.0F : 1.0F;
      problem.values[3][i] = static_cast<float>(random.either_sign(0.0625 * static_cast<double>(1 << random.below(7))));
    }
    for (std::size_t c = 0; c < problem.values[1].size(); ++c)
      problem.values[1][c] = 0.125F * static_cast<float>(1 << (c % 7));
    for (std::size_t row = 0; row < problem.values[2].size(); ++row)
      problem.values[2][row] = 2.0F / static_cast<float>(1 << (row % 3));
  };
}

Fill integers(int low, int high, double unit = 1) {
  return [low, high, unit](Problem& problem, Random& random) {
    for_each_real(problem, [&](std::vector<float>& values, const TensorInfo&) {
      for (float& x : values) x = static_cast<float>(unit * static_cast<double>(random.between(low, high)));
    });
    make_consistent(problem, random);
  };
}

/// lnorm.cpp, backward: compared by the L2 norm of the difference, 5e-7 for diff_src and 5e-6 for diff_scale.
Rejection by_norm(Caller& caller, const Problem& problem, const Outputs& got) {
  const Outputs want = expected(problem, Reference::mirror);
  const double limits[] = {5e-7, 5e-6};
  for (std::size_t o = 0; o < got.size(); ++o) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < want[o].size(); ++i) {
      difference += std::pow(static_cast<double>(got[o][i]) - static_cast<double>(want[o][i]), 2);
      size += std::pow(static_cast<double>(want[o][i]), 2);
    }
    if (!(std::sqrt(difference) <= limits[o] * std::sqrt(size)))
      return fmt::format("{}: the norm of the difference is {:.3g} of its own", caller.op().tensors[4 + o].name,
                         std::sqrt(difference / size));
  }
  return std::nullopt;
}

/// eltwise.cpp: check_abs_err, swish backward: an absolute threshold where 1 + W(x) cancels.
Rejection swish_slope(Caller&, const Problem& problem, const Outputs& got) {
  constexpr double kThreshold = 4e-5;
  const Outputs want = expected(problem, Reference::mirror);
  for (std::size_t i = 0; i < want[0].size(); ++i) {
    const auto s = static_cast<double>(problem.values[0][i]);
    const bool cancels = s * (1 - 1 / (1 + std::exp(-s))) <= 2 * 0x1p-23 / kThreshold;
    if (!accepts(got[0][i], want[0][i], kThreshold, cancels ? kThreshold : 0))
      return fmt::format("dx: element {} is {}, not {}", i, got[0][i], want[0][i]);
  }
  return std::nullopt;
}

const std::vector<Rule>& rules() {
  // inputs/matmul/shapes_2d: m x k : k x n; the last shape of shapes_3d without its batch, and tails of blocks of 16.
  static constexpr std::array<std::array<Index, 3>, 14> kShapes{{{1, 1, 1},
                                                                 {10, 30, 1},
                                                                 {1, 30, 20},
                                                                 {10, 1, 20},
                                                                 {1, 300, 1},
                                                                 {1, 1, 200},
                                                                 {100, 1, 1},
                                                                 {10, 30, 20},
                                                                 {20, 30, 4},
                                                                 {2, 30, 47},
                                                                 {10, 30, 16},
                                                                 {10, 30, 13},
                                                                 {2, 30, 8},
                                                                 {2, 30, 5}}};
  static const auto products = [](const std::function<std::vector<Index>(const std::array<Index, 3>&)>& dims) {
    std::vector<Sample> samples;
    for (const Layout layout : {Layout::tight, Layout::padded})  // plain, and with --strides
      for (const auto& shape : kShapes) samples.push_back({dims(shape), {}, layout});
    return samples;
  };
  static const std::vector<Sample> plain =
      products([](const auto& s) { return std::vector<Index>(s.begin(), s.end()); });
  // inputs/softmax: shapes_ci, shapes_0d (of two dimensions), shape_large_axis; along the last axis.
  static const std::vector<Sample> rows{{{16, 16}},   {{255, 10}}, {{96, 1000}}, {{256, 10}},
                                        {{32, 100}},  {{2, 113}},  {{128, 365}}, {{24, 8320}},
                                        {{12, 5600}}, {{1, 4097}}, {{6, 9999}},  {{32, 100}, {}, Layout::padded}};
  // inputs/eltwise/shapes_ci: 16x16x2x1 and 3x15x2x5x3.
  static const std::vector<Sample> elements{{{16, 32}}, {{3, 450}}, {{45, 30}, {}, Layout::padded}};
  const auto scaled = [](const std::vector<double>& factors) {
    std::vector<Sample> samples;
    for (const Sample& s : elements)
      for (const double alpha : factors) samples.push_back({s.dims, {alpha}, s.layout});
    return samples;
  };
  // inputs/lnorm: shapes_ci, lnorm_all.
  static const std::vector<Sample> norms{{{15, 3}, {1e-5}},
                                         {{30, 300}, {1e-5}},
                                         {{256, 768}, {1e-5}},
                                         {{257, 768}, {1e-5}},
                                         {{128, 1024}, {1e-5}},
                                         {{1536, 1024}, {1e-5}},
                                         {{30, 300}, {1e-5}, Layout::padded}};
  // inputs/binary: shapes_ci and shapes_common; equal shapes, and one row.
  static const std::vector<Sample> one_row{{{12, 12}}, {{5, 54}}, {{12, 12}, {}, Layout::padded}};
  // inputs/sum: test_sum_all; 1.25 is among its scales.
  static const auto sums = [] {
    std::vector<Sample> samples;
    for (const auto& dims : {std::vector<Index>{9, 64}, {16, 32}, {25, 15}, {24, 20}, {9, 28}, {16, 55}, {12, 45}})
      for (const double alpha : {1.0, 1.25, 0.25}) samples.push_back({dims, {alpha}});
    samples.push_back({{9, 64}, {2}, Layout::padded});
    return samples;
  }();
  // inputs/reduction: shapes_ci, option_set_all.
  static const std::vector<Sample> reduced{{{5, 54}}, {{12, 12}}, {{16, 32}}, {{17, 64}},
                                           {{4, 4}},  {{127, 1}}, {{15, 5}}};
  constexpr double kSwish = 4e-5 / 0x1p-23, kLinear = 4e-6 / 0x1p-23, kNorm = 5e-7 / 0x1p-23;
  static const std::vector<Rule> all{
      {"matmul", plain, exact_products(0, 1)},
      {"matmul_nt", plain, exact_products(0, 1)},
      {"matmul_tn", plain, exact_products(0, 1)},
      {"gemv", products([](const auto& s) {
         return std::vector<Index>{s[0], s[1]};
       }),
       exact_products(0, 1)},
      {"linear", products([](const auto& s) {
         return std::vector<Index>{s[0], s[1], s[2], s[0] % 2};
       }),
       exact_products(0, 1)},
      {"linear", products([](const auto& s) {
         return std::vector<Index>{s[0], s[1], s[2], 1 - s[0] % 2};
       }),
       exact_products(0, 1)},
      {"softmax", rows, tops(), 10, 1},                     // setup_cmp: 10 eps; softmax_add_check: eps
      {"softmax_backward", rows, opposite_signs(), 40, 1},  // 4 * 10 eps
      {"silu", elements, eltwise(), kSwish},                // get_eltwise_threshold: swish 4e-5
      {.op = "silu_backward", .samples = elements, .fill = eltwise(), .check = swish_slope, .compared = false},
      {"scale", scaled({0, 0.25, -0.25}), eltwise(), kLinear},  // option_set_all_algs: linear
      {"rmsnorm", norms, around_means(), kNorm},
      {.op = "rmsnorm_backward",
       .samples = {{{15, 3}}, {{30, 300}}, {{256, 768}}, {{257, 768}}, {{128, 1024}}, {{30, 300}, {}, Layout::padded}},
       .fill = powers_of_two(),
       .check = by_norm,
       .compared = false},
      {"bias_add", one_row, integers(-8, 8, 0.5), 1},    // binary.cpp: eps
      {"residual_add", sums, integers(-8, 7, 1.25), 2},  // sum.cpp: inputs * eps
      {"accumulate", sums, integers(-8, 7, 1.25), 2},    // sum.cpp, in place
      // inputs/reorder: test_reorder_all, ab to ba.
      {"transpose",
       {{{89, 73}}, {{16, 63}}, {{8, 8}}, {{64, 9}}, {{2, 576}}, {{89, 73}, {}, Layout::padded}},
       integers(-128, 128)},
      {"tensor_layout",
       {{{89, 73}}, {{64, 9}, {}, Layout::padded}, {{89, 73}, {}, Layout::mixed}, {{16, 63}, {}, Layout::mixed}},
       integers(-128, 128)},
      {"bias_add_backward", reduced, integers(-16, 16), 1},  // reduction.cpp: sum
      // reduction.cpp: mean, shifted by 1.
      {"mean_pool", {{{10, 16, 32}}, {{1, 17, 64}}, {{8, 16, 7}}, {{5, 3, 18}}}, integers(-15, 17), 1},
      {"global_grad_norm",
       {{{127}}, {{768}}, {{2700}}, {{4200}}},
       integers(-16, 16),
       5},  // reduction.cpp: norm_lp_sum, p = 2
  };
  return all;
}

const PolicyRegistration registration({
    .name = "oneDNN",
    .source = "uxlfoundation/oneDNN, tests/benchdnn, correctness mode (14929da6, 0a89c366, 02f5752a, 1113d235)",
    .rules = rules,
    .rejects = rejects,
    .before = Before::poison,     // dnnl_memory.hpp: dnnl_mem_default_value 0xFF
    .guard = Guard::page_behind,  // zmalloc's protected page
    .reference = Reference::mirror,
    .notes = {"oneDNN: shapes are those of the input files named at each rule, tensors of more dimensions as matrices; "
              "larger sets for frameworks and GPUs are left out, and so is its sdpa driver; RMS norm is its layer norm "
              "with a mean of its own, so that fills around means are kept; fills of binary and reorder, and p of the "
              "norm, are from an earlier reading"},
    .order = 30,
});

}  // namespace
}  // namespace assay::falsify::policies::benchdnn_policy
