// Shapes at which several dims are large at once, what a case of given dims costs, and which places of a dim the oracle judges
// where all of them would cost too much. Everything here is a function of the contract and the dims, never of a clock.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/descriptor.hpp"
#include "falsify/engine/random.hpp"
#include "runtime/device.hpp"

namespace assay::falsify {

/// Seconds. A run of the oracle that takes longer judges a sample.
inline constexpr double kAffordable = 0.01;

/// How a check compares large outputs with the oracle: all of them, a sample of their places, or none.
enum class OracleUse { whole, sample, none };

/// A dim counts heads (Counts).
bool has_heads(const OpDescriptor& op);
/// The dim that counts a batch.
std::optional<std::size_t> batch_of(const OpDescriptor& op);
/// Seconds that the oracle takes: 10 ns a term.
double oracle_cost(const OpDescriptor& op, std::span<const Index> dims);
/// Seconds that a case takes: the oracle as far as it is used, 60 ns an element, 1 ns a term of the kernel and, where kernels run as grids of
/// blocks, 4 ns (where it has heads, of whole tiles) and 15 us a block, and what a tile of outputs takes for terms beyond 16384.
double case_cost(const OpDescriptor& op, std::span<const Index> dims, bool in_blocks, OracleUse oracle_use);
/// Blocks of the usual kernel: one for each row of the largest output, or for 256 elements where that is more.
double blocks_of(const OpDescriptor& op, std::span<const Index> dims);

/// Places of one independent dim.
struct Places {
  std::size_t dim = 0;
  std::vector<Index> at;  ///< ascending
};
/// Places that the oracle judges at these dims; nothing where it judges all. Half of them lie at corners of tiles: beside multiples of 16.
std::optional<Places> sample_of(const OpDescriptor& op, std::span<const Index> dims, Random random);
/// Positions of a dense tensor that lie at the sample's places, in order.
std::vector<std::size_t> sampled_positions(const TensorInfo& tensor, std::span<const Index> dims, const Places& sample);

/// Shapes of a region.
std::size_t shapes_in(const OpDescriptor& op, const ShapeRegion& region);
std::span<const Index> shape_at(const OpDescriptor& op, const ShapeRegion& region, std::size_t shape);
/// The dims are those of one of the region's shapes.
bool lies_in(const OpDescriptor& op, const ShapeRegion& region, std::span<const Index> dims);
/// The dims are those of a shape that the contract lists.
bool is_joint(const OpDescriptor& op, std::span<const Index> dims);
/// "s=128,t=128": an extent for each dim, kDrawnSmall for those not named. Throws InputError naming `where`.
std::vector<Index> dims_from_text(const OpDescriptor& op, std::string_view text, const std::string& where);
/// Up to `most` of a dim, in blocks where it has them. 0 only where the dim is a choice between 0 and 1.
Index few_of(const DimInfo& dim, Index most, Random& random);
/// The dims of a shape, those it leaves open small.
std::vector<Index> joint_dims(const OpDescriptor& op, std::span<const Index> shape, Random& random);

}  // namespace assay::falsify
