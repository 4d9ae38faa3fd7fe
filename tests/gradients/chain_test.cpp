// Every gradient of every contract, by every link; and the gradients that no contract composes from a call.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "falsify/engine/gradients.hpp"
#include "reference/gemv.hpp"
#include "reference/tensor_layout.hpp"

namespace assay::falsify {
namespace {

std::string told(const GradientReport& report) {
  std::string text = fmt::format("{}: gradient of {}", report.op, report.input);
  for (const LinkResult& l : report.links)
    text += fmt::format("\n  {}: worst {:.3g} of {} compared; {}", name(l.link), l.worst, l.compared, l.detail);
  return text;
}

/// Extents that show every transposition, and those where a side is 1.
std::vector<std::vector<Index>> dims_of(const OpDescriptor& op) {
  std::vector<std::vector<Index>> all;
  for (const auto& extents : {std::vector<Index>{3, 4, 5}, {1, 6, 2}, {5, 1, 3}, {7, 9, 1}})
    all.emplace_back(extents.begin(), extents.begin() + static_cast<Index>(op.dims.size()));
  return all;
}

TEST(Gradients, EveryContractHoldsByEveryLink) {
  std::vector<double> worst(7);
  int checked = 0;
  for (const OpDescriptor* op : operations())
    for (const GradientInfo& gradient : op->gradients)
      for (const auto& dims : dims_of(*op))
        for (std::uint64_t seed : {1, 2, 3}) {
          const std::string_view input = op->tensors[static_cast<std::size_t>(gradient.input)].name;
          const GradientReport report = check_gradient(op->name, input, seed, dims);
          EXPECT_TRUE(report.holds()) << told(report);
          EXPECT_EQ(report.links.size(), 7u);
          for (const LinkResult& l : report.links)
            worst[static_cast<std::size_t>(l.link)] = std::max(worst[static_cast<std::size_t>(l.link)], l.worst);
          ++checked;
        }
  EXPECT_GE(checked, 7 * 12);
  for (std::size_t l = 0; l < worst.size(); ++l)
    fmt::print("{:>18}: largest difference / tolerance {:.3f}\n", name(static_cast<Link>(l)), worst[l]);
}

TEST(Gradients, ReferencesThatNoContractComposesHold) {
  const BackwardOracle gemv{[](std::span<const View<double>> t, std::span<const double>) {
                              reference::gemv_backward<double>(t[0], t[1], t[2], t[3], t[4]);
                            },
                            [](std::span<const View<Bounded>> t, std::span<const double>) {
                              reference::gemv_backward<Bounded>(t[0], t[1], t[2], t[3], t[4]);
                            },
                            [](std::span<const View<Dual<Bounded>>> t, std::span<const double>) {
                              reference::gemv<Dual<Bounded>>(t[0], t[1], t[2]);
                            }};
  const BackwardOracle layout{[](std::span<const View<double>> t, std::span<const double>) {
                                reference::tensor_layout_backward<double>(t[0], t[1], t[2]);
                              },
                              [](std::span<const View<Bounded>> t, std::span<const double>) {
                                reference::tensor_layout_backward<Bounded>(t[0], t[1], t[2]);
                              },
                              [](std::span<const View<Dual<Bounded>>> t, std::span<const double>) {
                                reference::tensor_layout<Dual<Bounded>>(t[0], t[1]);
                              }};
  for (std::uint64_t seed : {1, 2, 3}) {
    for (int input : {0, 1}) {
      const GradientReport report =
          check_references({&operation("gemv"), input, {4, 6}, {}, seed}, oracle("gemv"), gemv);
      EXPECT_TRUE(report.holds()) << told(report);
    }
    const GradientReport report =
        check_references({&operation("tensor_layout"), 0, {4, 6}, {}, seed}, oracle("tensor_layout"), layout);
    EXPECT_TRUE(report.holds()) << told(report);
  }
}

TEST(Gradients, NothingComparedIsNoPass) {
  const GradientReport report = check_gradient("matmul", "a", 1, {0, 3, 4});
  EXPECT_FALSE(report.holds());
}

}  // namespace
}  // namespace assay::falsify
