// The guards must see a write of one element anywhere outside the outputs, in every layout and placement.
#include "falsify/engine/arena.hpp"

#include "core/errors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

namespace assay::falsify::arena_test {
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
  for (int layout = 0; layout < kNearLayouts; ++layout)
    for (int placement = 0; placement < kPlacements; ++placement)
      for (std::uint64_t seed = 1; seed < 9; ++seed)
        f(static_cast<Layout>(layout), static_cast<Placement>(placement), seed);
}

TEST_F(StageTest, AnUntouchedStageIsUndamagedAndReadsBack) {
  each_variant([&](Layout layout, Placement placement, std::uint64_t seed) {
    const Case c = make(layout, placement, seed);
    const Problem problem = make_problem(op_, c, {});
    const Stage stage(arena_, problem, c, Poison::finite);
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
      const Stage stage(arena_, problem, c, Poison::finite);
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
        const Stage stage(arena_, problem, c, Poison::nan);
        const Placed& placed = stage.tensors()[static_cast<std::size_t>(tensor)];
        const Index extent = View<float>(nullptr, placed.shape, placed.strides).extent();
        // A guard page covers this side.
        if (behind ? placement == Placement::page_end : placement == Placement::page_start) continue;
        word(placed)[behind ? extent : -1] = std::nanf("");
        EXPECT_TRUE(stage.damage().has_value()) << describe(op_, c);
      }
  });
}

TEST_F(StageTest, AWriteBetweenRowsIsSeen) {
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    const Case c = make(Layout::padded, Placement::sentinels, seed);
    const Problem problem = make_problem(op_, c, {});
    const Stage stage(arena_, problem, c, Poison::finite);
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
  const Stage stage(arena_, problem, c, Poison::finite);
  word(stage.tensors()[1])[4] = 77;
  ASSERT_TRUE(stage.damage().has_value());
}

TEST_F(StageTest, WritingTheOutputIsNoDamage) {
  const Case c = make(Layout::mixed, Placement::page_end, 3);
  const Problem problem = make_problem(op_, c, {});
  const Stage stage(arena_, problem, c, Poison::nan);
  const Placed& out = stage.tensors()[2];
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 5; ++j) word(out)[i * out.strides[0] + j * out.strides[1]] = static_cast<float>(i * 5 + j);
  EXPECT_EQ(stage.read(2)[7], 7.0f);
  EXPECT_FALSE(stage.damage().has_value());
}

TEST_F(StageTest, PoisonsDifferAndSentinelsAreFinite) {
  const Case c = make(Layout::tight, Placement::sentinels, 3);
  const Problem problem = make_problem(op_, c, {});
  const std::vector<float> finite = Stage(arena_, problem, c, Poison::finite).read(2);
  const std::vector<float> nan = Stage(arena_, problem, c, Poison::nan).read(2);
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
    if (layout == Layout::own) return;
    const Problem problem{&packed, {3, 5}, {}, {std::vector<float>(15, 200)}};
    const Stage stage(arena_, problem, make(layout, placement, seed), Poison::finite);
    const Placed& placed = stage.tensors()[0];
    const bool padded = layout == Layout::padded || layout == Layout::mixed || layout == Layout::pitched;
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
    const Stage stage(arena_, problem, make(layout, placement, seed), Poison::finite);
    const Placed& placed = stage.tensors()[0];
    const Shape& strides = placed.strides;
    const auto extent = static_cast<std::size_t>(View<float>(nullptr, placed.shape, strides).extent()) * sizeof(float);
    const bool offset = layout == Layout::offset || layout == Layout::mixed;
    EXPECT_TRUE(placement != Placement::page_end || (placed.data + extent) % 4096 == 0);
    EXPECT_TRUE(placement != Placement::page_start || placed.data % 4096 == 0);
    const bool own = layout == Layout::own, pitched = layout == Layout::pitched;
    EXPECT_TRUE(placement != Placement::sentinels || offset || own || placed.data % 64 == 0);
    EXPECT_TRUE(layout == Layout::padded || layout == Layout::mixed || own ||
                strides == (Shape{pitched ? strides[0] : 5, 1}));
    EXPECT_TRUE(!pitched || (strides[0] > 5 && strides[0] % 16 == 0));
    EXPECT_TRUE(layout != Layout::padded || strides[1] == 1);
    ++stages;
    unaligned += offset && placement == Placement::sentinels && placed.data % 64 != 0;
    padded += layout == Layout::padded && strides[0] > 5;
    spread += layout == Layout::mixed && std::min(strides[0], strides[1]) > 1;
    by_columns += layout == Layout::mixed && strides[0] < strides[1];
  });
  EXPECT_EQ(unaligned, stages / kPlacements * 2 / kNearLayouts);
  EXPECT_EQ(padded, stages / kNearLayouts);
  EXPECT_GT(spread, 0);
  EXPECT_GT(by_columns, 0);
}

TEST_F(StageTest, ACaseThatDoesNotFitIsRefusedWithItsSize) {
  Case c = make(Layout::tight, Placement::sentinels, 3);
  c.dims = {2048, 2048, 2048};
  const Problem problem{&op_, c.dims, {}, {{}, {}, {}}};
  EXPECT_THROW(Stage(arena_, problem, c, Poison::finite), Unavailable);
}

/// An operation of one tensor with the operation's dims as extents.
class AnyTensor {
 public:
  explicit AnyTensor(DType dtype, Role role = Role::in, bool unit_inner_stride = false) {
    x_.name = "x";
    x_.role = role;
    x_.dtype = dtype;
    x_.unit_inner_stride = unit_inner_stride;
    x_.shape = [](std::span<const Index> dims) {
      Shape shape;
      for (const Index dim : dims) shape.push_back(dim);
      return shape;
    };
    op_.tensors = {&x_, 1};
  }
  AnyTensor(const AnyTensor&) = delete;
  AnyTensor& operator=(const AnyTensor&) = delete;

  /// Holds 0, 1, 2, ...
  Problem problem(std::vector<Index> dims) const {
    std::vector<float> values;
    if (x_.role == Role::in)
      for (Index i = 0; i < x_.shape(dims).size(); ++i) values.push_back(static_cast<float>(i));
    return {&op_, std::move(dims), {}, {values}};
  }

 private:
  TensorInfo x_;
  OpDescriptor op_{};
};

/// Returns element offsets by the strides, in dense row-major order: the last axis varies fastest.
std::vector<Index> offsets_by_strides(const Placed& placed) {
  std::vector<Index> offsets;
  for (Index dense = 0; dense < placed.shape.size(); ++dense) {
    Index rest = dense, offset = 0;
    for (int axis = placed.shape.rank() - 1; axis >= 0; --axis) {
      offset += rest % placed.shape[axis] * placed.strides[axis];
      rest /= placed.shape[axis];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

TEST_F(StageTest, ElementsLieWhereTheirStridesSayWhateverTheRank) {
  for (const bool unit_inner_stride : {true, false}) {
    const AnyTensor x(DType::f32, Role::in, unit_inner_stride);
    for (const std::vector<Index>& dims :
         {std::vector<Index>{}, {7}, {1}, {4, 5}, {3, 2, 5}, {2, 3, 2, 3}, {2, 1, 4, 1}})
      each_variant([&](Layout layout, Placement placement, std::uint64_t seed) {
        const Problem problem = x.problem(dims);
        const Stage stage(arena_, problem, make(layout, placement, seed), Poison::finite);
        const Placed& placed = stage.tensors()[0];
        const std::vector<Index> offsets = offsets_by_strides(placed);
        EXPECT_EQ(std::set<Index>(offsets.begin(), offsets.end()).size(), offsets.size()) << "elements overlap";
        for (std::size_t i = 0; i < offsets.size(); ++i) EXPECT_EQ(word(placed)[offsets[i]], problem.values[0][i]);
        EXPECT_EQ(stage.read(0), problem.values[0]);
        if (unit_inner_stride && !dims.empty()) {
          EXPECT_EQ(placed.strides[placed.shape.rank() - 1], 1);
        }
        EXPECT_FALSE(stage.damage());
      });
  }
}

/// Expects `count` of `of` draws to match the share within six standard deviations.
void expect_share(int count, int of, double share) {
  EXPECT_NEAR(static_cast<double>(count) / of, share, 6 * std::sqrt(share * (1 - share) / of));
}

TEST_F(StageTest, LayoutsAreDrawnEvenly) {
  const AnyTensor x(DType::f32);
  const Problem problem = x.problem({4, 5});
  constexpr int kStages = 10'000;
  int by_columns = 0, by_one = 0;
  std::map<Index, int> steps, shifts, pads;
  for (std::uint64_t seed = 0; seed < kStages; ++seed) {
    const Stage stage(arena_, problem, make(Layout::mixed, Placement::sentinels, seed), Poison::finite);
    const Placed& placed = stage.tensors()[0];
    const Index rows = placed.strides[0], columns = placed.strides[1];
    const Index step = std::min(rows, columns), pad = rows < columns ? columns - 4 * step : rows - 5 * step;
    by_columns += rows < columns;
    by_one += pad == 1;
    ++steps[step], ++pads[pad];
    ++shifts[static_cast<Index>(placed.data % 64) / 4];
  }
  expect_share(by_columns, kStages, 0.5);
  expect_share(by_one, kStages, 0.5);
  for (Index step = 1; step <= 3; ++step) expect_share(steps[step], kStages, step == 1 ? 0.5 : 0.25);
  EXPECT_EQ(steps.size(), 3U);
  for (Index shift = 1; shift <= 15; ++shift) expect_share(shifts[shift], kStages, 1.0 / 15);
  EXPECT_EQ(shifts.size(), 15U);
  for (Index pad = 2; pad <= 20; ++pad) expect_share(pads[pad], kStages, 0.5 / 19);
  EXPECT_EQ(pads.size(), 20U);
}

/// A padded vector has no rows to separate, so its elements are spread.
TEST_F(StageTest, APaddedVectorIsSpread) {
  const AnyTensor x(DType::f32);
  std::set<Index> padded, tight;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    padded.insert(Stage(arena_, x.problem({6}), make(Layout::padded, Placement::sentinels, seed), Poison::finite)
                      .tensors()[0]
                      .strides[0]);
    tight.insert(Stage(arena_, x.problem({6}), make(Layout::offset, Placement::sentinels, seed), Poison::finite)
                     .tensors()[0]
                     .strides[0]);
  }
  EXPECT_EQ(padded, (std::set<Index>{1, 2, 3}));
  EXPECT_EQ(tight, std::set<Index>{1});
}

/// Returns the contents of the output before the kernel runs, bit for bit.
std::vector<std::uint32_t> poison(Arena& arena, DType dtype, Poison poison, Index elements) {
  const AnyTensor x(dtype, Role::out);
  const Problem problem = x.problem({elements});
  Case c;
  c.seed = 3;
  const Stage stage(arena, problem, c, poison);
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < bits.size(); ++i)
    std::memcpy(&bits[i], arena.base() + stage.tensors()[0].data + i * size_of(dtype), size_of(dtype));
  return bits;
}

TEST_F(StageTest, EveryElementHasAPoisonOfItsOwnInEveryFormat) {
  const std::pair<DType, Index> formats[] = {
      {DType::f32, 5000}, {DType::i32, 5000}, {DType::f16, 256}, {DType::bf16, 32}, {DType::u8, 256}};
  for (const auto& [dtype, distinct] : formats) {
    const std::vector<std::uint32_t> bits = poison(arena_, dtype, Poison::nan, distinct),
                                     other = poison(arena_, dtype, Poison::finite, distinct);
    EXPECT_EQ(std::set<std::uint32_t>(bits.begin(), bits.end()).size(), bits.size()) << static_cast<int>(dtype);
    int equal = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      equal += bits[i] == other[i];
      if (dtype == DType::f32) {
        EXPECT_TRUE(std::isnan(std::bit_cast<float>(bits[i]))) << i;
      }
      if (dtype == DType::f16) {
        EXPECT_TRUE(std::isnan(widen(Half{static_cast<std::uint16_t>(bits[i])}))) << i;
      }
      if (dtype == DType::bf16) {
        EXPECT_TRUE(std::isnan(widen(BFloat16{static_cast<std::uint16_t>(bits[i])}))) << i;
      }
    }
    if (dtype != DType::u8) {  // bytes have 256 values only, so some agree with their neighbours
      EXPECT_EQ(equal, 0);
    }
    const std::vector<std::uint32_t> more = poison(arena_, dtype, Poison::nan, 3 * distinct);
    for (std::size_t i = 1; i < more.size(); ++i) EXPECT_NE(more[i], more[i - 1]) << i;
  }
}

TEST_F(StageTest, EveryTensorHasAPageOfItsOwnOnEachSide) {
  constexpr std::size_t kPage = 4096;
  each_variant([&](Layout layout, Placement placement, std::uint64_t seed) {
    const Case c = make(layout, placement, seed);
    const Problem problem = make_problem(op_, c, {});
    const Stage stage(arena_, problem, c, Poison::finite);
    std::size_t free_from = 0;
    for (const Placed& placed : stage.tensors()) {
      const std::size_t end = placed.region + placed.region_bytes;
      const std::size_t behind =
          placed.data + 4 * static_cast<std::size_t>(View<float>(nullptr, placed.shape, placed.strides).extent());
      EXPECT_EQ(placed.region, free_from + kPage);
      EXPECT_EQ(placed.region_bytes % kPage, 0U);
      EXPECT_EQ(placed.guard_before, placement == Placement::page_start);
      EXPECT_EQ(placed.guard_after, placement == Placement::page_end);
      EXPECT_TRUE(placed.guard_before ? placed.data == placed.region : placed.data >= placed.region + kPage);
      EXPECT_TRUE(placed.guard_after ? behind == end : end >= behind + kPage);
      free_from = end + kPage;
    }
  });
}

TEST(Arena, HoldsAsManyBytesAsItIsAskedFor) {
  for (const std::size_t bytes : {1, 4095, 4096, 4097}) {
    Arena arena(bytes);
    arena.base()[bytes - 1] = std::byte{1};
    EXPECT_EQ(arena.base()[bytes - 1], std::byte{1}) << bytes;
  }
}

/// A stage writes nothing past its last region.
TEST(Stage, NothingBehindItsLastRegionIsWritten) {
  const OpDescriptor& op = operation("matmul");
  Case c;
  c.dims = {3, 2, 5};
  Arena arena(std::size_t{1} << 20);
  const Problem problem = make_problem(op, c, {});
  const Stage stage(arena, problem, c, Poison::finite);
  const Placed& last = stage.tensors().back();
  for (std::size_t byte = last.region + last.region_bytes; byte < (std::size_t{1} << 20); ++byte)
    ASSERT_EQ(arena.base()[byte], std::byte{0}) << byte - last.region - last.region_bytes << " bytes behind it";
}

TEST_F(StageTest, DamageIsToldWithItsPlaceInEveryFormat) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8}) {
    const AnyTensor x(dtype), y(dtype, Role::out);
    const auto size = static_cast<std::ptrdiff_t>(size_of(dtype));
    for (const Layout layout : {Layout::tight, Layout::offset}) {
      const Problem input = x.problem({3, 8}), output = y.problem({3, 8});
      const Case c = make(layout, Placement::sentinels, 5);
      {
        const Stage stage(arena_, input, c, Poison::nan);
        EXPECT_EQ(stage.read(0), input.values[0]);
        std::byte* const data = arena_.base() + stage.tensors()[0].data;
        std::memcpy(data + 13 * size, data + 21 * size, static_cast<std::size_t>(size));
        EXPECT_EQ(stage.damage(), "input x was changed: element 13 of its storage was 13 and is now 21");
      }
      for (const std::ptrdiff_t words : {-3, 0, 5}) {  // word offset from the start if negative, else from the end
        const Stage stage(arena_, output, c, Poison::nan);
        const std::ptrdiff_t first = 4 * words + (words < 0 ? 0 : 24 * size);  // bytes from element 0
        const auto misaligned = static_cast<std::ptrdiff_t>(stage.tensors()[0].data % 4);
        if (misaligned != 0) continue;  // 16-bit data: the word would overlap an element of the tensor
        const float now = 1.5F;
        std::memcpy(arena_.base() + stage.tensors()[0].data + first, &now, sizeof now);
        const std::string damage = stage.damage().value_or("");
        EXPECT_EQ(damage, "memory outside x was written: element " + std::to_string(first / size) +
                              " counted from its first (24 elements belong to it, leading stride 8) is now 1.5");
        EXPECT_EQ(stage.late_damage(), "x was written after the kernel had returned");
      }
      const Stage quiet(arena_, output, c, Poison::nan);
      EXPECT_FALSE(quiet.damage());
      EXPECT_FALSE(quiet.late_damage());
      arena_.base()[quiet.tensors()[0].data] ^= std::byte{1};
      EXPECT_EQ(quiet.late_damage(), "x was written after the kernel had returned");
    }
  }
}

}  // namespace
}  // namespace assay::falsify::arena_test
