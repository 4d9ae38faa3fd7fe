// Records how far the first and the last element of each output can be moved before the postconditions refuse it: this
// detects a changed bound, and a loop that ends too early. RecordedTest.Refusals moves the middle element.
#include <gtest/gtest.h>

#include <cmath>

#include "by_reference.hpp"
#include "recorded.hpp"

namespace assay::falsify::recorded {
namespace {

constexpr int kSteps = 64;  // per factor of two
constexpr int kLeast = -31, kMost = 12;
double size_of_step(int step) { return std::exp2(kLeast + static_cast<double>(step) / kSteps); }

bool refused(const OpDescriptor& op, const Drawn& d, const Off* off) {
  Kernel kernel = reference_kernel(op, "margins", off);
  kernel.arithmetic = d.arithmetic, kernel.storage = d.storage;
  return refusal(kernel, d.problem).has_value();
}

/// Returns the smallest refused move, relative to the output's largest element; 0 if the unmoved result is refused,
/// null if no move is.
json margin(const OpDescriptor& op, const Drawn& d, std::size_t output, Element element) {
  const auto refused_by = [&](double relative) {
    const Off off{output, relative, element};
    return refused(op, d, &off);
  };
  if (refused(op, d, nullptr)) return 0;
  // integers move by 1
  if (!is_floating(op.tensors[static_cast<std::size_t>(outputs_of(op)[output])].dtype))
    return refused_by(0) ? json(1) : json(nullptr);
  int accepted = 0, beyond = (kMost - kLeast) * kSteps;
  if (!refused_by(size_of_step(beyond))) return nullptr;
  while (beyond - accepted > 1) {
    const int middle = (accepted + beyond) / 2;
    (refused_by(size_of_step(middle)) ? beyond : accepted) = middle;
  }
  return number(size_of_step(beyond));
}

json margins(const OpDescriptor& op) {
  contract::set_level(contract::Level::full);
  json all = json::array();
  for (const Drawn& d : drawn(op))
    for (std::size_t o = 0; o < outputs_of(op).size(); ++o)
      all.push_back({d.obligation->info->id, o, margin(op, d, o, Element::first), margin(op, d, o, Element::last)});
  return all;
}

class Margins : public testing::TestWithParam<const OpDescriptor*> {};

TEST_P(Margins, AreAsRecorded) {
  expect_recorded(*GetParam(), "margins", &margins, size_of_step(1) / size_of_step(0) - 1);
}

INSTANTIATE_TEST_SUITE_P(Of, Margins, testing::ValuesIn(operations().begin(), operations().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace assay::falsify::recorded
