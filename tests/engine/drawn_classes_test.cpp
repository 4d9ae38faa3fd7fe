// Default campaigns contain each class of cases where kernels have branches or limits.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "falsify/engine/arena.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/inputs.hpp"
#include "falsify/engine/obligation.hpp"

namespace assay::falsify::drawn_classes_test {
namespace {

constexpr std::uint64_t kCases = 100;

/// Calls f with each case of a default campaign that is compared with an oracle.
template <class F>
void each_case(const OpDescriptor& op, F f) {
  for (const Obligation& o : obligations(op.name)) {
    const DrawSpec spec = draw_spec(o.info->by);
    if (spec.oracle_use == OracleUse::sample && o.info->by != "frame" && o.info->by != "determinism")
      for (std::uint64_t n = 0; n < kCases; ++n) f(draw(op, *o.info, 1, n).value());
  }
}

/// Returns the ends of the range and, inside it, -1, 0, 1 and, for an integer, the limits of 8, 15 and 16 bits.
std::set<double> special_values(const ParamInfo& param) {
  if (!param.choices.empty()) return {param.choices.begin(), param.choices.end()};
  std::set<double> values{-1, 0, 1};
  if (param.integer) values.insert({255, 256, 32767, 32768, 65535, 65536});
  std::erase_if(values, [&](double x) { return x < param.min || x > param.max; });
  // Round the ends to float32 toward the inside.
  const auto least = static_cast<float>(param.min), most = static_cast<float>(param.max);
  values.insert({least < param.min ? std::nextafter(least, INFINITY) : least,
                 most > param.max ? std::nextafter(most, -INFINITY) : most});
  return values;
}

TEST(DrawnClasses, ParametersHaveTheirSpecialValues) {
  for (const OpDescriptor* op : operations()) {
    std::vector<std::map<double, int>> drawn(op->params.size());
    each_case(*op, [&](const Case& c) {
      for (std::size_t p = 0; p < c.params.size(); ++p) ++drawn[p][c.params[p]];
    });
    for (std::size_t p = 0; p < op->params.size(); ++p)
      for (const double value : special_values(op->params[p]))
        EXPECT_GE(drawn[p][value], 3) << op->name << ' ' << op->params[p].name << ' ' << value;
  }
}

/// Gaps between the rows of a tensor, and between groups of rows.
struct Gaps {
  bool rows = false, groups = false;
};

Gaps gaps_of(const Placed& placed) {
  Gaps gaps;
  const int inner = placed.shape.rank() - 1;
  for (int axis = inner - 1; axis >= 0; --axis)
    if (placed.strides[axis] > placed.strides[axis + 1] * std::max<Index>(placed.shape[axis + 1], 1))
      (axis == inner - 1 ? gaps.rows : gaps.groups) = true;
  return gaps;
}

TEST(DrawnClasses, TensorsOfOneCallHaveLayoutsOfTheirOwn) {
  Arena arena(std::size_t{1} << 32);
  for (const OpDescriptor* op : operations()) {
    int dense_and_padded = 0, leading = 0, in_lines = 0, of_groups = 0, of_groups_alone = 0;
    std::size_t matrices = 0;
    bool deep = false;
    each_case(*op, [&](Case c) {
      if (c.layout == Layout::far_rows) return;
      for (std::size_t d = 0; d < c.dims.size(); ++d)
        c.dims[d] = std::clamp<Index>(c.dims[d], 3 * op->dims[d].multiple, 9 * op->dims[d].multiple);
      make_valid(*op, c.dims);
      Problem problem{op, c.dims, c.params, {}, DType::f32};
      for (const TensorInfo& t : op->tensors)
        problem.values.emplace_back(t.role == Role::out ? 0 : static_cast<std::size_t>(t.shape(c.dims).size()));
      const Stage stage(arena, problem, c, Poison::finite);
      std::set<bool> padded;
      std::map<Index, std::set<Index>> of_width;
      bool lines = true, groups = false, groups_alone = false;
      std::size_t matrices_here = 0;
      for (const Placed& placed : stage.tensors()) {
        const int rank = placed.shape.rank();
        if (rank < 2 || placed.shape.size() == 0) continue;
        ++matrices_here;
        const Gaps gaps = gaps_of(placed);
        padded.insert(gaps.rows);
        of_width[placed.shape[rank - 1]].insert(placed.strides[rank - 2]);
        const auto bytes = placed.strides[0] * static_cast<Index>(size_of(placed.dtype));
        lines = lines && bytes % 64 == 0;
        groups = groups || gaps.groups, groups_alone = groups_alone || (gaps.groups && !gaps.rows);
        deep = deep || rank > 2;
      }
      matrices = std::max(matrices, matrices_here);
      dense_and_padded += padded.size() == 2;
      leading += std::ranges::any_of(of_width, [](const auto& one) { return one.second.size() > 1; });
      in_lines += lines && padded.contains(true);
      of_groups += groups, of_groups_alone += groups_alone;
    });
    fmt::print(
        "{:<26} {:>4} dense beside padded, {:>4} leading dimensions differ, {:>4} in lines, {:>4} and {:>4} with gaps between groups\n",
        op->name, dense_and_padded, leading, in_lines, of_groups, of_groups_alone);
    if (matrices > 1) {
      EXPECT_GE(dense_and_padded, 5) << op->name;
    }
    if (matrices > 0) {
      EXPECT_GE(in_lines, 10) << op->name;
    }
    if (deep) {
      EXPECT_GE(std::min(of_groups, of_groups_alone), 10) << op->name;
    }
  }
}

TEST(DrawnClasses, IntegersAreOneTheEndsAPartAndBeyond16Bits) {
  for (const OpDescriptor* op : operations())
    for (std::size_t t = 0; t < op->tensors.size(); ++t) {
      const TensorInfo& tensor = op->tensors[t];
      if (tensor.dtype != DType::i32 || tensor.role != Role::in) continue;
      int several = 0, same = 0, ends = 0, first = 0, last = 0, part = 0, tiles = 0, beyond_15 = 0, beyond_16 = 0;
      each_case(*op, [&](const Case& c) {
        const std::vector<float> values = make_problem(*op, c, {}).values[t];
        const auto least = static_cast<float>(tensor.least(c.dims)), most = static_cast<float>(tensor.most(c.dims));
        beyond_15 += std::ranges::any_of(values, [](float x) { return x >= 0x1p15F; });
        beyond_16 += std::ranges::any_of(values, [](float x) { return x >= 0x1p16F; });
        if (values.size() < 4 || most - least < 16) return;
        ++several;
        // Count values at a tile boundary inside the range.
        tiles +=
            std::ranges::any_of(values, [&](float x) { return x > 0 && x < most && static_cast<Index>(x) % 16 == 0; });
        const auto [low, high] = std::ranges::minmax(values);
        same += low == high, first += low == least && high == least, last += low == most && high == most;
        ends += low < high && std::ranges::all_of(values, [&](float x) { return x == least || x == most; });
        part += values.size() > 15 && low < high && high - low < (most - least) / 2;
      });
      fmt::print(
          "{} {}: {} of one ({} the first, {} the last), {} of both ends, {} of a part, {} at ends of tiles, {} beyond 15 bits, {} beyond 16\n",
          op->name, tensor.name, same, first, last, ends, part, tiles, beyond_15, beyond_16);
      if (several >= 100) {
        EXPECT_GE(std::min({same, ends, part}), 1) << op->name;
        EXPECT_GE(tiles, 10) << op->name;
      }
      std::vector<Index> longest;
      for (const DimInfo& dim : op->dims) longest.push_back(dim.max);
      if (tensor.most(longest) > 1 << 16) {
        EXPECT_GE(beyond_15, 1) << op->name;
      }
    }
}

/// Two ids that share their low 8 or 16 bits with another id between them: a sort by short keys mixes them up.
TEST(DrawnClasses, IdsThatDifferInTheirHighBitsAloneComeInterleaved) {
  for (const char* name : {"embedding", "embedding_backward"}) {
    const OpDescriptor& op = operation(name);
    const auto ids =
        static_cast<std::size_t>(std::ranges::find(op.tensors, "ids", &TensorInfo::name) - op.tensors.begin());
    int low_8 = 0, low_16 = 0;
    for (const Obligation& o : obligations(op.name))
      for (std::uint64_t n = 0; n < kCases; ++n) {
        const Case c = draw(op, *o.info, 1, n).value();
        const std::vector<float> values = make_problem(op, c, {}).values[ids];
        const auto interleaved = [&](Index period) {
          for (std::size_t i = 0; i + 2 < values.size(); ++i) {
            const auto a = static_cast<Index>(values[i]), b = static_cast<Index>(values[i + 1]);
            if (a != b && a % period == b % period && values[i] == values[i + 2]) return true;
          }
          return false;
        };
        low_8 += interleaved(1 << 8), low_16 += interleaved(1 << 16);
      }
    fmt::print("{}: {} cases of ids that differ beyond 8 bits, {} beyond 16\n", name, low_8, low_16);
    EXPECT_GE(low_8, 3) << name;
    EXPECT_GE(low_16, 1) << name;
  }
}

}  // namespace
}  // namespace assay::falsify::drawn_classes_test
