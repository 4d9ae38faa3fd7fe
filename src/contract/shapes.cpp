#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "contract/validate.hpp"
#include "contract/expression.hpp"
#include "contract/reader.hpp"

namespace assay::contract {
namespace {

using model::ShapeTuple;
using model::Text;
using Extents = std::vector<Index>;

/// A default campaign of a differential has twelve joint rounds (falsify/engine/draw.cpp), and draws every region.
constexpr std::size_t kMaxRegions = 12, kMaxShapes = 512;

/// Expands one tuple into shapes: every choice from its lists, with expressions evaluated and limits checked.
class Expansion {
 public:
  Expansion(const model::Contract& contract, const ShapeTuple& tuple) : contract_(contract), tuple_(tuple) {
    for (std::size_t e = 0; e < tuple.extents.size(); ++e) named_before(e);
    for (std::size_t d = 0; d < contract.dims.size(); ++d) multiple_is_named(d);
  }

  std::vector<Extents> shapes() {
    std::vector<Extents> found{Extents(contract_.dims.size(), kDrawnSmall)};
    for (const ShapeTuple::Extent& extent : tuple_.extents) {
      std::vector<Extents> longer;
      for (const Extents& shape : found)
        for (const Text& value : extent.values) {
          longer.push_back(shape);
          longer.back()[index(extent.dim.value)] = evaluate(value, shape);
        }
      found = std::move(longer);
      if (found.size() > kMaxShapes)
        fail(extent.dim, fmt::format("this is more than {} shapes", kMaxShapes), "shorten a list");
    }
    for (const Extents& shape : found) within_limits(shape);
    return found;
  }

 private:
  [[noreturn]] void fail(const Text& at, const std::string& problem, const std::string& remedy) const {
    fail_at(contract_.file, at.at, problem, remedy);
  }

  std::size_t index(std::string_view dim) const { return static_cast<std::size_t>(model::dim_index(contract_, dim)); }

  bool names(std::size_t dim) const {
    return std::ranges::any_of(tuple_.extents, [&](const auto& e) { return index(e.dim.value) == dim; });
  }

  void known(const Text& at, std::string_view name) const {
    std::vector<std::string_view> dims;
    for (const model::Dim& dim : contract_.dims) dims.push_back(dim.name.value);
    if (model::dim_index(contract_, name) < 0)
      fail(at, fmt::format("'{}' is not a dim of this contract", name), suggestion(name, dims));
  }

  /// Checks that the dim exists and that its expressions use only dims given before it.
  void named_before(std::size_t e) const {
    const ShapeTuple::Extent& extent = tuple_.extents[e];
    known(extent.dim, extent.dim.value);
    for (const Text& value : extent.values)
      for (const std::string& name : identifiers(value.value)) {
        known(value, name);
        const auto before = std::span(tuple_.extents).first(e);
        if (std::ranges::none_of(before, [&](const auto& other) { return other.dim.value == name; }))
          fail(value, fmt::format("'{}' needs '{}', which this shape does not give before it", extent.dim.value, name),
               fmt::format("give {} first", name));
      }
  }

  /// Checks that a dim that is a multiple of another dim is given together with it.
  void multiple_is_named(std::size_t d) const {
    const model::Dim& dim = contract_.dims[d];
    const int of = model::dim_index(contract_, dim.multiple.value);
    if (of >= 0 && names(d) && !names(static_cast<std::size_t>(of)))
      fail(tuple_.at,
           fmt::format("the shape gives '{}' without '{}', which it is a multiple of", dim.name.value,
                       dim.multiple.value),
           fmt::format("give {} too", dim.multiple.value));
  }

  Index evaluate(const Text& value, const Extents& shape) const {
    const auto extent =
        evaluated(value.value, [&](std::string_view name) { return std::optional(shape[index(name)]); });
    if (!extent)
      fail(value, fmt::format("'{}' has no value", value.value), "use whole numbers, dims, + - * / % and brackets");
    return *extent;
  }

  void within_limits(const Extents& shape) const {
    for (const ShapeTuple::Extent& extent : tuple_.extents) {
      const std::size_t d = index(extent.dim.value);
      const model::Dim& dim = contract_.dims[d];
      if (shape[d] < dim.min || shape[d] > dim.max)
        fail(extent.values.front(), fmt::format("{} = {} is outside its limits", dim.name.value, shape[d]),
             fmt::format("use {} to {}", dim.min, dim.max));
      if (dim.multiple.value.empty()) continue;
      const int of = model::dim_index(contract_, dim.multiple.value);
      const Index step = of >= 0 ? shape[static_cast<std::size_t>(of)] : std::stoll(dim.multiple.value);
      if (step > 0 && shape[d] % step != 0)
        fail(extent.values.front(), fmt::format("{} = {} is no multiple of {}", dim.name.value, shape[d], step),
             fmt::format("{} is a multiple of {}", dim.name.value, dim.multiple.value));
    }
  }

  const model::Contract& contract_;
  const ShapeTuple& tuple_;
};

}  // namespace

std::vector<Index> region_extents(const model::Contract& contract, const model::ShapeRegion& region) {
  std::vector<Index> all;
  for (const ShapeTuple& tuple : region.tuples)
    for (const Extents& shape : Expansion(contract, tuple).shapes()) all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

void check_shapes(const model::Contract& contract) {
  if (contract.shapes.size() > kMaxRegions)
    fail_at(contract.file, contract.shapes[kMaxRegions].name.at,
            fmt::format("there are more than {} regions", kMaxRegions),
            "put shapes that show the same faults into one");
  for (const model::ShapeRegion& region : contract.shapes) {
    if (!usable_name(region.name.value))
      fail_at(contract.file, region.name.at, fmt::format("'{}' cannot name a region", region.name.value),
              "use lower-case letters, digits and single underscores, no C++ keyword");
    if (region_extents(contract, region).size() / contract.dims.size() > kMaxShapes)
      fail_at(contract.file, region.name.at, fmt::format("the region has more than {} shapes", kMaxShapes),
              "shorten a list");
  }
}

}  // namespace assay::contract
