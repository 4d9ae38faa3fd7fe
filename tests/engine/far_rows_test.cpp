// Rows beyond 2^31 and 2^32 elements: their addresses, the accessible memory there, and kernels whose offsets overflow.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "falsify/engine/arena.hpp"
#include "falsify/engine/campaign.hpp"
#include "falsify/engine/draw.hpp"

namespace assay::falsify::far_rows_test {
namespace {

constexpr std::size_t kRoom = std::size_t{120} << 30;

Case far_case(const OpDescriptor& op, std::vector<Index> dims, std::uint64_t seed) {
  Case c;
  c.dims = std::move(dims);
  for (const ParamInfo& p : op.params) c.params.push_back(p.typical);
  c.layout = Layout::far_rows;
  c.seed = seed;
  return c;
}

std::vector<Index> long_strides(const Stage& stage) {
  std::vector<Index> extents;
  for (const Placed& p : stage.tensors())
    if (p.pieces > 1) extents.push_back(View<float>(nullptr, p.shape, p.strides).extent());
  return extents;
}

TEST(FarRows, LieBeyondWhat32BitsCount) {
  Arena arena(kRoom);
  bool beyond_31 = false, beyond_32 = false;
  for (const char* name : {"matmul", "attention", "nf4_dequantize", "embedding"})
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      const OpDescriptor& op = operation(name);
      std::vector<Index> dims(op.dims.size(), 4);
      const Case c = far_case(op, dims, seed);
      const Problem problem = make_problem(op, c, {});
      const Stage stage(arena, problem, c, Poison::nan);
      const std::vector<Index> extents = long_strides(stage);
      ASSERT_FALSE(extents.empty()) << name;
      for (const Index extent : extents) {
        EXPECT_GT(extent, Index{1} << 31) << name;
        beyond_31 = beyond_31 || extent < Index{1} << 32;
        beyond_32 = beyond_32 || extent > Index{1} << 32;
      }
    }
  EXPECT_TRUE(beyond_31 && beyond_32);
}

TEST(FarRows, GoAsFarAsABufferDoes) {
  Arena arena(kRoom);
  for (const char* name : {"matmul", "attention", "nf4_dequantize", "embedding"})
    for (const std::size_t most : {std::size_t{1} << 27, (std::size_t{1} << 32) - 1}) {
      const OpDescriptor& op = operation(name);
      const Case c = far_case(op, std::vector<Index>(op.dims.size(), 4), 1);
      const Problem problem = make_problem(op, c, {});
      const Stage stage(arena, problem, c, Poison::nan, {}, {}, most);
      std::size_t far = 0;
      for (const Placed& p : stage.tensors()) {
        if (p.pieces == 1) continue;
        ++far;
        EXPECT_LE(p.region_bytes, most) << name;
        EXPECT_LE(View<float>(nullptr, p.shape, p.strides).extent(), Index{1} << 30) << name;
        EXPECT_GT(p.region_bytes, std::min(most / 10 * 9, std::size_t{1} << 29)) << name;
      }
      EXPECT_GT(far, 0U) << name;
    }
}

TEST(FarRows, AreReadBackAndGuardedLikeOthers) {
  Arena arena(kRoom);
  const OpDescriptor& op = operation("matmul");
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    const Case c = far_case(op, {5, 3, 7}, seed);
    const Problem problem = make_problem(op, c, {});
    for (const Index shift : {Index{-1}, Index{0}, Index{7}}) {  // before a row of c, inside it, past it
      const Stage stage(arena, problem, c, Poison::finite);
      EXPECT_EQ(stage.read(0), problem.values[0]);
      const Placed& out = stage.tensors()[2];
      reinterpret_cast<float*>(arena.base() + out.data)[3 * out.strides[0] + shift] = 5;
      const bool inside = shift == 0;
      if (inside) {
        EXPECT_EQ(stage.read(2)[3 * 7], 5);
      }
      EXPECT_EQ(stage.damage().has_value(), !inside) << shift;
    }
  }
}

TEST(FarRows, LeaveNoMemoryBehind) {
  Arena arena(kRoom);
  const OpDescriptor& op = operation("matmul");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const long before = usage.ru_maxrss;
  for (std::uint64_t seed = 1; seed < 400; ++seed) {
    const Case c = far_case(op, {100, 3, 1000}, seed);
    const Problem problem = make_problem(op, c, {});
    const Stage stage(arena, problem, c, Poison::finite);
  }
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss - before, 64 << 10);  // KiB; a stage touches 3 MB
}

TEST(FarRows, CampaignsDrawThem) {
  for (const OpDescriptor* op : operations())
    for (const ObligationInfo& o : op->obligations) {
      if (o.by == "large") continue;
      int far = 0;
      for (std::uint64_t n = 0; n < 100; ++n) {
        const Case c = draw(*op, o, 1, n).value();
        far += c.layout == Layout::far_rows;
        EXPECT_TRUE(c.layout != Layout::far_rows || c.placement == Placement::sentinels);
      }
      EXPECT_TRUE(far == 4 || far == 5) << o.id << ": " << far;
    }
}

/// c = a b with offsets computed in a 32-bit type.
template <class Offset>
void narrow(const Call& call, Device&) {
  const View<float> a = call.tensors[0].as<float>(), b = call.tensors[1].as<float>(), c = call.tensors[2].as<float>();
  const auto at = [](const View<float>& x, Index i, Index j) -> float& {
    return x.data()[static_cast<Offset>(static_cast<Offset>(i) * static_cast<Offset>(x.stride(0))) + j * x.stride(1)];
  };
  for (Index i = 0; i < c.dim(0); ++i)
    for (Index j = 0; j < c.dim(1); ++j) {
      float sum = 0;
      for (Index p = 0; p < a.dim(1); ++p) sum += at(a, i, p) * at(b, p, j);
      at(c, i, j) = sum;
    }
}

TEST(FarRows, NarrowOffsetsAreFalsified) {
  const OpDescriptor& op = operation("matmul");
  const auto falsified = [&](void (*run)(const Call&, Device&)) {
    Kernel k = kernel("matmul/cpu/naive");
    k.run = run;
    CampaignOptions options;
    options.cases = 30;
    options.shrink = false;
    options.stop_at_first = true;
    options.only = std::string(std::ranges::find(op.obligations, "differential", &ObligationInfo::by)->id);
    return run_campaign(op, k, options).falsified();
  };
  EXPECT_FALSE(falsified(&narrow<std::int64_t>));
  EXPECT_TRUE(falsified(&narrow<std::uint32_t>));
  EXPECT_TRUE(falsified(&narrow<std::int32_t>));
}

}  // namespace
}  // namespace assay::falsify::far_rows_test
