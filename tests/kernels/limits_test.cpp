// Runs every kernel at the end of each dim of its contract: one call each, with all other dims minimal.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "falsify/engine/trial.hpp"

namespace assay::falsify {
namespace {

/// Limit on the elements of all tensors: flat vectors of 2^31 - 1 would take too much memory for a test.
constexpr double kMost = 1 << 28;

Case at_limit(const OpDescriptor& op, std::size_t dim) {
  Case c;
  for (const DimInfo& d : op.dims) c.dims.push_back(std::max<Index>(d.min, 1));
  c.dims[dim] = op.dims[dim].max;
  for (std::size_t d = 0; d < c.dims.size(); ++d)
    if (const int of = op.dims[d].multiple_of; of >= 0)
      c.dims[d] = std::max(c.dims[d], c.dims[static_cast<std::size_t>(of)]);
  make_valid(op, c.dims);
  for (const ParamInfo& p : op.params) c.params.push_back(p.choices.empty() ? p.typical : p.choices.front());
  c.layout = Layout::padded;
  c.seed = 1;
  return c;
}

/// Returns true for sums of tensor cores in software: 2^20 terms take minutes.
bool too_long(const Kernel& kernel, const OpDescriptor& op, const Case& c, std::size_t dim) {
  if (kernel.backend != Backend::cuda_host || kernel.arithmetic.inputs == Format::f32) return false;
  std::vector<Index> other = c.dims;
  other[dim] /= 2;
  return std::ranges::all_of(outputs_of(op), [&](int t) {
    const TensorInfo& info = op.tensors[static_cast<std::size_t>(t)];
    return info.shape(c.dims) == info.shape(other);
  });
}

class Limits : public testing::TestWithParam<const Kernel*> {};

TEST_P(Limits, AreComputedOrRefused) {
  const Kernel& kernel = *GetParam();
  const OpDescriptor& op = operation(kernel.op);
  Worker worker(std::chrono::minutes(2));
  for (std::size_t d = 0; d < op.dims.size(); ++d) {
    const Case c = at_limit(op, d);
    double elements = 0;
    for (const TensorInfo& t : op.tensors) elements += static_cast<double>(t.shape(c.dims).size());
    if (elements > kMost || too_long(kernel, op, c, d)) continue;
    const Outcome outcome = try_obligation(&builtin::differential, op, kernel, c, worker, Explain::no);
    const bool taken = outcome.kind == Outcome::Kind::passed && outcome.elements > 0;
    // CPU kernels must take every extent that Index holds.
    const bool refused = outcome.kind == Outcome::Kind::refused && kernel.backend != Backend::cpu;
    EXPECT_TRUE(taken || refused) << op.dims[d].name << " = " << c.dims[d] << ": "
                                  << (outcome.finding ? outcome.finding->message : outcome.reason);
    if (refused)
      std::cout << kernel.id << " at " << op.dims[d].name << " = " << c.dims[d] << ": " << outcome.reason << "\n";
  }
}

/// Of all operations if `op` is empty.
std::vector<const Kernel*> right_kernels(std::string_view op = {}) {
  std::vector<const Kernel*> list;
  for (const Kernel& k : kernels())
    if (k.role == KernelRole::kernel && (op.empty() || k.op == op)) list.push_back(&k);
  return list;
}

std::string test_name(const testing::TestParamInfo<const Kernel*>& info) {
  std::string name(info.param->id);
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == '-'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Limits, testing::ValuesIn(right_kernels()), test_name);

class Decoding : public testing::TestWithParam<const Kernel*> {};

/// Campaigns draw no matrices of models, where a block goes through several tiles of rows, several times along k.
TEST_P(Decoding, TakesManyRowsOfManySuperBlocks) {
  const Kernel& kernel = *GetParam();
  Worker worker(std::chrono::minutes(2));
  Case c = at_limit(operation(kernel.op), 1);
  c.dims = {2500, 5000};
  const Outcome outcome = try_obligation(&builtin::differential, operation(kernel.op), kernel, c, worker, Explain::no);
  EXPECT_EQ(outcome.kind, Outcome::Kind::passed) << (outcome.finding ? outcome.finding->message : outcome.reason);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Decoding, testing::ValuesIn(right_kernels("q4_k_gemv")), test_name);

}  // namespace
}  // namespace assay::falsify
