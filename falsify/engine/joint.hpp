// Shapes with several large dims, cost estimates of cases, and the places of a dim that the oracle judges if judging
// all costs too much. All results are functions of the contract and the dims, never of a clock.
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

/// Seconds. If the oracle takes longer, it judges a sample.
inline constexpr double kAffordable = 0.01;

/// Extent of a check's comparison of large outputs with the oracle: all elements, a sample of their places, or none.
enum class OracleUse { whole, sample, none };

/// True if a dim counts heads (Counts).
bool has_heads(const OpDescriptor& op);
/// The dim that counts a batch.
std::optional<std::size_t> batch_of(const OpDescriptor& op);
/// Returns the seconds that the oracle takes: 10 ns a term.
double oracle_cost(const OpDescriptor& op, std::span<const Index> dims);
/// Returns the seconds that a case takes: the oracle as far as it is used, 60 ns an element, and 1 ns a term of the
/// kernel. For kernels that run as grids of blocks instead 4 ns a term (with heads, of whole tiles), 15 us a block, and
/// the cost of a tile of outputs for terms beyond 16384.
double case_cost(const OpDescriptor& op, std::span<const Index> dims, bool in_blocks, OracleUse oracle_use);
/// Returns the number of blocks of a typical kernel: one for each row of the largest output, or for each 256 elements
/// if that is more.
double blocks_of(const OpDescriptor& op, std::span<const Index> dims);

/// Places of one independent dim.
struct Places {
  std::size_t dim = 0;
  std::vector<Index> at;  ///< ascending
};
/// Returns the places that the oracle judges at these dims; empty if it judges all. Half of them lie at tile corners,
/// next to multiples of 16.
std::optional<Places> sample_of(const OpDescriptor& op, std::span<const Index> dims, Random random);
/// Returns the positions of a dense tensor that lie at the sample's places, in order.
std::vector<std::size_t> sampled_positions(const TensorInfo& tensor, std::span<const Index> dims, const Places& sample);

/// Returns the number of shapes in a region.
std::size_t shapes_in(const OpDescriptor& op, const ShapeRegion& region);
std::span<const Index> shape_at(const OpDescriptor& op, const ShapeRegion& region, std::size_t shape);
/// True if the dims are those of one of the region's shapes.
bool lies_in(const OpDescriptor& op, const ShapeRegion& region, std::span<const Index> dims);
/// True if the dims are those of a shape that the contract lists.
bool is_joint(const OpDescriptor& op, std::span<const Index> dims);
/// Parses "s=128,t=128": an extent for each dim, kDrawnSmall for dims not named. Throws InputError naming `where`.
std::vector<Index> dims_from_text(const OpDescriptor& op, std::string_view text, const std::string& where);
/// Draws an extent of at most `most`, in blocks if the dim has them. 0 only if the dim is a choice between 0 and 1.
Index few_of(const DimInfo& dim, Index most, Random& random);
/// Returns the dims of a shape; dims that it leaves open are small.
std::vector<Index> joint_dims(const OpDescriptor& op, std::span<const Index> shape, Random& random);

}  // namespace assay::falsify
