// Plants a fault in the results of every backward reference, for every gradient of every contract: the links that
// compare references detect zero, a flipped sign, a factor of two, a missing term and a transposed gradient.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "falsify/engine/case.hpp"
#include "falsify/engine/gradient_point.hpp"

namespace assay::falsify::planted_everywhere_test {
namespace {

enum class Fault { zero, sign, twice, missing_term, transposed };
constexpr Fault kFaults[] = {Fault::zero, Fault::sign, Fault::twice, Fault::missing_term, Fault::transposed};
constexpr std::string_view kNames[] = {"zero", "sign flipped", "factor 2", "missing term", "transposed"};

/// The planted fault and its place, in a global: references are plain functions without another channel.
struct Plan {
  BackwardOracle right;
  Fault fault = Fault::zero;
  std::size_t upstream = 0, gradient = 0;  ///< positions among the backward reference's tensors: of one upstream
                                           ///< gradient, and of the input's
  std::size_t term = 0;                    ///< omitted element of the upstream gradient
};
Plan plan;

template <class T>
ReferenceFn<T> right_one() {
  if constexpr (std::is_same_v<T, double>) return plan.right.exact;
  else return plan.right.bounded;
}

template <class T>
void planted(std::span<const View<T>> tensors, std::span<const double> params) {
  if (plan.fault == Fault::missing_term) {
    std::vector<View<T>> views(tensors.begin(), tensors.end());
    const View<T>& upstream = tensors[plan.upstream];
    std::vector<T> short_of(upstream.data(), upstream.data() + upstream.size());
    if (plan.term < short_of.size()) short_of[plan.term] = T(0);
    views[plan.upstream] = {short_of.data(), upstream.shape()};
    right_one<T>()(views, params);
    return;
  }
  right_one<T>()(tensors, params);
  const View<T>& gradient = tensors[plan.gradient];
  if (gradient.data() == nullptr) return;
  const std::vector<T> g(gradient.data(), gradient.data() + gradient.size());
  const auto size = g.size();
  const auto rows = static_cast<std::size_t>(gradient.rank() > 1 ? gradient.dim(0) : 1),
             columns = rows > 0 ? size / rows : 0;
  for (std::size_t e = 0; e < size; ++e) {
    T& to = gradient.data()[e];
    if (plan.fault == Fault::zero) to = T(0);
    if (plan.fault == Fault::sign) to = -g[e];
    if (plan.fault == Fault::twice) to = g[e] + g[e];
    // Exchange elements (i, j) and (j, i) of a matrix; reverse a vector.
    if (plan.fault == Fault::transposed)
      to = rows > 1 && columns > 1 ? g[e % rows * columns + e / rows] : g[size - 1 - e];
  }
}

/// Returns true if the fault changes the gradient by far more than roundings.
bool changes_something(const GradientPoint& at, const Oracle& oracle) {
  const BackwardOracle wrong{&planted<double>, &planted<Bounded>, plan.right.bounded_dual};
  const auto before = at.gradient<double>(oracle.exact, plan.right.exact, at.x, at.w);
  const auto after = at.gradient<double>(oracle.exact, wrong.exact, at.x, at.w);
  double difference = 0, size = 0;
  for (std::size_t e = 0; e < before.size(); ++e) {
    difference = std::max(difference, std::fabs(before[e] - after[e]));
    size = std::max(size, std::fabs(before[e]));
  }
  return difference > 1e-3 * size && size > 0;
}

/// Sets the plan for a fault at this point; returns false if it would change nothing.
bool plant(Fault fault, const GradientPoint& at, const Oracle& oracle) {
  plan.fault = fault;
  plan.gradient = at.inputs.size() + at.saved.size() + at.outputs.size();
  for (int t : differentiable(*at.c.op)) {
    if (t == at.c.input) break;
    ++plan.gradient;
  }
  if (fault != Fault::missing_term) return changes_something(at, oracle);
  for (std::size_t o = 0; o < at.outputs.size(); ++o) {
    plan.upstream = at.inputs.size() + at.saved.size() + o;
    for (plan.term = 0; plan.term < std::min<std::size_t>(at.w[o].size(), 40); ++plan.term)
      if (changes_something(at, oracle)) return true;
  }
  return false;
}

bool sees(const GradientReport& report, Link link) {
  const auto found = std::ranges::find(report.links, link, &LinkResult::link);
  return found != report.links.end() && found->worst > 1;
}

TEST(PlantedEverywhere, EveryFaultIsSeenForEveryGradient) {
  int gradients = 0, planted_faults = 0;
  for (const OpDescriptor* op : operations())
    for (const GradientInfo& gradient : op->gradients) {
      ++gradients;
      const std::string_view input = op->tensors[static_cast<std::size_t>(gradient.input)].name;
      for (Fault fault : kFaults) {
        bool tried = false;
        for (std::uint64_t seed = 1; seed <= 20 && !tried; ++seed) {
          const GradientCase c = draw_gradient_case(*op, gradient.input, seed);
          const GradientPoint at(c);
          plan = {backward_oracle(op->name)};
          if (!plant(fault, at, oracle(op->name))) continue;
          tried = true;
          const BackwardOracle wrong{&planted<double>, &planted<Bounded>, plan.right.bounded_dual};
          const GradientReport report = check_references(c, oracle(op->name), wrong);
          const std::string where =
              fmt::format("{}, gradient of {}: {}", op->name, input, kNames[static_cast<int>(fault)]);
          ASSERT_FALSE(report.holds()) << where;
          for (Link link : {Link::dual, Link::complex_step, Link::adjoint, Link::finite_difference})
            EXPECT_TRUE(sees(report, link)) << where << ", link " << name(link);
          ++planted_faults;
        }
        EXPECT_TRUE(tried) << op->name << ", gradient of " << input << ": no point where '"
                           << kNames[static_cast<int>(fault)] << "' changes anything";
      }
    }
  fmt::print("{} gradients, {} faults planted and seen\n", gradients, planted_faults);
  EXPECT_GE(gradients, 30);
}

}  // namespace
}  // namespace assay::falsify::planted_everywhere_test
