#include "contract/composition.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"

namespace assay::contract {
namespace {

std::string_view trimmed(std::string_view s) {
  const std::size_t first = s.find_first_not_of(' ');
  return first == s.npos ? std::string_view() : s.substr(first, s.find_last_not_of(' ') - first + 1);
}

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> parts;
  while (!trimmed(list).empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    parts.push_back(trimmed(list.substr(0, comma)));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return parts;
}

/// The extents of a tensor as the contract writes them: "[m, (k + 63) / 64]" without its brackets, comma by comma.
std::vector<std::string_view> extents_of(const TensorInfo& tensor) {
  std::string_view text = tensor.shape_text;
  text.remove_prefix(text.find('[') + 1);
  return split(text.substr(0, text.rfind(']')));
}

std::optional<std::size_t> dim_named(const OpDescriptor& op, std::string_view name) {
  const auto at = std::ranges::find(op.dims, name, &DimInfo::name);
  if (at == op.dims.end()) return std::nullopt;
  return static_cast<std::size_t>(at - op.dims.begin());
}

}  // namespace

Composition::Composition(std::string_view text) : op(text.substr(0, text.find('('))) {
  const std::string_view rest = text.substr(op.size() + 1);
  arguments = split(rest.substr(0, rest.rfind(')')));
}

std::size_t gradient_output(const OpDescriptor& composed, std::string_view input) {
  std::vector<std::size_t> outputs;
  for (std::size_t t = 0; t < composed.tensors.size(); ++t)
    if (composed.tensors[t].role != Role::in) outputs.push_back(t);
  for (const std::size_t t : outputs)
    if (composed.tensors[t].name == fmt::format("d{}", input)) return t;
  if (outputs.size() != 1)
    throw InputError(std::string(composed.file), fmt::format("none of several outputs is called d{}", input),
                     "name the gradient after the input");
  return outputs[0];
}

DimBinding::DimBinding(const OpDescriptor& op, std::string where)
    : op_(op), where_(std::move(where)), extents_(op.dims.size()), bound_by_(op.dims.size()) {}

void DimBinding::bind(std::size_t dim, Index extent, const std::string& by) {
  if (extents_[dim] && *extents_[dim] != extent)
    throw InputError(
        where_,
        fmt::format("{} is {} by {}, and {} by {}", op_.dims[dim].name, *extents_[dim], bound_by_[dim], extent, by),
        "pass tensors whose shapes agree");
  extents_[dim] = extent;
  bound_by_[dim] = by;
}

void DimBinding::shape(int t, const Shape& shape) {
  const TensorInfo& tensor = op_.tensors[static_cast<std::size_t>(t)];
  const std::vector<std::string_view> extents = extents_of(tensor);
  if (static_cast<int>(extents.size()) != shape.rank())
    throw InputError(
        where_,
        fmt::format("{} has shape {}, and the contract wants {}", tensor.name, to_string(shape), tensor.shape_text),
        "reshape it");
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    if (const auto dim = dim_named(op_, extents[axis]))
      bind(*dim, shape[static_cast<int>(axis)], fmt::format("{} {}", tensor.name, to_string(shape)));
  given_.emplace_back(t, shape);
}

void DimBinding::dim(std::string_view name, Index extent) {
  const auto dim = dim_named(op_, name);
  if (!dim)
    throw InputError(where_, fmt::format("{} has no dim {}", op_.name, name),
                     fmt::format("see assay explain {}", op_.name));
  bind(*dim, extent, "the caller");
}

std::vector<Index> DimBinding::dims() const {
  std::vector<Index> dims;
  for (std::size_t d = 0; d < extents_.size(); ++d) {
    if (!extents_[d])
      throw InputError(where_, fmt::format("the dim {} follows from no operand's shape", op_.dims[d].name),
                       "give it by name");
    dims.push_back(*extents_[d]);
  }
  for (const auto& [t, shape] : given_) {
    const TensorInfo& tensor = op_.tensors[static_cast<std::size_t>(t)];
    if (const Shape wanted = tensor.shape(dims); !(wanted == shape))
      throw InputError(where_,
                       fmt::format("{} has shape {}, and the contract wants {} {}", tensor.name, to_string(shape),
                                   tensor.shape_text, to_string(wanted)),
                       "pass a tensor of that shape");
  }
  return dims;
}

std::vector<BoundDim> free_dims(const OpDescriptor& composed, const OpDescriptor& op, std::span<const Index> dims,
                                std::size_t input) {
  std::vector<bool> given(composed.dims.size());
  for (const TensorInfo& tensor : composed.tensors)
    if (tensor.role != Role::out)
      for (const std::string_view extent : extents_of(tensor))
        if (const auto dim = dim_named(composed, extent)) given[*dim] = true;
  const bool own_backward = composed.name == fmt::format("{}_backward", op.name);
  std::vector<BoundDim> found;
  for (std::size_t d = 0; d < given.size(); ++d) {
    if (given[d]) continue;
    if (const auto same = dim_named(op, composed.dims[d].name); own_backward && same) {
      found.push_back({d, dims[*same]});
      continue;
    }
    DimBinding target(composed, std::string(op.file));
    target.shape(static_cast<int>(gradient_output(composed, op.tensors[input].name)), op.tensors[input].shape(dims));
    if (const auto extent = target[d]) found.push_back({d, *extent});
  }
  return found;
}

}  // namespace assay::contract
