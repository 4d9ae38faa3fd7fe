#include "falsify/engine/joint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/errors.hpp"
#include "falsify/engine/case.hpp"

namespace assay::falsify {
namespace {

constexpr double kTerm = 10e-9, kElement = 60e-9, kBlock = 15e-6;
/// For operations with heads, tile sizes along a dim of positions and along a dim of a head's elements.
constexpr Index kTileOfPlaces = 64, kTileOfElements = 16, kLongDim = 1024;
/// Seconds for each term beyond kLongSum of a sum, for a whole tile of 64 x 64 outputs.
constexpr double kTermOfTile = 16e-6, kLongSum = 16384;
/// Cost of a kernel's term relative to an oracle's.
constexpr double kOnCpu = 0.1, kInBlocks = 0.4;
/// Seconds for a sample, and the minimum number of places in a sample.
constexpr double kSampled = 0.006;
constexpr double kFewest = 4;

double elements_of(const OpDescriptor& op, std::span<const Index> dims) {
  double elements = 0;
  for (const TensorInfo& tensor : op.tensors) elements += static_cast<double>(tensor.shape(dims).size());
  return elements;
}

/// Returns the length of the longest sum of a matrix product, which a block computes for a whole tile of outputs; 0 if
/// the operation is no matrix product.
double longest_in_tiles(const OpDescriptor& op, std::span<const Index> dims) {
  const auto is_matrix = [&](const TensorInfo& t) { return t.role == Role::in || t.shape(dims).rank() == 2; };
  if (op.terms == nullptr || !std::ranges::all_of(op.tensors, is_matrix)) return 0;
  Index longest = 0;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (!in_outputs(op, d)) longest = std::max(longest, dims[d]);
  return static_cast<double>(longest);
}

/// Returns the seconds that kernels in blocks take for all heads: each block computes whole tiles, even for few places.
double cost_of_heads(const OpDescriptor& op, std::span<const Index> dims) {
  std::vector<Index> tiles(dims.begin(), dims.end());
  std::vector<bool> counts(dims.size(), false);
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (op.dims[d].multiple_of >= 0) counts[d] = counts[static_cast<std::size_t>(op.dims[d].multiple_of)] = true;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const Index tile = op.dims[d].max > kLongDim ? kTileOfPlaces : kTileOfElements;
    if (!counts[d] && !op.dims[d].independent) tiles[d] = (std::max<Index>(dims[d], 1) + tile - 1) / tile * tile;
  }
  return oracle_cost(op, tiles) * kInBlocks;
}

/// Returns the number of places of an independent dim that a sample can afford; all places cost `whole`.
double places_for(double whole, Index extent) { return std::floor(static_cast<double>(extent) * kSampled / whole); }

/// Returns the independent dims along which a sample has enough places.
std::vector<std::size_t> sampled_dims(const OpDescriptor& op, std::span<const Index> dims, double whole) {
  std::vector<std::size_t> found;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (op.dims[d].independent && places_for(whole, dims[d]) >= kFewest) found.push_back(d);
  return found;
}

}  // namespace

bool has_heads(const OpDescriptor& op) {
  return std::ranges::find(op.dims, Counts::heads, &DimInfo::counts) != op.dims.end();
}

std::optional<std::size_t> batch_of(const OpDescriptor& op) {
  const auto at = std::ranges::find(op.dims, Counts::batch, &DimInfo::counts);
  return at == op.dims.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - op.dims.begin()));
}

double oracle_cost(const OpDescriptor& op, std::span<const Index> dims) {
  return kTerm * (op.terms != nullptr ? static_cast<double>(op.terms(dims)) : elements_of(op, dims));
}

double blocks_of(const OpDescriptor& op, std::span<const Index> dims) {
  double blocks = 1;
  for (const TensorInfo& tensor : op.tensors) {
    // a call appends one row to a cache
    if (tensor.role == Role::in || (tensor.role == Role::inout && has_heads(op))) continue;
    const Shape shape = tensor.shape(dims);
    const auto size = static_cast<double>(shape.size());
    // A kernel uses one block for each number that reduces an input's row, as for each row of an output.
    const bool of_rows = shape.rank() == 1 && std::ranges::any_of(op.tensors, [&](const TensorInfo& in) {
                           const Shape rows = in.shape(dims);
                           return in.role == Role::in && rows.rank() > 1 && rows[0] == shape[0];
                         });
    const Index width = shape.rank() > 1 ? std::max<Index>(shape[shape.rank() - 1], 1) : of_rows ? 1 : 256;
    blocks = std::max({blocks, size / static_cast<double>(std::min<Index>(width, 256))});
  }
  return blocks;
}

double case_cost(const OpDescriptor& op, std::span<const Index> dims, bool in_blocks, OracleUse oracle_use) {
  const double whole = oracle_cost(op, dims);
  const bool part = oracle_use == OracleUse::sample && whole > kAffordable && !sampled_dims(op, dims, whole).empty();
  const double oracle = oracle_use == OracleUse::none ? 0 : part ? kSampled : whole;
  const double tile = kTermOfTile * std::max(longest_in_tiles(op, dims) - kLongSum, 0.0);
  const double in_tiles = has_heads(op) ? cost_of_heads(op, dims) : whole * kInBlocks + tile;
  const double kernel = in_blocks ? in_tiles + kBlock * blocks_of(op, dims) : whole * kOnCpu;
  return oracle + kernel + kElement * elements_of(op, dims);
}

std::optional<Places> sample_of(const OpDescriptor& op, std::span<const Index> dims, Random random) {
  const double whole = oracle_cost(op, dims);
  if (!(whole > kAffordable)) return std::nullopt;
  const std::vector<std::size_t> along = sampled_dims(op, dims, whole);
  if (along.empty()) return std::nullopt;
  const std::size_t dim = along[random.below(along.size())];
  const Index extent = dims[dim];
  const auto count = static_cast<std::size_t>(places_for(whole, extent));
  std::vector<bool> chosen(static_cast<std::size_t>(extent));
  std::size_t places = 0;
  const auto choose = [&](Index place) {
    const auto at = static_cast<std::size_t>(place);
    places += !chosen[at];
    chosen[at] = true;
  };
  choose(0), choose(extent - 1);
  for (bool corner = true; places < count; corner = !corner) {
    const auto anywhere = static_cast<Index>(random.below(static_cast<std::uint64_t>(extent)));
    choose(corner && extent > 16 ? std::max<Index>((anywhere + 15) / 16 * 16 - random.between(0, 1), 0) % extent
                                 : anywhere);
  }
  Places sample{dim, {}};
  sample.at.reserve(places);
  for (std::size_t at = 0; at < chosen.size(); ++at)
    if (chosen[at]) sample.at.push_back(static_cast<Index>(at));
  return sample;
}

std::vector<std::size_t> sampled_positions(const TensorInfo& tensor, std::span<const Index> dims,
                                           const Places& sample) {
  std::vector<Index> other(dims.begin(), dims.end());
  other[sample.dim] = dims[sample.dim] + 1;
  const Shape shape = tensor.shape(dims), longer = tensor.shape(other);
  std::vector<std::size_t> positions{0};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool along = shape[axis] != longer[axis];
    const Index count = along ? static_cast<Index>(sample.at.size()) : shape[axis];
    std::vector<std::size_t> longer_positions;
    longer_positions.reserve(positions.size() * static_cast<std::size_t>(count));
    for (const std::size_t before : positions)
      for (Index i = 0; i < count; ++i)
        longer_positions.push_back(before * static_cast<std::size_t>(shape[axis]) +
                                   static_cast<std::size_t>(along ? sample.at[static_cast<std::size_t>(i)] : i));
    positions = std::move(longer_positions);
  }
  return positions;
}

std::size_t shapes_in(const OpDescriptor& op, const ShapeRegion& region) {
  return region.extents.size() / op.dims.size();
}

std::span<const Index> shape_at(const OpDescriptor& op, const ShapeRegion& region, std::size_t shape) {
  return region.extents.subspan(shape * op.dims.size(), op.dims.size());
}

bool lies_in(const OpDescriptor& op, const ShapeRegion& region, std::span<const Index> dims) {
  const auto given = [](Index wanted, Index extent) { return wanted == kDrawnSmall || wanted == extent; };
  for (std::size_t shape = 0; shape < shapes_in(op, region); ++shape)
    if (std::ranges::equal(shape_at(op, region, shape), dims, given)) return true;
  return false;
}

bool is_joint(const OpDescriptor& op, std::span<const Index> dims) {
  return std::ranges::any_of(op.shapes, [&](const ShapeRegion& region) { return lies_in(op, region, dims); });
}

std::vector<Index> dims_from_text(const OpDescriptor& op, std::string_view text, const std::string& where) {
  std::vector<Index> extents(op.dims.size(), kDrawnSmall);
  std::vector<std::string_view> names;
  for (const DimInfo& dim : op.dims) names.push_back(dim.name);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin), name = part.substr(0, part.find('='));
    const auto d = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    if (d == names.size())
      throw InputError(where, fmt::format("'{}' is not a dim of {}", name, op.name),
                       fmt::format("use {}", fmt::join(names, ", ")));
    const std::string_view digits = part.substr(std::min(name.size() + 1, part.size()));
    const DimInfo& info = op.dims[d];
    const auto fail = [&, part = part](std::string_view problem) {
      throw InputError(where, fmt::format("'{}' {}", part, problem),
                       fmt::format("use {}=N once, with N from {} to {}", name, info.min, info.max));
    };
    Index extent = 0;
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), extent);
    if (error == std::errc::invalid_argument || last != digits.data() + digits.size())
      fail(fmt::format("gives {} no whole number", name));
    if (error != std::errc() || extent < info.min || extent > info.max) fail("is out of range");
    if (extents[d] != kDrawnSmall) fail(fmt::format("gives {} a second time", name));
    extents[d] = extent;
    begin = end + 1;
  }
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const DimInfo& info = op.dims[d];
    if (extents[d] == kDrawnSmall) continue;
    const Index of = info.multiple_of < 0 ? info.multiple : extents[static_cast<std::size_t>(info.multiple_of)];
    if (of == kDrawnSmall || extents[d] % std::max<Index>(of, 1) != 0)
      throw InputError(
          where,
          fmt::format("{} = {} is no multiple of {}", info.name, extents[d],
                      info.multiple_of < 0 ? std::to_string(of)
                                           : std::string(op.dims[static_cast<std::size_t>(info.multiple_of)].name)),
          info.multiple_of < 0 ? "use a multiple" : "give both, the one a multiple of the other");
  }
  return extents;
}

Index few_of(const DimInfo& dim, Index most, Random& random) {
  const Index least = dim.max == 1 ? dim.min : 1;
  return std::clamp(random.between(least, std::max(least, std::min(most, dim.max))) * dim.multiple, dim.min, dim.max);
}

std::vector<Index> joint_dims(const OpDescriptor& op, std::span<const Index> shape, Random& random) {
  std::vector<Index> dims;
  for (std::size_t d = 0; d < shape.size(); ++d)
    dims.push_back(shape[d] == kDrawnSmall ? few_of(op.dims[d], 3, random) : shape[d]);
  make_valid(op, dims);
  return dims;
}

}  // namespace assay::falsify
