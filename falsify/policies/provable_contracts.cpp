// The falsification tests of provable-contracts: properties on small random vectors, and the kernel within a few units
// in the last place of scalar code. paiml/provable-contracts 0c81eba7,
// crates/provable-contracts/tests/includes/falsify_*.rs and tests/common/mod.rs; proptest's default of 256 cases a
// property. Its generator writes only stubs of these tests from a contract (tests/probar_test_generation.rs).
//
// The project tests the properties on the scalar functions, and only compares AVX2 functions with these. Here the
// kernel must pass both.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>

#include "falsify/policies/fill.hpp"

namespace assay::falsify::policies::provable_contracts_policy {
namespace {

constexpr int kCases = 256;

using Property = std::function<bool(Caller& caller, const Problem& problem, const Outputs& got)>;

/// max_ulp_distance: difference of the bits as integers, so that numbers of different sign are far apart; NaN is
/// farthest.
std::uint32_t ulp_distance(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return UINT32_MAX;
  const auto difference = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(a) - std::bit_cast<std::uint32_t>(b));
  return difference < 0 ? 0U - static_cast<std::uint32_t>(difference) : static_cast<std::uint32_t>(difference);
}

/// "SIMD equivalence": the first output against scalar float32 code.
Property within_ulp(std::uint32_t limit) {
  return [limit](Caller&, const Problem& problem, const Outputs& got) {
    const std::vector<float> want = expected(problem, Reference::mirror)[0];
    for (std::size_t i = 0; i < want.size(); ++i)
      if (ulp_distance(got[0][i], want[i]) > limit) return false;
    return true;
  };
}

/// Every element of the first output satisfies `holds`.
Property each(const std::function<bool(float)>& holds) {
  return [holds](Caller&, const Problem&, const Outputs& got) { return std::ranges::all_of(got[0], holds); };
}
bool finite(float x) { return std::isfinite(x); }

double norm(const std::vector<float>& x) {
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}
double distance(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return norm(a);
}

/// One property as a rule: samples of drawn sizes, inputs within a range.
Rule property(std::string_view op, std::string_view id, const std::function<Sample(Random&)>& draw, Fill fill,
              const Property& holds) {
  Rule rule{.op = op, .samples = {}, .fill = std::move(fill)};
  Random random(derive(1, id));
  for (int i = 0; i < kCases; ++i) rule.samples.push_back(draw(random));
  rule.compared = false;
  rule.check = [id, holds](Caller& caller, const Problem& problem, const Outputs& got) -> Rejection {
    return holds(caller, problem, got) ? std::nullopt : Rejection(std::string(id));
  };
  return rule;
}

Sample vector_of(Index least, Random& random) { return {{1, random.between(least, 32)}}; }
Sample from_four(Random& random) { return vector_of(4, random); }
Sample from_two(Random& random) { return vector_of(2, random); }
std::function<Sample(Random&)> from_four_with(double eps) {
  return [eps](Random& random) { return Sample{{1, random.between(4, 32)}, {eps}}; };
}

Fill unit_weights(double low, double high) {
  return then(uniform(low, high), "weight", [](Random&, std::size_t) { return 1.0F; });
}
Fill constant(float value) {
  return then(uniform(-1, 1), "x", [value](Random&, std::size_t) { return value; });
}
Fill sorted(double low, double high) {
  return [low, high](Problem& problem, Random& random) {
    uniform(low, high)(problem, random);
    std::ranges::sort(problem.values[0]);
  };
}

bool distribution(Caller&, const Problem&, const Outputs& got) {  // assert_probability_distribution, 1e-5
  float sum = 0;
  for (float x : got[0]) sum += x;
  return std::fabs(sum - 1) < 1e-5F && std::ranges::all_of(got[0], [](float x) { return x >= 0; });
}
bool ordered(Caller&, const Problem& problem, const Outputs& got) {
  const std::vector<float>& x = problem.values[0];
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j)
      if (x[i] > x[j] && !(got[0][i] >= got[0][j])) return false;
  return true;
}
bool uniform_output(Caller&, const Problem&, const Outputs& got) {
  const float want = 1 / static_cast<float>(got[0].size());
  return std::ranges::all_of(got[0], [&](float x) { return std::fabs(x - want) < 1e-6F; });
}

bool scale_invariant(Caller& caller, const Problem& problem, const Outputs& got) {
  Problem scaled = problem;
  Random random(derive(static_cast<std::uint64_t>(problem.dims[1]), "alpha"));
  const auto alpha = static_cast<float>(0.1 + 9.9 * random.uniform());
  for (float& x : scaled.values[0]) x *= alpha;
  return distance(caller.run(scaled)[0], got[0]) < 1e-3;
}
bool unit_rms(Caller&, const Problem&, const Outputs& got) {
  return std::fabs(norm(got[0]) / std::sqrt(static_cast<double>(got[0].size())) - 1) < 1e-3;
}

bool gated(Caller&, const Problem& problem, const Outputs& got) {
  for (std::size_t i = 0; i < got[0].size(); ++i) {
    const float g = problem.values[0][i], want = g * (1 / (1 + std::exp(-g))) * problem.values[1][i];
    if (!(std::fabs(got[0][i] - want) < 1e-4F)) return false;
  }
  return true;
}

Fill eight_gates() {
  const auto gate = [](Random&, std::size_t i) { return std::array<float, 8>{-3, -1, 0, 0.5F, 1, 2, 5, 10}[i % 8]; };
  return then(then(uniform(-1, 1), "gate", gate), "up", [](Random&, std::size_t) { return 1.0F; });
}
/// SG-005: with a factor of 1 the result is silu's.
bool as_silu(Caller&, const Problem& problem, const Outputs& got) {
  for (std::size_t i = 0; i < got[0].size(); ++i) {
    const float g = problem.values[0][i];
    if (!(std::fabs(got[0][i] - g * (1 / (1 + std::exp(-g)))) < 1e-6F)) return false;
  }
  return true;
}

/// Losses of one sample: cross_entropy's outputs are loss, total, logsumexp, normalizer.
bool near_nll(Caller&, const Problem& problem, const Outputs& got) {
  const float want = expected(problem, Reference::mirror)[0][0];
  return std::fabs(got[0][0] - want) < 1e-5F && std::fabs(got[0][0] - want) / std::max(std::fabs(want), 1e-8F) < 1e-5F;
}

Sample one_head(Random& random) {
  const Index half = random.between(1, 16);
  return {{1, 1, 2 * half}, {10000, 1, 1}};
}
Fill below_position(Index position, double low, double high) {
  return then(uniform(low, high), "positions",
              [position](Random& random, std::size_t) { return static_cast<float>(random.between(0, position - 1)); });
}
bool keeps_norm(Caller&, const Problem& problem, const Outputs& got) {
  return std::fabs(norm(problem.values[0]) - norm(got[0])) < 1e-3;
}
bool encodes_position(Caller& caller, const Problem& problem, const Outputs& got) {
  Problem later = problem;
  later.values[1][0] += 500;
  const std::vector<float> other = caller.run(later)[0];
  for (std::size_t i = 0; i < other.size(); ++i)
    if (std::fabs(other[i] - got[0][i]) > 1e-7F) return true;
  return false;
}

Sample small_product(Random& random) { return {{random.between(1, 4), random.between(1, 4), random.between(1, 4)}}; }
bool linear_in_b(Caller& caller, const Problem& problem, const Outputs& got) {
  Problem scaled = problem;
  Random random(derive(static_cast<std::uint64_t>(std::fabs(problem.values[0][0]) * 1e6F), "alpha"));
  const auto alpha = static_cast<float>(6 * random.uniform() - 3);
  for (float& x : scaled.values[1]) x *= alpha;
  std::vector<float> want = got[0];
  for (float& x : want) x *= alpha;
  return distance(caller.run(scaled)[0], want) < 1e-3;
}
bool associative(Caller& caller, const Problem& problem, const Outputs& got) {
  Problem call = problem;  // a b and a third factor, all 2 x 2: (a b) a against a (b a)
  call.values[0] = got[0], call.values[1] = problem.values[0];
  const std::vector<float> left = caller.run(call)[0];
  call.values[0] = problem.values[1];
  const std::vector<float> inner = caller.run(call)[0];
  call.values[0] = problem.values[0], call.values[1] = inner;
  return distance(left, caller.run(call)[0]) < 1e-3;
}
Fill identity() {
  return [](Problem& problem, Random&) {
    const auto n = static_cast<std::size_t>(problem.dims[0]);
    for (std::size_t i = 0; i < n * n; ++i) {
      problem.values[0][i] = static_cast<float>(i) * 0.7F - 1.5F;
      problem.values[1][i] = i % (n + 1) == 0 ? 1.0F : 0.0F;
    }
  };
}

std::function<Sample(Random&)> attention_up_to(Index most) {
  return [most](Random& random) {
    const Index d = random.between(2, most);
    return Sample{{1, random.between(2, most), random.between(2, most), 1, 1, d},
                  {1 / std::sqrt(static_cast<double>(d)), 0}};
  };
}
Sample grouped_attention(Random& random) {
  const Index s = random.between(2, 3), d = random.between(2, 3);
  return {{1, s, s, 1, 2, d}, {1 / std::sqrt(static_cast<double>(d)), 0}};
}
bool convex(Caller&, const Problem& problem, const Outputs& got) {
  const auto [low, high] = std::ranges::minmax(problem.values[2]);
  return std::ranges::all_of(got[0],
                             [low = low, high = high](float x) { return x >= low - 1e-5F && x <= high + 1e-5F; });
}
/// ATT-001: each column lies within the range of its values.
bool convex_columns(Caller&, const Problem& problem, const Outputs& got) {
  const std::vector<float>& v = problem.values[2];
  const auto d = static_cast<std::size_t>(problem.dims[5]);
  for (std::size_t i = 0; i < got[0].size(); ++i) {
    float low = v[i % d], high = low;
    for (std::size_t j = i % d; j < v.size(); j += d) low = std::min(low, v[j]), high = std::max(high, v[j]);
    if (!(got[0][i] >= low - 1e-5F && got[0][i] <= high + 1e-5F)) return false;
  }
  return true;
}
/// ATT-005: finite, and no larger than the largest value times the number of queries.
bool bounded(Caller&, const Problem& problem, const Outputs& got) {
  float largest = 0;
  for (float x : problem.values[2]) largest = std::max(largest, std::fabs(x));
  const float most = largest * static_cast<float>(problem.dims[1]) + 1e-5F;
  return std::ranges::all_of(got[0], [most](float x) { return std::isfinite(x) && std::fabs(x) <= most; });
}
bool near_standard(Caller&, const Problem& problem, const Outputs& got) {  // FA-001
  return distance(got[0], expected(problem, Reference::mirror)[0]) < 1e-4;
}

/// adamw_step's outputs are p, m, v; its first step from zero moments.
Fill first_step(double gradient) {
  return then(then(then(uniform(-5, 5), "m", [](Random&, std::size_t) { return 0.0F; }), "v",
                   [](Random&, std::size_t) { return 0.0F; }),
              "g", [gradient](Random& random, std::size_t) {
                return static_cast<float>(gradient * (2 * random.uniform() - 1));
              });
}
Sample parameters(Random& random) { return {{random.between(4, 16), 0}, {1e-3, 0.9, 0.999, 1e-8, 0.01, 1}}; }
bool decays(Caller&, const Problem& problem, const Outputs& got) {  // AW-001, AW-006
  for (std::size_t i = 0; i < got[0].size(); ++i) {
    const float before = problem.values[0][i];
    if (!(std::fabs(got[0][i] - before * (1 - 0.001F * 0.01F)) < 1e-6F) ||
        std::fabs(got[0][i]) > std::fabs(before) + 1e-7F)
      return false;
  }
  return true;
}
bool moments_move(Caller&, const Problem& problem, const Outputs& got) {  // AW-002, AW-004
  for (std::size_t i = 0; i < got[1].size(); ++i)
    if (!(std::fabs(got[1][i]) > 1e-10F) && std::fabs(problem.values[3][i]) > 1e-3F) return false;
  return std::ranges::all_of(got[1], finite) &&
         std::ranges::all_of(got[2], [](float v) { return finite(v) && v >= 0; });
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all{
      property("softmax", "SM-001 sums to 1", from_four, uniform(-1000, 1000), distribution),
      property("softmax", "SM-002 positive", from_four, uniform(-20, 20), each([](float x) { return x > 0; })),
      property("softmax", "SM-003 order", from_four, uniform(-50, 50), ordered),
      property("softmax", "SM-004 8 ULP", from_four, uniform(-100, 100), within_ulp(8)),
      property(
          "softmax", "SM-005 one element",
          [](Random&) {
            return Sample{{1, 1}};
          },
          uniform(-1000, 1000), each([](float x) { return std::fabs(x - 1) < 1e-7F; })),
      property("softmax", "SM-006 equal elements", from_two, constant(42), uniform_output),
      property("rmsnorm", "RN-001 finite", from_four_with(1e-5), unit_weights(-100, 100), each(finite)),
      property("rmsnorm", "RN-002 scale", from_four_with(1e-8), unit_weights(0.1, 10), scale_invariant),
      property("rmsnorm", "RN-003 8 ULP", from_four_with(1e-5), unit_weights(-10, 10), within_ulp(8)),
      property("rmsnorm", "RN-004 zeros", from_four_with(1e-5), constant(0),
               each([](float x) { return std::fabs(x) < 1e-2F; })),
      property("rmsnorm", "RN-005 RMS", from_four_with(1e-8), unit_weights(0.1, 10), unit_rms),
      property("silu", "SI-001 zero", from_two, constant(0), each([](float x) { return std::fabs(x) < 1e-7F; })),
      property("silu", "SI-002 bound", from_two, uniform(-10, 10), each([](float x) { return x >= -0.279F; })),
      property("silu", "SI-003 monotone", from_two, sorted(1, 10),
               [](Caller&, const Problem&, const Outputs& got) { return std::ranges::is_sorted(got[0]); }),
      property("silu", "SI-004 asymptote", from_two, uniform(10, 100),
               [](Caller&, const Problem& problem, const Outputs& got) {
                 for (std::size_t i = 0; i < got[0].size(); ++i)
                   if (!(std::fabs(got[0][i] / problem.values[0][i] - 1) < 0.01F)) return false;
                 return true;
               }),
      property("silu", "SI-005 4 ULP", from_two, uniform(-10, 10), within_ulp(4)),
      property("silu_mul", "SG-001 zero gate", from_two,
               then(uniform(-100, 100), "gate", [](Random&, std::size_t) { return 0.0F; }),
               each([](float x) { return x == 0; })),
      property("silu_mul", "SG-002 formula", from_two, uniform(-10, 10), gated),
      property("silu_mul", "SG-003 SG-006 finite", from_two, uniform(-10, 10), each(finite)),
      property(
          "silu_mul", "SG-005 a factor of 1",
          [](Random&) {
            return Sample{{1, 8}};
          },
          eight_gates(), as_silu),
      property("silu_mul", "SG-004 8 ULP", from_two, uniform(-10, 10), within_ulp(8)),
      property(
          "cross_entropy", "CE-001 not negative",
          [](Random& random) {
            return Sample{{1, random.between(2, 32)}, {1}};
          },
          then(uniform(-10, 10), "weights", [](Random&, std::size_t) { return 1.0F; }),
          [](Caller&, const Problem&, const Outputs& got) { return got[0][0] >= -1e-6F; }),
      property(
          "cross_entropy", "CE-004 CE-005 NLL",
          [](Random& random) {
            return Sample{{1, random.between(2, 32)}, {1}};
          },
          then(uniform(-10, 10), "weights", [](Random&, std::size_t) { return 1.0F; }), near_nll),
      property("rope", "RP-001 norm", one_head, below_position(1000, -10, 10), keeps_norm),
      property("rope", "RP-002 position", one_head, below_position(500, 1, 10), encodes_position),
      property("rope", "RP-003 finite", one_head, below_position(10000, -10, 10), each(finite)),
      property("rope", "RP-004 4 ULP", one_head, below_position(1000, -10, 10), within_ulp(4)),
      property(
          "matmul", "MM-002 associative",
          [](Random&) {
            return Sample{{2, 2, 2}};
          },
          uniform(-2, 2), associative),
      property("matmul", "MM-003 linear", small_product, uniform(-3, 3), linear_in_b),
      property("matmul", "MM-004 4 ULP", small_product, uniform(-5, 5), within_ulp(4)),
      property(
          "matmul", "MM-005 identity",
          [](Random& random) {
            const Index n = random.between(1, 5);
            return Sample{{n, n, n}};
          },
          identity(), within_ulp(0)),
      property("attention", "ATT-001 columns", attention_up_to(4), uniform(-3, 3), convex_columns),
      property("attention", "ATT-002 convex", attention_up_to(4), uniform(-5, 5), convex),
      property("attention", "ATT-004 8 ULP", attention_up_to(3), uniform(-3, 3), within_ulp(8)),
      property("attention", "ATT-005 bounded", attention_up_to(4), uniform(-5, 5), bounded),
      property("attention", "GQ-001 convex", grouped_attention, uniform(-3, 3), convex),
      property("attention", "GQ-006 values of 1", grouped_attention,
               then(uniform(-3, 3), "v", [](Random&, std::size_t) { return 1.0F; }),
               each([](float x) { return std::fabs(x - 1) < 1e-5F; })),
      property("attention", "FA-001 standard", attention_up_to(4), uniform(-3, 3), near_standard),
      property("adamw_step", "AW-001 decay", parameters, first_step(0), decays),
      property("adamw_step", "AW-002 moments", parameters, first_step(5), moments_move),
      property("adamw_step", "AW-003 8 ULP", parameters, first_step(5), within_ulp(8)),
      property("adamw_step", "AW-005 finite", parameters, first_step(5), each(finite)),
  };
  return all;
}

const PolicyRegistration registration({
    .name = "provable-contracts",
    .source = "paiml/provable-contracts 0c81eba7, crates/provable-contracts/tests/includes/falsify_*.rs",
    .rules = rules,
    .reference = Reference::mirror,  // its scalar functions
    .float32_only = true,
    .notes =
        {"provable-contracts: the kernel takes the place of its scalar and of its AVX2 functions; outputs start from "
         "zeros, as its vectors do; its bounds in units in the last place hold where a sum cancels too, so that "
         "they reject right kernels that fuse or reorder"},
    .order = 50,
});

}  // namespace
}  // namespace assay::falsify::policies::provable_contracts_policy
