// Overlap of views, compared with the sets of bytes that they access.
#include "core/view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "falsify/engine/random.hpp"

namespace assay::numbers::view_test {
namespace {

using falsify::Random;

struct Placed {
  Shape shape, strides;
  std::uintptr_t begin = 0;
  std::size_t bytes = 4;
};

std::vector<Index> offsets_of(const Placed& p) {
  std::vector<Index> offsets;
  for (Index i = 0; i < p.shape.size(); ++i) {
    Index offset = 0, rest = i;
    for (int axis = p.shape.rank() - 1; axis >= 0; --axis)
      offset += rest % p.shape[axis] * p.strides[axis], rest /= p.shape[axis];
    offsets.push_back(offset);
  }
  return offsets;
}

std::set<std::uintptr_t> bytes_of(const Placed& p) {
  std::set<std::uintptr_t> reached;
  for (const Index offset : offsets_of(p))
    for (std::size_t b = 0; b < p.bytes; ++b)
      reached.insert(p.begin + static_cast<std::uintptr_t>(offset) * p.bytes + b);
  return reached;
}

Placed drawn(Random& random, Index inner_stride) {
  static constexpr std::size_t kBytes[] = {1, 2, 4};
  Placed p;
  const auto rank = static_cast<int>(random.between(0, 3));
  for (int axis = 0; axis < rank; ++axis) {
    p.shape.push_back(random.between(1, 4));
    p.strides.push_back(axis == rank - 1 ? inner_stride : random.between(0, 12));
  }
  p.bytes = kBytes[random.below(3)];
  p.begin = 4096 + random.below(40) * 4;
  return p;
}

bool shares(const Placed& x, const Placed& y) {
  return overlap(x.begin, x.shape, x.strides, x.bytes, y.begin, y.shape, y.strides, y.bytes);
}

bool share_a_byte(const Placed& x, const Placed& y) {
  const auto of_x = bytes_of(x), of_y = bytes_of(y);
  return std::ranges::any_of(of_x, [&](std::uintptr_t byte) { return of_y.contains(byte); });
}

TEST(Views, OverlapWhereTheyShareAByte) {
  Random random(1);
  int apart = 0, together = 0;
  for (int n = 0; n < 50'000; ++n) {
    const Placed x = drawn(random, 1), y = drawn(random, 1);
    const bool want = share_a_byte(x, y);
    ASSERT_EQ(shares(x, y), want) << "case " << n;
    ASSERT_EQ(shares(y, x), want) << "case " << n;
    (want ? together : apart) += 1;
  }
  EXPECT_GT(apart, 5000);
  EXPECT_GT(together, 5000);
}

TEST(Views, WithInnerStridesShareByteRanges) {
  Random random(2);
  for (int n = 0; n < 20'000; ++n) {
    const Placed x = drawn(random, 2), y = drawn(random, 1);
    if (share_a_byte(x, y)) {
      ASSERT_TRUE(shares(x, y)) << "case " << n;
    }
  }
}

TEST(Views, RowsThatLieInEachOthersGapsShareNothing) {
  std::vector<float> memory(64);
  const Shape shape{4, 3}, strides{8, 1};
  const View<float> left(memory.data(), shape, strides), right(memory.data() + 4, shape, strides),
      beside(memory.data() + 2, shape, strides);
  EXPECT_FALSE(overlap(left, right));
  EXPECT_TRUE(overlap(left, beside));
  EXPECT_TRUE(overlap(left, left));
  EXPECT_FALSE(overlap(left, View<float>(memory.data(), Shape{0, 3}, strides)));
}

TEST(Views, OverlapThemselvesWhereTwoIndicesMeet) {
  Random random(3);
  int found = 0;
  for (int n = 0; n < 50'000; ++n) {
    const Placed p = drawn(random, random.between(0, 3));
    std::vector<Index> offsets = offsets_of(p);
    std::ranges::sort(offsets);
    const bool meet = std::ranges::adjacent_find(offsets) != offsets.end();
    if (meet) {
      ASSERT_TRUE(self_overlap(p.shape, p.strides)) << "case " << n;
    }
    found += meet;
    Placed padded = p;  // each axis steps past the extent of the inner ones
    Index step = 1 + static_cast<Index>(random.below(3));
    for (int axis = p.shape.rank() - 1; axis >= 0; --axis)
      padded.strides[axis] = step, step = step * p.shape[axis] + static_cast<Index>(random.below(3));
    ASSERT_FALSE(self_overlap(padded.shape, padded.strides)) << "case " << n;
  }
  EXPECT_GT(found, 5000);
}

/// Rows are dense if the elements of a row are contiguous and rows follow each other without overlap.
TEST(Views, RowMajorIsDenseRowsThatFollowEachOther) {
  float memory[1] = {};
  const auto dense = [&](const Shape& shape, const Shape& strides) {
    return row_major(View<const float>(memory, shape, strides));
  };
  int both[2] = {};
  for (Index rows = 0; rows < 4; ++rows)
    for (Index width = 0; width < 4; ++width)
      for (Index leading = 0; leading < 6; ++leading)
        for (Index inner = 0; inner < 3; ++inner) {
          bool right = true;
          for (Index i = 0; i < rows; ++i)
            for (Index j = 0; j < width; ++j) {
              if (j + 1 < width) right &= inner == 1;
              if (i + 1 < rows) right &= leading >= width;
            }
          EXPECT_EQ(dense({rows, width}, {leading, inner}), right)
              << rows << " " << width << " " << leading << " " << inner;
          ++both[right];
        }
  EXPECT_GT(both[0], 50);
  EXPECT_GT(both[1], 50);
  EXPECT_TRUE(dense({}, {}));
  EXPECT_TRUE(dense({2, 3, 4}, {12, 4, 1}));
  EXPECT_TRUE(dense({2, 3, 4}, {13, 4, 1}));
  EXPECT_FALSE(dense({2, 3, 4}, {11, 4, 1}));
  EXPECT_TRUE(dense({2, 1, 4}, {4, 0, 1})) << "extents of 1 may have any stride";
}

TEST(Views, AreContiguousWithoutGapsInTheirOrderAlone) {
  const auto contiguous = [](const Shape& shape, const Shape& strides) {
    return View<float>(nullptr, shape, strides).contiguous();
  };
  for (Index inner = 1; inner <= 3; ++inner)
    for (Index leading = 1; leading <= 8; ++leading) {
      EXPECT_EQ(contiguous({2, 3}, {leading, inner}), leading == 3 && inner == 1) << leading << " " << inner;
      EXPECT_EQ(contiguous({1, 3}, {leading, inner}), inner == 1) << "extents of 1 may have any stride";
      EXPECT_EQ(contiguous({2, 1}, {leading, inner}), leading == 1);
      EXPECT_TRUE(contiguous({1, 1}, {leading, inner}));
    }
  EXPECT_TRUE(contiguous({}, {}));
  EXPECT_TRUE(contiguous({4}, {1}));
  EXPECT_FALSE(contiguous({4}, {2}));
  EXPECT_TRUE(contiguous({2, 3, 4}, {12, 4, 1}));
  EXPECT_FALSE(contiguous({2, 3, 4}, {13, 4, 1}));
  EXPECT_FALSE(contiguous({2, 3, 4}, {12, 5, 1}));
}

TEST(Views, AColumnHoldsTheElementsOfItsVector) {
  const float memory[] = {1, 2, 3, 4, 5, 6, 7};
  const View<const float> every_third(memory, {3}, {3}), column = every_third.column();
  EXPECT_EQ(column.shape(), (Shape{3, 1}));
  EXPECT_EQ(column.stride(0), 3);
  for (Index i = 0; i < 3; ++i) EXPECT_EQ(column(i, 0), every_third(i)) << i;
}

TEST(Views, AnAxisOfOneElementMayHaveAnyStride) {
  EXPECT_FALSE(self_overlap({3, 1}, {1, 2}));
  EXPECT_FALSE(self_overlap({1, 3}, {0, 1}));
  EXPECT_TRUE(self_overlap({3, 2}, {1, 2}));
}

}  // namespace
}  // namespace assay::numbers::view_test
