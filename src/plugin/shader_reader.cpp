#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "contract/reader.hpp"
#include "plugin/shader.hpp"

namespace assay::plugin {
namespace {

using contract::Fields;
using contract::Node;

/// Returns the tensors by binding. Each tensor of the operation has one binding, numbered 0, 1, ...
std::vector<int> read_bindings(const OpDescriptor& op, const Node& node) {
  std::vector<int> tensors(op.tensors.size(), -1);
  std::vector<std::string_view> names;
  for (const TensorInfo& tensor : op.tensors) names.push_back(tensor.name);
  for (const auto& [name, place] : node.entries()) {
    const auto found = std::ranges::find(names, name.value);
    if (found == names.end())
      place.fail(fmt::format("'{}' is no tensor of {}", name.value, op.name), contract::suggestion(name.value, names));
    const auto binding = static_cast<std::size_t>(place.integer(0, static_cast<Index>(names.size()) - 1));
    if (tensors[binding] >= 0)
      place.fail(
          fmt::format("binding {} is given to {} already", binding, names[static_cast<std::size_t>(tensors[binding])]),
          "give each tensor a binding of its own");
    tensors[binding] = static_cast<int>(found - names.begin());
  }
  for (std::size_t t = 0; t < names.size(); ++t)
    if (std::ranges::find(tensors, static_cast<int>(t)) == tensors.end())
      node.fail(fmt::format("the tensor '{}' has no binding", names[t]), fmt::format("add '{}: N'", names[t]));
  return tensors;
}

}  // namespace

ShaderMap ShaderMap::read(const OpDescriptor& op, const std::string& text, const std::string& label) {
  const Node root = Node::parse(text, label, "the map");
  const Fields fields(root, {"bindings", "push", "groups", "specialization", "integers", "reals", "requires"});
  ShaderMap map;
  map.tensors = read_bindings(op, fields.require("bindings"));
  map.push = Shim::read_arguments(op, fields, fields.find("push"));
  using What = Shim::What;
  for (const Shim::Argument& a : map.push.arguments)
    if ((a.type != Shim::Type::int32 && a.type != Shim::Type::real32) || a.by_address || a.what == What::index ||
        a.what == What::value)
      fields.require("push").fail(fmt::format("{} takes no 4 bytes", a.text),
                                  "push constants are dims, params, strides, numbers and constants, as int32 or float");
  const Node& groups = fields.require("groups");
  const std::vector<Node> axes = groups.items();
  if (axes.size() > 3) groups.fail(fmt::format("workgroups have {} axes", axes.size()), "give at most 3");
  for (const Node& axis : axes) {
    map.groups.push_back(read_expression(op, axis, "count of workgroups"));
    if (!map.groups.back().whole)
      axis.fail(fmt::format("'{}' is no count of workgroups", axis.text().value),
                "write dims and whole numbers with + - * / % and brackets");
  }
  if (const Node* constants = fields.find("specialization"))
    for (const Node& item : constants->items())
      map.specialization.push_back(
          static_cast<std::uint32_t>(item.integer(0, std::numeric_limits<std::uint32_t>::max())));
  return map;
}

}  // namespace assay::plugin
