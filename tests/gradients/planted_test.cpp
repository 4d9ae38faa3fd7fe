// Backward references with one fault each: link 1 must detect and report every one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "falsify/engine/gradient_point.hpp"
#include "falsify/engine/gradients.hpp"
#include "reference/matmul.hpp"

namespace assay::falsify::planted_test {
namespace {

enum class Fault {
  none,
  zero,
  sign,
  twice,
  missing_term,
  transposed,
  one_element,
  scaled_slightly,
  scaled_by_roundings,
  not_a_number
};

/// The gradient of a in c = a · b for square a, with a fault.
template <class T, Fault fault>
void wrong_backward(std::span<const View<T>> t, std::span<const double>) {
  const View<T> a = t[0], b = t[1], dc = t[2], da = t[3];
  if (da.data() == nullptr) return;
  for (Index i = 0; i < a.dim(0); ++i)
    for (Index p = 0; p < a.dim(1); ++p) {
      Sum<T> sum;
      const Index terms = b.dim(1) - (fault == Fault::missing_term ? 1 : 0);
      for (Index j = 0; j < terms; ++j) sum += dc(i, j) * b(p, j);
      T g = sum.value();
      if constexpr (fault == Fault::zero) g = T(0);
      if constexpr (fault == Fault::sign) g = -g;
      if constexpr (fault == Fault::twice) g = g + g;
      if constexpr (fault == Fault::scaled_slightly) g = g * T(1 + 0x1p-20);
      if constexpr (fault == Fault::scaled_by_roundings) g = g * T(1 + 0x1p-40);
      if constexpr (fault == Fault::one_element) g = i == 1 && p == 2 ? g * T(1.0078125) : g;
      if constexpr (fault == Fault::not_a_number) g = i == 1 && p == 2 ? T(NAN) : g;
      if constexpr (fault == Fault::transposed) da(p, i) = g;
      else da(i, p) = g;
    }
}

template <Fault fault>
GradientReport checked(std::uint64_t seed) {
  const BackwardOracle backward{&wrong_backward<double, fault>, &wrong_backward<Bounded, fault>,
                                [](std::span<const View<Dual<Bounded>>> t, std::span<const double>) {
                                  reference::matmul<Dual<Bounded>>(t[0], t[1], t[2]);
                                }};
  GradientReport report = check_references({&operation("matmul"), 0, {4, 4, 3}, {}, seed}, oracle("matmul"), backward);
  std::vector<const Kernel*> cpu;
  for (const Kernel& k : kernels())
    if (k.backend == Backend::cpu && k.role != KernelRole::mutant) cpu.push_back(&k);
  check_kernels(report, {&operation("matmul"), 0, {4, 4, 3}, {}, seed}, backward, cpu, run_here);
  return report;
}

bool sees(const GradientReport& report, Link link) {
  const auto found = std::ranges::find(report.links, link, &LinkResult::link);
  return found != report.links.end() && found->worst > 1;
}

template <Fault fault>
void every_link_sees() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const GradientReport report = checked<fault>(seed);
    ASSERT_FALSE(report.holds());
    EXPECT_EQ(report.broken()->link, Link::dual);
    EXPECT_NE(report.broken()->detail, "");
    for (Link link :
         {Link::dual, Link::complex_step, Link::adjoint, Link::finite_difference, Link::taylor, Link::kernel})
      EXPECT_TRUE(sees(report, link)) << name(link) << ", seed " << seed;
  }
}

TEST(PlantedGradients, Right) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) EXPECT_TRUE(checked<Fault::none>(seed).holds());
}
/// da is [4, 4]: links compare every element, one direction, nine steps, or every element by every kernel.
TEST(PlantedGradients, EveryLinkComparesAllThatItShould) {
  for (const LinkResult& l : checked<Fault::none>(1).links) switch (l.link) {
      case Link::dual:
      case Link::complex_step: EXPECT_EQ(l.compared, 16); break;
      case Link::adjoint:
      case Link::finite_difference: EXPECT_EQ(l.compared, 1); break;
      case Link::taylor: EXPECT_EQ(l.compared, 9); break;
      default: EXPECT_TRUE(l.compared > 0 && l.compared % 16 == 0) << name(l.link) << ": " << l.compared;
    }
}

TEST(PlantedGradients, Zero) { every_link_sees<Fault::zero>(); }
TEST(PlantedGradients, SignFlipped) { every_link_sees<Fault::sign>(); }
TEST(PlantedGradients, Twice) { every_link_sees<Fault::twice>(); }
TEST(PlantedGradients, MissingTerm) { every_link_sees<Fault::missing_term>(); }
TEST(PlantedGradients, Transposed) { every_link_sees<Fault::transposed>(); }
TEST(PlantedGradients, OneElementOffByOnePercent) { every_link_sees<Fault::one_element>(); }
/// A factor of 1 + 2^-20 exceeds double's rounding a hundred million times.
TEST(PlantedGradients, ScaledSlightly) { every_link_sees<Fault::scaled_slightly>(); }

/// A factor of 1 + 2^-40 exceeds double's rounding thousands of times: links whose tolerance consists of roundings
/// detect it.
TEST(PlantedGradients, ScaledByThousandsOfRoundings) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const GradientReport report = checked<Fault::scaled_by_roundings>(seed);
    for (const Link link : {Link::dual, Link::complex_step, Link::adjoint})
      EXPECT_TRUE(sees(report, link)) << name(link) << ", seed " << seed;
  }
}

/// A backward reference without an error of its own may still differ by the roundings of the forward reference.
TEST(PlantedGradients, TheForwardReferenceMayRoundToo) {
  const BackwardOracle backward{&wrong_backward<double, Fault::none>,
                                [](std::span<const View<Bounded>> t, std::span<const double> params) {
                                  wrong_backward<Bounded, Fault::none>(t, params);
                                  for (Index i = 0; i < t[3].size(); ++i)
                                    t[3].data()[i] = exactly<Bounded>(t[3].data()[i].value);
                                },
                                backward_oracle("matmul").bounded_dual};
  BackwardOracle last_bit = backward;
  last_bit.exact = [](std::span<const View<double>> t, std::span<const double> params) {
    wrong_backward<double, Fault::none>(t, params);
    for (Index i = 0; t[3].data() != nullptr && i < t[3].size(); ++i)
      t[3].data()[i] = std::nextafter(t[3].data()[i], INFINITY);
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const GradientReport report =
        check_references({&operation("matmul"), 0, {4, 4, 3}, {}, seed}, oracle("matmul"), last_bit);
    for (const Link link : {Link::dual, Link::complex_step}) {
      const auto& result = *std::ranges::find(report.links, link, &LinkResult::link);
      EXPECT_GT(result.worst, 0) << name(link);
      EXPECT_LE(result.worst, 1) << result.detail;
    }
  }
}

/// Differences use the double reference: if only that is wrong, no other reference's bound hides it.
TEST(PlantedGradients, DifferencesAreOfTheDoubleReference) {
  Oracle wrong = oracle("matmul");
  wrong.exact = [](std::span<const View<double>> t, std::span<const double>) {
    reference::matmul<double>(t[0], t[1], t[2]);
    for (Index i = 0; i < t[2].size(); ++i) t[2].data()[i] *= 1 + 0x1p-10;
  };
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const GradientReport report =
        check_references({&operation("matmul"), 0, {4, 4, 3}, {}, seed}, wrong, backward_oracle("matmul"));
    EXPECT_TRUE(sees(report, Link::finite_difference)) << seed;
    EXPECT_TRUE(sees(report, Link::taylor)) << seed;
    EXPECT_FALSE(sees(report, Link::dual)) << seed;
  }
}

TEST(PlantedGradients, NotANumber) {
  const GradientReport report = checked<Fault::not_a_number>(1);
  for (const Link link : {Link::dual, Link::complex_step, Link::adjoint, Link::finite_difference})
    EXPECT_TRUE(sees(report, link));
}

/// A correct reference and a wrong kernel: only link 3 reports.
TEST(PlantedGradients, WrongKernel) {
  const GradientCase c{&operation("matmul"), 0, {4, 4, 3}, {}, 5};
  GradientReport report = check_references(c, oracle("matmul"), backward_oracle("matmul"));
  ASSERT_TRUE(report.holds());
  const Kernel* const one = kernels_of("matmul_nt").at(0);
  check_kernels(report, c, backward_oracle("matmul"), std::span(&one, 1),
                [](const Kernel& kernel, const Problem& problem) {
                  std::vector<std::vector<float>> result = run_here(kernel, problem);
                  result[0][3] *= 1.001f;
                  return result;
                });
  ASSERT_FALSE(report.holds());
  EXPECT_EQ(report.broken()->link, Link::kernel);
  EXPECT_NE(report.broken()->detail.find(one->id), std::string::npos);
}

}  // namespace
}  // namespace assay::falsify::planted_test
