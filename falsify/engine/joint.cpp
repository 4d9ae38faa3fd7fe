#include "falsify/engine/joint.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "falsify/engine/case.hpp"

namespace assay::falsify {
namespace {

constexpr double kTerm = 10e-9, kElement = 200e-9, kBlock = 15e-6;
/// Of a term of the oracle, what a kernel takes for it.
constexpr double kOnCpu = 0.1, kInBlocks = 0.4;
/// Seconds that a sample may take, and the fewest places that are one.
constexpr double kSampled = 0.03;
constexpr double kFewest = 4;

double elements_of(const OpDescriptor& op, std::span<const Index> dims) {
  double elements = 0;
  for (const TensorInfo& tensor : op.tensors) elements += static_cast<double>(tensor.shape(dims).size());
  return elements;
}

/// Places of an independent dim that take as long as a sample may; all of them cost `whole`.
double places_for(double whole, Index extent) { return std::floor(static_cast<double>(extent) * kSampled / whole); }

/// Independent dims along which a sample is worth its name.
std::vector<std::size_t> sampled_dims(const OpDescriptor& op, std::span<const Index> dims, double whole) {
  std::vector<std::size_t> found;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (op.dims[d].independent && places_for(whole, dims[d]) >= kFewest) found.push_back(d);
  return found;
}

}  // namespace

double oracle_cost(const OpDescriptor& op, std::span<const Index> dims) {
  return kTerm * (op.terms != nullptr ? static_cast<double>(op.terms(dims)) : elements_of(op, dims));
}

double blocks_of(const OpDescriptor& op, std::span<const Index> dims) {
  double blocks = 1;
  for (const TensorInfo& tensor : op.tensors) {
    if (tensor.role == Role::in) continue;
    const Shape shape = tensor.shape(dims);
    const auto size = static_cast<double>(shape.size());
    const Index width = shape.rank() > 1 ? std::max<Index>(shape[shape.rank() - 1], 1) : 256;
    blocks = std::max({blocks, size / static_cast<double>(std::min<Index>(width, 256))});
  }
  return blocks;
}

double case_cost(const OpDescriptor& op, std::span<const Index> dims, bool in_blocks, Judged judged) {
  const double whole = oracle_cost(op, dims);
  const bool part = judged == Judged::sampled && whole > kAffordable && !sampled_dims(op, dims, whole).empty();
  const double oracle = judged == Judged::otherwise ? 0 : part ? kSampled : whole;
  const double kernel = in_blocks ? whole * kInBlocks + kBlock * blocks_of(op, dims) : whole * kOnCpu;
  return oracle + kernel + kElement * elements_of(op, dims);
}

std::optional<Sample> sample_of(const OpDescriptor& op, std::span<const Index> dims, Random random) {
  const double whole = oracle_cost(op, dims);
  if (!(whole > kAffordable)) return std::nullopt;
  const std::vector<std::size_t> along = sampled_dims(op, dims, whole);
  if (along.empty()) return std::nullopt;
  const std::size_t dim = along[random.below(along.size())];
  const Index extent = dims[dim];
  const auto count = static_cast<std::size_t>(places_for(whole, extent));
  std::set<Index> places{0, extent - 1};
  for (bool corner = true; places.size() < count; corner = !corner) {
    const auto anywhere = static_cast<Index>(random.below(static_cast<std::uint64_t>(extent)));
    places.insert(corner && extent > 16 ? std::max<Index>((anywhere + 15) / 16 * 16 - random.between(0, 1), 0) % extent : anywhere);
  }
  return Sample{dim, {places.begin(), places.end()}};
}

std::vector<std::size_t> sampled_positions(const TensorInfo& tensor, std::span<const Index> dims, const Sample& sample) {
  std::vector<Index> other(dims.begin(), dims.end());
  other[sample.dim] = dims[sample.dim] + 1;
  const Shape shape = tensor.shape(dims), longer = tensor.shape(other);
  std::vector<std::size_t> positions{0};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool along = shape[axis] != longer[axis];
    const Index count = along ? static_cast<Index>(sample.places.size()) : shape[axis];
    std::vector<std::size_t> longer_positions;
    longer_positions.reserve(positions.size() * static_cast<std::size_t>(count));
    for (const std::size_t before : positions)
      for (Index i = 0; i < count; ++i)
        longer_positions.push_back(before * static_cast<std::size_t>(shape[axis]) +
                                   static_cast<std::size_t>(along ? sample.places[static_cast<std::size_t>(i)] : i));
    positions = std::move(longer_positions);
  }
  return positions;
}

std::size_t shapes_in(const OpDescriptor& op, const ShapeRegion& region) { return region.extents.size() / op.dims.size(); }

std::span<const Index> shape_at(const OpDescriptor& op, const ShapeRegion& region, std::size_t shape) {
  return region.extents.subspan(shape * op.dims.size(), op.dims.size());
}

bool is_joint(const OpDescriptor& op, std::span<const Index> dims) {
  const auto given = [](Index wanted, Index extent) { return wanted == kDrawnSmall || wanted == extent; };
  for (const ShapeRegion& region : op.shapes)
    for (std::size_t shape = 0; shape < shapes_in(op, region); ++shape)
      if (std::ranges::equal(shape_at(op, region, shape), dims, given)) return true;
  return false;
}

std::vector<Index> joint_dims(const OpDescriptor& op, std::span<const Index> shape, Random& random) {
  std::vector<Index> dims;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Index few = random.between(1, 3) * op.dims[d].multiple;
    dims.push_back(shape[d] == kDrawnSmall ? std::clamp(few, op.dims[d].min, op.dims[d].max) : shape[d]);
  }
  make_valid(op, dims);
  return dims;
}

}  // namespace assay::falsify
