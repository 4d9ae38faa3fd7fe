#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "contract/reader.hpp"
#include "plugin/shim.hpp"

namespace assay::plugin {
namespace {

using contract::Fields;
using contract::Node;
using Type = Shim::Type;
using What = Shim::What;

struct Defaults {
  Type integers = Type::int32;
  Type reals = Type::real32;
};

bool is_integer(Type type) { return type == Type::int32 || type == Type::int64 || type == Type::size; }

Type type_from(const Node& node) {
  constexpr std::string_view names[] = {"int32", "int64", "size_t", "float", "double", "pointer"};
  const std::string word = node.one_of({"int32", "int64", "size_t", "float", "double", "pointer"}).value;
  return static_cast<Type>(std::ranges::find(names, word) - std::begin(names));
}

template <class Info>
int index_of(std::span<const Info> list, std::string_view name) {
  const auto found = std::ranges::find(list, name, &Info::name);
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

template <class Info>
int require_index(std::span<const Info> list, const Node& node, std::string_view kind) {
  const std::string name = node.text().value;
  const int index = index_of(list, name);
  if (index >= 0) return index;
  std::vector<std::string_view> names;
  for (const Info& info : list) names.push_back(info.name);
  node.fail(fmt::format("'{}' is no {} of the operation", name, kind),
            names.empty() ? fmt::format("it has no {}s", kind) : contract::suggestion(name, names));
}

bool holds_integers(const ParamInfo& param) {
  return param.integer ||
         (!param.choices.empty() && std::ranges::all_of(param.choices, [](double x) { return x == std::floor(x); }));
}

/// The arguments of one shim.
class Arguments {
 public:
  Arguments(const OpDescriptor& op, const Defaults& defaults) : op_(op), defaults_(defaults) {}

  Shim::Argument read(const Node& node) const { return node.is_map() ? derived(node) : named(node); }

 private:
  Shim::Argument named(const Node& node) const {
    const std::string name = node.text().value;
    if (name == "stream") return {What::stream, Type::pointer, 0, 0, 0, name};
    if (const int d = index_of(op_.dims, name); d >= 0) return {What::dim, defaults_.integers, d, 0, 0, name};
    if (const int p = index_of(op_.params, name); p >= 0) return param(p, name);
    if (const int t = index_of(op_.tensors, name); t >= 0) return {What::tensor, Type::pointer, t, 0, 0, name};
    std::vector<std::string_view> names{"stream"};
    for (const DimInfo& dim : op_.dims) names.push_back(dim.name);
    for (const ParamInfo& p : op_.params) names.push_back(p.name);
    for (const TensorInfo& tensor : op_.tensors) names.push_back(tensor.name);
    node.fail(fmt::format("'{}' is no dim, param or tensor of {}", name, op_.name), contract::suggestion(name, names));
  }

  Shim::Argument param(int index, const std::string& name) const {
    const ParamInfo& info = op_.params[static_cast<std::size_t>(index)];
    return {What::param, holds_integers(info) ? defaults_.integers : defaults_.reals, index, 0, 0, name};
  }

  /// An argument written as a map: one key says what it is, `as` its type.
  Shim::Argument derived(const Node& node) const {
    const Fields fields(node, {"dim", "param", "tensor", "leading", "stride", "constant", "as"});
    const Node* as = fields.find("as");
    if (node.entries().size() != (as == nullptr ? 1u : 2u) || (as != nullptr && node.entries().size() == 1))
      node.fail("an argument is one thing",
                "give one of dim, param, tensor, leading, stride and constant, and `as` beside it");
    Shim::Argument argument = untyped(fields, node);
    if (as != nullptr) retype(argument, type_from(*as), *as);
    else if (argument.what == What::constant)
      node.fail("a constant has no type of its own", "add `as`: {constant: 1, as: float}");
    return argument;
  }

  Shim::Argument untyped(const Fields& fields, const Node& node) const {
    if (const Node* dim = fields.find("dim"))
      return {What::dim, defaults_.integers, require_index(op_.dims, *dim, "dim"), 0, 0, dim->text().value};
    if (const Node* name = fields.find("param"))
      return param(require_index(op_.params, *name, "param"), name->text().value);
    if (const Node* tensor = fields.find("tensor"))
      return {What::tensor, Type::pointer, require_index(op_.tensors, *tensor, "tensor"), 0, 0, tensor->text().value};
    if (const Node* tensor = fields.find("leading")) return leading(*tensor);
    if (const Node* list = fields.find("stride")) return stride(*list);
    if (const Node* constant = fields.find("constant"))
      return {What::constant, Type::real64, 0, 0, constant->number(), "a constant"};
    node.fail("an argument is one thing", "give one of dim, param, tensor, leading, stride and constant");
  }

  int rank(int tensor) const {
    const std::vector<Index> ones(op_.dims.size(), 1);
    return op_.tensors[static_cast<std::size_t>(tensor)].shape(ones).rank();
  }

  Shim::Argument leading(const Node& node) const {
    const int tensor = require_index(op_.tensors, node, "tensor");
    if (rank(tensor) < 2)
      node.fail(fmt::format("{} has no rows and so no leading dimension", node.text().value),
                "remove the argument or give a constant");
    return {
        What::stride, defaults_.integers, tensor, rank(tensor) - 2, 0, "the leading dimension of " + node.text().value};
  }

  Shim::Argument stride(const Node& node) const {
    const std::vector<Node> pair = node.items();
    if (pair.size() != 2) node.fail("a stride is one of a tensor and an axis", "write [tensor, axis], as in [a, 0]");
    const int tensor = require_index(op_.tensors, pair[0], "tensor");
    const int axis = static_cast<int>(pair[1].integer(0, rank(tensor) - 1));
    return {
        What::stride, defaults_.integers, tensor, axis, 0, fmt::format("stride {} of {}", axis, pair[0].text().value)};
  }

  void retype(Shim::Argument& argument, Type type, const Node& node) const {
    if ((type == Type::pointer) != (argument.type == Type::pointer) &&
        !(argument.what == What::constant && argument.number == 0))
      node.fail(fmt::format("{} cannot be passed as {}", argument.text, node.text().value),
                "addresses are pointers, numbers are numbers; only the constant 0 is both");
    const bool whole = argument.what == What::param
                           ? holds_integers(op_.params[static_cast<std::size_t>(argument.index)])
                       : argument.what == What::constant ? argument.number == std::floor(argument.number)
                                                         : true;
    if (is_integer(type) && !whole)
      node.fail(fmt::format("{} is a real number and cannot be passed as {}", argument.text, node.text().value),
                "use float or double");
    argument.type = type;
  }

  const OpDescriptor& op_;
  Defaults defaults_;
};

Type default_type(const Fields& fields, std::string_view key, Type otherwise, bool integers) {
  const Node* node = fields.find(key);
  if (node == nullptr) return otherwise;
  const Type type = type_from(*node);
  if (type == Type::pointer || is_integer(type) != integers)
    node->fail(fmt::format("{} cannot be '{}'", key, node->text().value),
               integers ? "use int32, int64 or size_t" : "use float or double");
  return type;
}

void require(Shim& shim, const Node& node) {
  const std::string word = node.one_of({"row-major", "dense row-major", "no empty tensors", "aligned to 16 bytes",
                                        "aligned to 32 bytes", "aligned to 64 bytes"})
                               .value;
  if (word == "row-major") shim.row_major = true;
  else if (word == "dense row-major") shim.dense = true;
  else if (word == "no empty tensors") shim.nonempty = true;
  else
    shim.alignment = std::max<std::size_t>(shim.alignment, word.find("16") != word.npos   ? 16
                                                           : word.find("32") != word.npos ? 32
                                                                                          : 64);
}

}  // namespace

Shim Shim::read_arguments(const OpDescriptor& op, const Fields& fields, const Node* list) {
  Shim shim;
  const Defaults defaults{default_type(fields, "integers", Type::int32, true),
                          default_type(fields, "reals", Type::real32, false)};
  const Arguments arguments(op, defaults);
  if (list != nullptr)
    for (const Node& node : list->items()) shim.arguments.push_back(arguments.read(node));
  if (const Node* conditions = fields.find("requires")) {
    if (!conditions->is_list()) plugin::require(shim, *conditions);
    else
      for (const Node& condition : conditions->items()) plugin::require(shim, condition);
  }
  return shim;
}

Shim Shim::read(const OpDescriptor& op, const std::string& text, const std::string& label) {
  const Node root = Node::parse(text, label, "the shim");
  const Fields fields(root, {"symbol", "args", "integers", "reals", "requires", "returns", "refused", "declares"});
  Shim shim = read_arguments(op, fields, &fields.require("args"));
  shim.symbol = fields.text_or("symbol", "");
  shim.declares = fields.text_or("declares", "");
  if (const Node* returns = fields.find("returns"))
    shim.returns_status = returns->one_of({"void", "status"}).value == "status";
  if (const Node* refused = fields.find("refused")) {
    constexpr Index kMost = std::numeric_limits<int>::max();
    const Index status = refused->integer(-kMost, kMost);
    if (!shim.returns_status || status == 0)
      refused->fail("'refused' names no status", "add `returns: status`; 0 is the status of a call that was done");
    shim.refused = static_cast<int>(status);
  }
  return shim;
}

}  // namespace assay::plugin
