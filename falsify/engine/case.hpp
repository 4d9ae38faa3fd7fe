// A case: everything that determines one experiment on a kernel. Small enough to print, stored in replay
// files, drawn and shrunk by RapidCheck (draw.hpp).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "contract/descriptor.hpp"

namespace assay::falsify {

/// How the values of the inputs are made. Simplest first: shrinking prefers the front of the list.
enum class Strategy {
  one_hot,        ///< one 1 in each row or column, the rest 0: a product selects single elements
  distinct_index, ///< element i holds i+1 (below 2^24), the other inputs are one-hot: decodes what was read
  exact_integers, ///< odd integers of 12 bits times -1, 0, 1: every sum is exact in every order
  gaussian,       ///< N(0, 1), signs independent: what the statistical tier is valid for
  same_sign,      ///< uniform in (0, 1): no cancellation, sums grow
  cancellation,   ///< neighbours along every row cancel but for their last bits
  graded,         ///< rows and columns scaled by powers of two between 2^-20 and 2^20
  dominant,       ///< one element of each row is 2^12 times the others: first, last or at a tile edge
  subnormal,      ///< values whose products or themselves are below 2^-126
  huge,           ///< values whose sums come near, or pass, the largest float
  signed_zeros,   ///< half the elements are +0 or -0
  directed,       ///< the operation's own: where its formula is most sensitive (falsify/properties/<op>.cpp)
  nonfinite,      ///< Gaussian and zeros of both signs, with single NaN, +Inf or -Inf planted
  runs,           ///< along each row stretches of 1 to 256 elements that count for nothing, or alone for something; in joint shapes
};
inline constexpr int kStrategies = 14;
std::string_view name(Strategy strategy);

/// How tensors lie in memory.
enum class Layout {
  tight,    ///< dense, base aligned to 64 bytes
  padded,   ///< leading dimension larger than the width
  offset,   ///< dense, base aligned to 4 bytes only
  mixed,    ///< padded and offset, and inner strides above 1 where the contract allows them
  pitched,  ///< padded, and every row begins at a multiple of 64 bytes from the first, as cudaMallocPitch has them
  own,      ///< each tensor has one of the layouts above, whatever the others have
  far_rows, ///< the last row lies more than 2^31 or 2^32 elements behind the first; only pages around rows can be touched
};
inline constexpr int kLayouts = 7;
inline constexpr int kNearLayouts = 6;  ///< all but far_rows, which has a turn of its own (draw.cpp)
std::string_view name(Layout layout);

/// What stands around each tensor; on Vulkan always sentinels.
enum class Placement {
  sentinels,  ///< unique finite values on both sides, compared afterwards
  page_end,   ///< an inaccessible page right behind the last element
  page_start, ///< an inaccessible page right before the first element
};
inline constexpr int kPlacements = 3;
std::string_view name(Placement placement);

struct Case {
  std::vector<Index> dims;
  std::vector<double> params;
  Strategy strategy = Strategy::gaussian;
  Layout layout = Layout::tight;
  Placement placement = Placement::sentinels;
  std::uint64_t seed = 0;
  /// Seed of the order in which cuda-host takes threads, from the first call of a process on; 0: its own.
  std::uint64_t order = 0;
  /// Dims of a call made before this one in the same process; empty for none (state kept between calls).
  std::vector<Index> prelude;
  /// Values of the inputs, dense, in contract order (empty vectors for outputs); empty: made from the strategy.
  std::vector<std::vector<float>> values;

  /// The region of the contract's shapes that the dims are from, an index of OpDescriptor::shapes; -1: none. It says what was drawn and
  /// decides nothing: replay files leave it out, and cases that differ in it alone are equal.
  int region = -1;

  friend bool operator==(const Case& x, const Case& y) {
    const auto decides = [](const Case& c) {
      return std::tie(c.dims, c.params, c.strategy, c.layout, c.placement, c.seed, c.order, c.prelude, c.values);
    };
    return decides(x) == decides(y);
  }
};

/// Values of all inputs together up to which they are written out.
inline constexpr std::size_t kMostValues = 64;

/// Lowers each dim to the nearest multiple that the operation asks for, within its limits.
void make_valid(const OpDescriptor& op, std::vector<Index>& dims);
bool valid(const OpDescriptor& op, const std::vector<Index>& dims);

/// "m=3 k=1 n=2 alpha=0.5"
std::string describe_extents(const OpDescriptor& op, const std::vector<Index>& dims, const std::vector<double>& params);

/// "m=3 k=1 n=2, gaussian, padded, sentinels, seed 7"
std::string describe(const OpDescriptor& op, const Case& c);

/// The call that a prelude stands for: its dims, and other parameters than the case's, which a kernel may have kept as well.
Case prelude_of(const OpDescriptor& op, const Case& c);

/// Values keep their bits (hexadecimal floats, "nan:0x7fc00001").
nlohmann::json to_json(const OpDescriptor& op, const Case& c);
/// Throws InputError naming the key of `where` that is missing or wrong.
Case case_from_json(const OpDescriptor& op, const nlohmann::json& json, const std::string& where);

}  // namespace assay::falsify
