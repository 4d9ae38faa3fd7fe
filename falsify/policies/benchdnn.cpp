// oneDNN's benchdnn in its correctness mode: fills made for exact sums where sums are, thresholds of a few epsilon
// elsewhere, NaN in outputs before the call and a protected page behind them. uxlfoundation/oneDNN, tests/benchdnn:
// utils/compare.cpp (compare_p2p), <driver>/<driver>.cpp (fill, setup_cmp), matmul/cfg.cpp, inputs/matmul/shapes_2d.
#include <fmt/format.h>

#include <array>
#include <cfloat>
#include <cmath>

#include "falsify/policies/fill.hpp"

namespace assay::falsify::policies {
namespace {

/// epsilon_dt: the distance from 1 to the next number.
double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0x1p-23;
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    case DType::i32:
    case DType::u8:
      break;
  }
  return 0;
}

/// compare_p2p: equal, or within `relative` of an expectation above 1e-5, or that near to one below; equal NaN and Inf;
/// or within `absolute` (the driver's own check).
bool accepts(float got, float want, double relative, double absolute) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return true;
  const double difference = std::fabs(static_cast<double>(want) - static_cast<double>(got));
  const double size = std::fabs(static_cast<double>(want));
  return (size > 1e-5 ? difference / size : difference) <= relative || difference < absolute;
}

/// `limit` and `limit2` of a rule are the threshold and the driver's absolute one, both in epsilons of the output's
/// type.
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

/// softmax.cpp: fill_data_fwd: up to 15 neighbours of 88 to 90, negative in every other row, all others the lowest
/// float.
Fill tops() {
  return [](Problem& problem, Random& random) {
    const Index rows = problem.dims[0], n = problem.dims[1];
    for (Index row = 0; row < rows; ++row) {
      float* const x = problem.values[0].data() + row * n;
      const float sign = row % 2 == 0 ? 1.0F : -1.0F;
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
    for (Index row = 0; row < rows; ++row)
      for (Index c = 0; c < n; ++c) {
        const double mean = 0.25 * static_cast<double>(1 << (row % 7)), step = random.chance(0.5) ? 0.25 : 1.0;
        problem.values[0][static_cast<std::size_t>(row * n + c)] =
            static_cast<float>(mean + (c % 2 == 0 ? step : -step));
      }
    for (std::size_t c = 0; c < problem.values[1].size(); ++c)
      problem.values[1][c] = 0.125F * static_cast<float>(1 << (c % 7));
    make_consistent(problem, random);
  };
}

/// lnorm.cpp: fill_src_bwd, fill_variance_bwd, fill_diff_dst_bwd: -1 and 1, powers of two; a mean of zero, as RMS norm
/// has.
Fill powers_of_two() {
  return [](Problem& problem, Random& random) {
    for (std::size_t i = 0; i < problem.values[0].size(); ++i) {
      problem.values[0][i] = i % 2 == 0 ? -1.0F : 1.0F;
      problem.values[3][i] = static_cast<float>(random.sign() * 0.0625 * static_cast<double>(1 << random.below(7)));
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
  // inputs/matmul/shapes_2d: m x k : k x n.
  static constexpr std::array<std::array<Index, 3>, 13> kShapes{{{1, 1, 1},
                                                                 {10, 30, 1},
                                                                 {1, 30, 20},
                                                                 {10, 1, 20},
                                                                 {1, 300, 1},
                                                                 {1, 1, 200},
                                                                 {100, 1, 1},
                                                                 {10, 30, 20},
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
  // The shape files of the other drivers are not to be had: sizes that their shapes_ci name, with a tail and without.
  static const std::vector<Sample> rows{
      {{2, 16}}, {{10, 100}}, {{64, 33}}, {{3, 1000}}, {{1, 1024}}, {{16, 1}}, {{10, 100}, {}, Layout::padded}};
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
      {"softmax", rows, tops(), 10, 1},                     // 10 eps; softmax_add_check: eps
      {"softmax_backward", rows, opposite_signs(), 40, 1},  // 4 * 10 eps
      {"silu", rows, eltwise(), kSwish},                    // get_eltwise_threshold: swish 4e-5
      {.op = "silu_backward", .samples = rows, .fill = eltwise(), .check = swish_slope, .compared = false},
      {"scale", {{{10, 100}, {2}}, {{64, 33}, {0.25}}}, eltwise(), kLinear},  // linear
      {"rmsnorm",
       {{{2, 16}, {1e-5}},
        {{10, 100}, {1e-5}},
        {{64, 33}, {1e-5}},
        {{3, 1000}, {1e-5}},
        {{10, 100}, {1e-5}, Layout::padded}},
       around_means(),
       kNorm},
      {.op = "rmsnorm_backward",
       .samples = {{{2, 16}}, {{10, 100}}, {{64, 33}}, {{3, 1000}}, {{10, 100}, {}, Layout::padded}},
       .fill = powers_of_two(),
       .check = by_norm,
       .compared = false},
      {"bias_add", rows, integers(-8, 8, 0.5), 1},  // binary.cpp: eps
      {"residual_add",
       {{{10, 100}, {1}}, {{64, 33}, {0.25}}, {{10, 100}, {2}, Layout::padded}},
       integers(-8, 7, 1.25),
       2},  // sum.cpp: inputs * eps
      {"accumulate",
       {{{10, 100}, {1}}, {{64, 33}, {0.25}}, {{10, 100}, {2}, Layout::padded}},
       integers(-8, 7, 1.25),
       2},                                       // sum.cpp, in place
      {"transpose", rows, integers(-128, 128)},  // reorder: exact
      {"tensor_layout",
       {{{10, 100}}, {{64, 33}, {}, Layout::padded}, {{10, 100}, {}, Layout::mixed}},
       integers(-128, 128)},
      {"bias_add_backward", rows, integers(-16, 16), 1},                     // reduction.cpp: sum
      {"mean_pool", {{{2, 16, 33}}, {{3, 100, 16}}}, integers(-15, 17), 1},  // reduction.cpp: mean, shifted by 1
      {"global_grad_norm",
       {{{1}}, {{100}}, {{1000}}, {{10000}}},
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
    .notes = {"oneDNN: shapes of matmul are those of shapes_2d; other drivers' shape files were not to be had, ours "
              "stand for "
              "them; its sdpa driver, for GPUs alone, is left out"},
    .order = 30,
});

}  // namespace
}  // namespace assay::falsify::policies
