// Every gradient of every contract, by every link; and the gradients that contracts do not compose from calls.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "falsify/engine/case.hpp"
#include "falsify/engine/gradients.hpp"
#include "reference/gemv.hpp"
#include "reference/tensor_layout.hpp"

namespace assay::falsify::chain_test {
namespace {

std::string told(const GradientReport& report) {
  std::string text = fmt::format("{}: gradient of {}", report.op, report.input);
  for (const LinkResult& l : report.links)
    text += fmt::format("\n  {}: worst {:.3g} of {} compared; {}", name(l.link), l.worst, l.compared, l.detail);
  return text;
}

/// Returns extents that expose every transposition, and extents with a side of 1, or the contract's minimum.
std::vector<std::vector<Index>> dims_of(const OpDescriptor& op) {
  std::vector<std::vector<Index>> all;
  for (const auto& extents :
       {std::vector<Index>{3, 4, 5, 2, 4, 3}, {1, 6, 2, 3, 1, 2}, {5, 1, 3, 1, 1, 4}, {7, 9, 1, 4, 1, 1}}) {
    all.emplace_back(extents.begin(), extents.begin() + static_cast<Index>(op.dims.size()));
    make_valid(op, all.back());
  }
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
          EXPECT_EQ(report.links.size(), gradient.by.empty() ? 5u : 7u);
          for (const LinkResult& l : report.links)
            worst[static_cast<std::size_t>(l.link)] = std::max(worst[static_cast<std::size_t>(l.link)], l.worst);
          ++checked;
        }
  EXPECT_GE(checked, 7 * 12);
  for (std::size_t l = 0; l < worst.size(); ++l)
    fmt::print("{:>18}: largest difference / tolerance {:.3f}\n", name(static_cast<Link>(l)), worst[l]);
}

TEST(Gradients, NothingComparedIsNoPass) {
  const GradientReport report = check_gradient("matmul", "a", 1, {0, 3, 4});
  EXPECT_FALSE(report.holds());
}

}  // namespace
}  // namespace assay::falsify::chain_test
