// The guards must see a write of one element anywhere outside the outputs, in every layout and placement.
#include "falsify/engine/arena.hpp"

#include "core/errors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace assay::falsify {
namespace {

class StageTest : public testing::Test {
 protected:
  Case make(Layout layout, Placement placement, std::uint64_t seed) const {
    Case c;
    c.dims = {3, 2, 5};
    c.layout = layout;
    c.placement = placement;
    c.seed = seed;
    return c;
  }
  float* word(const Placed& placed) { return reinterpret_cast<float*>(arena_.base() + placed.data); }

  Arena arena_{std::size_t{1} << 24};
  const OpDescriptor& op_ = operation("matmul");
};

template <class F>
void each_variant(F f) {
  for (int layout = 0; layout < kLayouts; ++layout)
    for (int placement = 0; placement < kPlacements; ++placement)
      for (std::uint64_t seed = 1; seed < 9; ++seed)
        f(static_cast<Layout>(layout), static_cast<Placement>(placement), seed);
}

TEST_F(StageTest, AnUntouchedStageIsUndamagedAndReadsBack) {
  each_variant([&](Layout layout, Placement placement, std::uint64_t seed) {
    const Case c = make(layout, placement, seed);
    const Problem problem = make_problem(op_, c, {});
    const Stage stage(arena_, 4096, problem, c, Poison::finite);
    EXPECT_EQ(stage.read(0), problem.values[0]);
    EXPECT_FALSE(stage.damage().has_value()) << describe(op_, c);
  });
}

TEST_F(StageTest, PackedBytesAndTheirRowsAreAlignedToWords) {
  const OpDescriptor& packed = operation("nf4_dequantize");
  bool padded = false;
  each_variant([&](Layout layout, Placement placement, std::uint64_t seed) {
    for (const Index k : {0, 1, 65}) {
      Case c = make(layout, placement, seed);
      c.dims = {3, k};
      const Problem problem = make_problem(packed, c, {});
      const Stage stage(arena_, 4096, problem, c, Poison::finite);
      const Placed& codes = stage.tensors()[0];
      EXPECT_EQ(codes.data % 4, 0U) << describe(packed, c);
      EXPECT_EQ(codes.strides[0] % 4, 0) << describe(packed, c);
      padded = padded || codes.strides[0] != codes.shape[1];
    }
  });
  EXPECT_TRUE(padded);
}

TEST_F(StageTest, AWriteBesideATensorIsSeen) {
  each_variant([&](Layout layout, Placement placement, std::uint64_t seed) {
    const Case c = make(layout, placement, seed);
    const Problem problem = make_problem(op_, c, {});
    for (int tensor = 0; tensor < 3; ++tensor)
      for (bool behind : {false, true}) {
        const Stage stage(arena_, 4096, problem, c, Poison::nan);
        const Placed& placed = stage.tensors()[static_cast<std::size_t>(tensor)];
        const Index extent = View<float>(nullptr, placed.shape, placed.strides).extent();
        if (behind ? placement == Placement::page_end : placement == Placement::page_start) continue;  // a page guards it
        word(placed)[behind ? extent : -1] = std::nanf("");
        EXPECT_TRUE(stage.damage().has_value()) << describe(op_, c);
      }
  });
}

TEST_F(StageTest, AWriteBetweenRowsIsSeen) {
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    const Case c = make(Layout::padded, Placement::sentinels, seed);
    const Problem problem = make_problem(op_, c, {});
    const Stage stage(arena_, 4096, problem, c, Poison::finite);
    const Placed& out = stage.tensors()[2];
    ASSERT_GT(out.strides[0], out.shape[1]);
    word(out)[out.shape[1]] = 0;
    const auto damage = stage.damage();
    ASSERT_TRUE(damage.has_value());
    EXPECT_NE(damage->find("outside c"), std::string::npos) << *damage;
  }
}

TEST_F(StageTest, AChangedInputIsSeenAndNamed) {
  const Case c = make(Layout::tight, Placement::sentinels, 3);
  const Problem problem = make_problem(op_, c, {});
  const Stage stage(arena_, 4096, problem, c, Poison::finite);
  word(stage.tensors()[1])[4] = 77;
  ASSERT_TRUE(stage.damage().has_value());
}

TEST_F(StageTest, WritingTheOutputIsNoDamage) {
  const Case c = make(Layout::mixed, Placement::page_end, 3);
  const Problem problem = make_problem(op_, c, {});
  const Stage stage(arena_, 4096, problem, c, Poison::nan);
  const Placed& out = stage.tensors()[2];
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 5; ++j) word(out)[i * out.strides[0] + j * out.strides[1]] = static_cast<float>(i * 5 + j);
  EXPECT_EQ(stage.read(2)[7], 7.0f);
  EXPECT_FALSE(stage.damage().has_value());
}

TEST_F(StageTest, PoisonsDifferAndSentinelsAreFinite) {
  const Case c = make(Layout::tight, Placement::sentinels, 3);
  const Problem problem = make_problem(op_, c, {});
  const std::vector<float> finite = Stage(arena_, 4096, problem, c, Poison::finite).read(2);
  const std::vector<float> nan = Stage(arena_, 4096, problem, c, Poison::nan).read(2);
  for (std::size_t i = 0; i < finite.size(); ++i) {
    EXPECT_TRUE(std::isfinite(finite[i]) && std::fabs(finite[i]) > 1e29f);
    EXPECT_TRUE(std::isnan(nan[i]));
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(finite[i], finite[j]);
  }
}

TEST_F(StageTest, PaddedRowsOfPackedBytesStartAtWords) {
  TensorInfo codes;
  codes.name = "codes";
  codes.dtype = DType::u8;
  codes.shape = [](std::span<const Index> dims) { return Shape{dims[0], dims[1]}; };
  OpDescriptor packed{};
  packed.tensors = {&codes, 1};
  each_variant([&](Layout layout, Placement placement, std::uint64_t seed) {
    const Problem problem{&packed, {3, 5}, {}, {std::vector<float>(15, 200)}};
    const Stage stage(arena_, 4096, problem, make(layout, placement, seed), Poison::finite);
    const Placed& placed = stage.tensors()[0];
    const bool padded = layout == Layout::padded || layout == Layout::mixed;
    EXPECT_EQ(placed.data % 4, 0u);
    EXPECT_EQ(placed.strides[0] > 5, padded);
    EXPECT_TRUE(!padded || placed.strides[0] % 4 == 0) << placed.strides[0];
    EXPECT_EQ(stage.read(0), problem.values[0]);
  });
}

TEST_F(StageTest, LayoutsAndPlacementsAreWhatTheyAreNamedFor) {
  TensorInfo x;
  x.name = "x";
  x.unit_inner_stride = false;
  x.shape = [](std::span<const Index> dims) { return Shape{dims[0], dims[1]}; };
  OpDescriptor op{};
  op.tensors = {&x, 1};
  const Problem problem{&op, {4, 5}, {}, {std::vector<float>(20, 1)}};
  int unaligned = 0, padded = 0, spread = 0, by_columns = 0, stages = 0;
  each_variant([&](Layout layout, Placement placement, std::uint64_t seed) {
    const Stage stage(arena_, 4096, problem, make(layout, placement, seed), Poison::finite);
    const Placed& placed = stage.tensors()[0];
    const Shape& strides = placed.strides;
    const auto extent = static_cast<std::size_t>(View<float>(nullptr, placed.shape, strides).extent()) * sizeof(float);
    const bool offset = layout == Layout::offset || layout == Layout::mixed;
    EXPECT_TRUE(placement != Placement::page_end || (placed.data + extent) % 4096 == 0);
    EXPECT_TRUE(placement != Placement::page_start || placed.data % 4096 == 0);
    EXPECT_TRUE(placement != Placement::sentinels || offset || placed.data % 64 == 0);
    EXPECT_TRUE(layout == Layout::padded || layout == Layout::mixed || strides == (Shape{5, 1}));
    EXPECT_TRUE(layout != Layout::padded || strides[1] == 1);
    ++stages;
    unaligned += offset && placement == Placement::sentinels && placed.data % 64 != 0;
    padded += layout == Layout::padded && strides[0] > 5;
    spread += layout == Layout::mixed && std::min(strides[0], strides[1]) > 1;
    by_columns += layout == Layout::mixed && strides[0] < strides[1];
  });
  EXPECT_EQ(unaligned, stages / kPlacements / 2);
  EXPECT_EQ(padded, stages / kLayouts);
  EXPECT_GT(spread, 0);
  EXPECT_GT(by_columns, 0);
}

TEST_F(StageTest, ACaseThatDoesNotFitIsRefusedWithItsSize) {
  Case c = make(Layout::tight, Placement::sentinels, 3);
  c.dims = {2048, 2048, 2048};
  const Problem problem{&op_, c.dims, {}, {{}, {}, {}}};
  EXPECT_THROW(Stage(arena_, 4096, problem, c, Poison::finite), Unavailable);
}

}  // namespace
}  // namespace assay::falsify
