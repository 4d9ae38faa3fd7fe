// The machinery behind the generated negative tests detects each way in which a contract can fail to stop a call.
#include "falsify/engine/negative.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/errors.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify::negative_test {
namespace {

const OpDescriptor& honest() { return operation("matmul"); }
constexpr Violation kLongerA{Violation::Kind::shape, 0, -1, [](std::span<const Index>) { return Shape{2, 4}; }, 0};

OpDescriptor with(void (*checked)(const Call&, const Kernel&, Device&)) {
  OpDescriptor op = honest();
  op.checked = checked;
  return op;
}
bool is_broken(const Call& call) { return call.tensors[0].shape == Shape{2, 4}; }
ContractViolation violation(const char* clause) {
  return {"matmul", ContractViolation::Kind::precondition, clause, "a.len() == m * k", "a.len() = 8, m*k = 6"};
}

TEST(Negative, HonestContractHasNoFault) { EXPECT_EQ(broken_call_fault(honest(), "MM-PRE-001", kLongerA), ""); }

TEST(Negative, ClauseThatIsAlwaysFalse) {
  const OpDescriptor op = with([](const Call&, const Kernel&, Device&) { throw violation("MM-PRE-001"); });
  EXPECT_EQ(broken_call_fault(op, "MM-PRE-001", kLongerA).find("a valid call is refused: "), 0u);
}

TEST(Negative, ContractThatNeverCallsTheKernel) {
  const OpDescriptor op = with([](const Call&, const Kernel&, Device&) {});
  EXPECT_EQ(broken_call_fault(op, "MM-PRE-001", kLongerA), "a valid call does not reach the kernel");
}

TEST(Negative, ClauseThatIsAlwaysTrue) {
  const OpDescriptor op =
      with([](const Call& call, const Kernel& kernel, Device& device) { kernel.run(call, device); });
  EXPECT_EQ(broken_call_fault(op, "MM-PRE-001", kLongerA), "the call that breaks MM-PRE-001 is accepted");
}

TEST(Negative, WrongClause) {
  EXPECT_EQ(broken_call_fault(honest(), "MM-PRE-002", kLongerA)
                .find("the call that breaks MM-PRE-002 is stopped by another clause: "),
            0u);
}

TEST(Negative, KernelThatRunsFirst) {
  const OpDescriptor op = with([](const Call& call, const Kernel& kernel, Device& device) {
    kernel.run(call, device);
    if (is_broken(call)) throw violation("MM-PRE-001");
  });
  EXPECT_EQ(broken_call_fault(op, "MM-PRE-001", kLongerA), "the kernel ran although MM-PRE-001 was broken");
}

TEST(Negative, MemoryThatChanged) {
  const OpDescriptor op = with([](const Call& call, const Kernel& kernel, Device& device) {
    if (!is_broken(call)) return kernel.run(call, device);
    static_cast<float*>(call.tensors[2].data)[3] = 0;
    throw violation("MM-PRE-001");
  });
  EXPECT_EQ(broken_call_fault(op, "MM-PRE-001", kLongerA), "memory changed although MM-PRE-001 was broken");
}

/// Returns the tensors of every call that valid_calls_fault() makes of an operation.
std::vector<std::vector<Tensor>> valid_calls(const OpDescriptor& op) {
  static std::vector<std::vector<Tensor>> seen;
  seen.clear();
  OpDescriptor watched = op;
  watched.checked = [](const Call& call, const Kernel& kernel, Device& device) {
    seen.emplace_back(call.tensors.begin(), call.tensors.end());
    kernel.run(call, device);
  };
  EXPECT_EQ(valid_calls_fault(watched), "") << op.name;
  return seen;
}

TEST(Negative, ValidCallsHaveGapsBehindRowsAndNeighboursApartWhereAllowed) {
  for (const char* name : {"matmul", "gemv", "tensor_layout", "attention", "nf4_dequantize"}) {
    const OpDescriptor& op = operation(name);
    const std::vector<std::vector<Tensor>> calls = valid_calls(op);
    for (std::size_t t = 0; t < op.tensors.size(); ++t) {
      const int inner = calls[0][t].shape.rank() - 1;
      const auto some = [&](auto holds) {
        return std::ranges::any_of(calls,
                                   [&](const auto& tensors) { return holds(tensors[t].shape, tensors[t].strides); });
      };
      const auto gap = [&](const Shape& shape, const Shape& strides) {
        return strides[inner - 1] > shape[inner] * strides[inner];
      };
      const auto apart = [&](const Shape& shape, const Shape& strides) {
        return shape[inner] > 1 && strides[inner] == 3;
      };
      const auto columns = [](const Shape& shape, const Shape& strides) {
        return shape[0] > 1 && strides[0] == 1 && strides[1] == shape[0];
      };
      const bool free = !op.tensors[t].unit_inner_stride;
      EXPECT_TRUE(inner == 0 || some(gap)) << name << " " << op.tensors[t].name;
      EXPECT_EQ(some(apart), free) << name << " " << op.tensors[t].name;
      EXPECT_TRUE(inner == 0 || some(columns) == free) << name << " " << op.tensors[t].name << ": columns side by side";
    }
  }
}

TEST(Negative, EachDimIsTriedAtItsLeastAndAtItsLargest) {
  const OpDescriptor& op = operation("gemv");
  const std::vector<std::vector<Tensor>> calls = valid_calls(op);  // the first tensor is a [m, k]
  for (int d = 0; d < 2; ++d) {
    const DimInfo& dim = op.dims[static_cast<std::size_t>(d)];
    for (const Index limit : {dim.min, dim.max})
      EXPECT_TRUE(std::ranges::any_of(calls, [&](const auto& tensors) { return tensors[0].shape[d] == limit; }))
          << dim.name << " = " << limit;
  }
}

/// Dims are distinct: 2, 3, 4, ..., and a dim that must be a multiple of another is twice the other.
TEST(Negative, NoTwoDimsOfAValidCallAreTheSame) {
  const std::vector<Tensor> product = valid_calls(operation("matmul")).back();
  EXPECT_EQ(product[0].shape, (Shape{2, 3}));
  EXPECT_EQ(product[1].shape, (Shape{3, 4}));
  const OpDescriptor& grouped = operation("attention");
  const std::vector<Tensor> heads = valid_calls(grouped).back();  // q [batch, s, heads, d], k [batch, t, kv_heads, d]
  EXPECT_EQ(heads[0].shape[2], 2 * heads[1].shape[2]);
}

/// Packed bytes are read as words: rows start at words, with the smallest possible gap.
TEST(Negative, RowsOfPackedBytesStartAtWords) {
  const OpDescriptor& op = operation("nf4_dequantize");
  const auto packed =
      static_cast<std::size_t>(std::ranges::find(op.tensors, DType::u8, &TensorInfo::dtype) - op.tensors.begin());
  bool padded = false;
  for (const std::vector<Tensor>& tensors : valid_calls(op)) {
    const Shape &shape = tensors[packed].shape, &strides = tensors[packed].strides;
    if (strides[0] == shape[1]) continue;
    padded = true;
    EXPECT_EQ(strides[0], shape[1] / 4 * 4 + 4);
  }
  EXPECT_TRUE(padded);
}

}  // namespace
}  // namespace assay::falsify::negative_test
