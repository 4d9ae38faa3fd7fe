#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include "contract/reader.hpp"
#include "core/errors.hpp"
#include "plugin/shim.hpp"

namespace assay::plugin {
namespace {

using contract::Fields;
using contract::Node;
using Type = Shim::Type;
using What = Shim::What;
using Argument = Shim::Argument;

struct Defaults {
  Type integers = Type::int32;
  Type reals = Type::real32;
};

bool takes_integers(Type type) {
  return type == Type::int32 || type == Type::int64 || type == Type::size || type == Type::character;
}

struct Named {
  Type type;
  bool by_address;
};
/// Parses "int64", or with a star the address of one.
Named type_from(const Node& node) {
  static const std::vector<std::string_view> names{"int32", "int64", "size_t", "char", "float", "double", "pointer"};
  std::string word = node.text().value;
  const bool star = word.back() == '*';
  if (star) word.pop_back();
  const auto found = std::ranges::find(names, word);
  if (found == names.end() || (star && word == "pointer"))
    node.fail(fmt::format("'as' cannot be '{}'", node.text().value), contract::suggestion(word, names));
  return {static_cast<Type>(found - names.begin()), star};
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

/// Returns the items of a list, or a single node as one item.
std::vector<Node> list_or_one(const Node& node) { return node.is_list() ? node.items() : std::vector<Node>{node}; }

bool holds_integers(const ParamInfo& param) {
  return param.integer ||
         (!param.choices.empty() && std::ranges::all_of(param.choices, [](double x) { return x == std::floor(x); }));
}

Shape shape_of(const TensorInfo& tensor, const OpDescriptor& op) {
  std::vector<Index> dims;
  for (std::size_t d = 0; d < op.dims.size(); ++d) dims.push_back(static_cast<Index>(2 * d + 3));
  return tensor.shape(dims);
}

constexpr std::string_view kOneThing =
    "give one of dim, param, tensor, leading, stride, elements, bytes, product, expression, constant, text, workspace, "
    "joined, "
    "sequence, index and value, and `as` beside it";

/// The arguments of one shim.
class Arguments {
 public:
  Arguments(const OpDescriptor& op, const Defaults& defaults) : op_(op), defaults_(defaults) {}

  Argument read(const Node& node) const { return node.is_map() ? derived(node) : named(node); }

 private:
  Argument make(What what, Type type, std::string text, int index = 0) const {
    Argument a;
    a.what = what, a.type = type, a.index = index, a.text = std::move(text);
    return a;
  }

  Argument named(const Node& node) const {
    const std::string name = node.text().value;
    if (const int d = index_of(op_.dims, name); d >= 0) return make(What::dim, defaults_.integers, name, d);
    if (const int p = index_of(op_.params, name); p >= 0) return param(p, name);
    if (const int t = index_of(op_.tensors, name); t >= 0) return make(What::tensor, Type::pointer, name, t);
    if (name == "stream") return make(What::stream, Type::pointer, name);
    if (name == "nullptr") return make(What::constant, Type::pointer, name);
    std::vector<std::string_view> names{"stream", "nullptr"};
    for (const DimInfo& dim : op_.dims) names.push_back(dim.name);
    for (const ParamInfo& p : op_.params) names.push_back(p.name);
    for (const TensorInfo& tensor : op_.tensors) names.push_back(tensor.name);
    node.fail(fmt::format("'{}' is no dim, param or tensor of {}", name, op_.name), contract::suggestion(name, names));
  }

  Argument param(int index, const std::string& name) const {
    const ParamInfo& info = op_.params[static_cast<std::size_t>(index)];
    return make(What::param, holds_integers(info) ? defaults_.integers : defaults_.reals, name, index);
  }

  /// Parses an argument written as a map: one key gives its kind, `as` its type.
  Argument derived(const Node& node) const {
    const Fields fields(node, {"dim",   "param",    "tensor",     "leading",  "stride", "in",        "elements",
                               "bytes", "product",  "expression", "constant", "text",   "workspace", "joined",
                               "axis",  "sequence", "count",      "index",    "value",  "as"});
    Argument argument = untyped(fields, node);
    const Node* as = fields.find("as");
    std::size_t keys = as == nullptr ? 1 : 2;
    if (argument.what == What::stride && fields.find("in") != nullptr) ++keys;
    if (argument.what == What::joined || argument.what == What::sequence) ++keys;
    if (node.entries().size() != keys) node.fail("an argument is one thing", std::string(kOneThing));
    if (as != nullptr) retype(argument, type_from(*as), *as);
    else if (argument.what == What::constant)
      node.fail("a constant has no type of its own", "add `as`: {constant: 1, as: float}");
    return argument;
  }

  Argument untyped(const Fields& fields, const Node& node) const {
    const Type integers = defaults_.integers;
    if (const Node* dim = fields.find("dim"))
      return make(What::dim, integers, dim->text().value, require_index(op_.dims, *dim, "dim"));
    if (const Node* name = fields.find("param"))
      return param(require_index(op_.params, *name, "param"), name->text().value);
    if (const Node* tensor = fields.find("tensor"))
      return make(What::tensor, Type::pointer, tensor->text().value, require_index(op_.tensors, *tensor, "tensor"));
    if (const Node* tensor = fields.find("leading")) return unit(leading(*tensor), fields);
    if (const Node* list = fields.find("stride")) return unit(stride(*list), fields);
    for (const char* count : {"elements", "bytes"})
      if (const Node* tensor = fields.find(count)) return counted(count, *tensor);
    if (const Node* list = fields.find("product")) return product(*list);
    if (const Node* number = fields.find("expression")) {
      Argument a = make(What::number, integers, number->text().value);
      a.expression = read_expression(op_, *number);
      if (!a.expression.whole) a.type = defaults_.reals;
      return a;
    }
    if (const Node* constant = fields.find("constant")) {
      Argument a = make(What::constant, Type::real64, "a constant");
      a.number = constant->number();
      return a;
    }
    if (const Node* text = fields.find("text")) return make(What::text, Type::pointer, text->text().value);
    if (const Node* bytes = fields.find("workspace")) {
      Argument a = make(What::workspace, Type::pointer, "its workspace");
      a.expression = read_expression(op_, *bytes);
      return a;
    }
    if (const Node* list = fields.find("joined")) return joined(*list, fields.require("axis"));
    if (const Node* first = fields.find("sequence")) {
      Argument a = make(What::sequence, Type::pointer, "the sequence from " + first->text().value,
                        require_index(op_.params, *first, "param"));
      a.expression = read_expression(op_, fields.require("count"));
      return a;
    }
    if (const Node* dim = fields.find("index"))
      return make(What::index, integers, "the index of " + dim->text().value, require_index(op_.dims, *dim, "dim"));
    if (const Node* tensor = fields.find("value")) {
      const int t = require_index(op_.tensors, *tensor, "tensor");
      const DType dtype = op_.tensors[static_cast<std::size_t>(t)].dtype;
      if (dtype != DType::i32 && dtype != DType::f32) tensor->fail("it holds no int32 or float", "pass its address");
      return make(What::value, dtype == DType::i32 ? integers : defaults_.reals, tensor->text().value, t);
    }
    node.fail("an argument is one thing", std::string(kOneThing));
  }

  int rank(int tensor) const { return shape_of(op_.tensors[static_cast<std::size_t>(tensor)], op_).rank(); }

  Argument unit(Argument argument, const Fields& fields) const {
    if (const Node* in = fields.find("in")) argument.in_bytes = in->one_of({"elements", "bytes"}).value == "bytes";
    return argument;
  }

  Argument leading(const Node& node) const {
    const int tensor = require_index(op_.tensors, node, "tensor");
    if (rank(tensor) < 2)
      node.fail(fmt::format("{} has no rows and so no leading dimension", node.text().value),
                "remove the argument or give a constant");
    Argument a = make(What::stride, defaults_.integers, "the leading dimension of " + node.text().value, tensor);
    a.axis = rank(tensor) - 2;
    return a;
  }

  Argument stride(const Node& node) const {
    const std::vector<Node> pair = node.items();
    if (pair.size() != 2) node.fail("a stride is one of a tensor and an axis", "write [tensor, axis], as in [a, 0]");
    const int tensor = require_index(op_.tensors, pair[0], "tensor");
    Argument a = make(What::stride, defaults_.integers, "", tensor);
    a.axis = static_cast<int>(pair[1].integer(0, rank(tensor) - 1));
    a.text = fmt::format("stride {} of {}", a.axis, pair[0].text().value);
    return a;
  }

  Argument counted(const std::string& what, const Node& node) const {
    const auto tensor = static_cast<std::size_t>(require_index(op_.tensors, node, "tensor"));
    Argument a = make(What::number, defaults_.integers, fmt::format("{} of {}", what, node.text().value));
    a.expression.value = [tensor, bytes = what == "bytes"](const Scope& s) {
      return static_cast<double>(s.tensors[tensor].shape.size()) *
             (bytes ? static_cast<double>(size_of(s.tensors[tensor].dtype)) : 1);
    };
    return a;
  }

  Argument product(const Node& node) const {
    Argument a = make(What::number, defaults_.integers, "");
    std::vector<std::size_t> dims;
    for (const Node& dim : node.items()) {
      dims.push_back(static_cast<std::size_t>(require_index(op_.dims, dim, "dim")));
      a.text += (a.text.empty() ? "" : " * ") + dim.text().value;
    }
    a.expression.value = [dims](const Scope& s) {
      double product = 1;
      for (const std::size_t d : dims) product *= static_cast<double>(s.dims[d]);
      return product;
    };
    return a;
  }

  Argument joined(const Node& list, const Node& axis) const {
    Argument a = make(What::joined, Type::pointer, "what is joined of");
    for (const Node& node : list.items()) {
      const int t = require_index(op_.tensors, node, "tensor");
      const TensorInfo& tensor = op_.tensors[static_cast<std::size_t>(t)];
      if (tensor.role != Role::in) node.fail(fmt::format("{} is an output", tensor.name), "join inputs");
      if (!a.tensors.empty() &&
          (rank(t) != rank(a.tensors[0]) || tensor.dtype != op_.tensors[static_cast<std::size_t>(a.tensors[0])].dtype))
        node.fail(fmt::format("{} has another rank or type than what it is joined to", tensor.name),
                  "join tensors of one rank and type");
      a.tensors.push_back(t);
      a.text.append(" ").append(tensor.name);
    }
    a.axis = static_cast<int>(axis.integer(0, rank(a.tensors[0]) - 1));
    return a;
  }

  void retype(Argument& argument, const Named& named, const Node& node) const {
    const Type type = named.type;
    const bool letter = argument.what == What::text && type == Type::character && !named.by_address;
    const bool null = argument.what == What::constant && argument.number == 0 && !named.by_address;
    if (((type == Type::pointer) != (argument.type == Type::pointer) && !null && !letter) ||
        (named.by_address && argument.type == Type::pointer))
      node.fail(fmt::format("{} cannot be passed as {}", argument.text, node.text().value),
                "addresses are pointers, numbers are numbers; only the constant 0 is both");
    const bool whole = argument.what == What::param
                           ? holds_integers(op_.params[static_cast<std::size_t>(argument.index)])
                       : argument.what == What::constant ? argument.number == std::floor(argument.number)
                       : argument.what == What::number   ? argument.expression.whole
                                                         : true;
    if (takes_integers(type) && !whole)
      node.fail(fmt::format("{} is a real number and cannot be passed as {}", argument.text, node.text().value),
                "use float or double");
    argument.type = type;
    argument.by_address = named.by_address;
  }

  const OpDescriptor& op_;
  Defaults defaults_;
};

Type default_type(const Fields& fields, std::string_view key, Type otherwise, bool integers) {
  const Node* node = fields.find(key);
  if (node == nullptr) return otherwise;
  const auto [type, by_address] = type_from(*node);
  if (type == Type::pointer || by_address || takes_integers(type) != integers)
    node->fail(fmt::format("{} cannot be '{}'", key, node->text().value),
               integers ? "use int32, int64 or size_t" : "use float or double");
  return type;
}

/// Parses "lengths == t": all elements of a tensor of integers. Empty unless the text begins with such a tensor.
std::optional<Shim::Fixed> fixed_values(const OpDescriptor& op, const Node& node) {
  const std::string text = node.text().value;
  const std::size_t equals = text.find("==");
  if (equals == text.npos) return std::nullopt;
  std::string name = text.substr(0, equals);
  std::erase(name, ' ');
  const int tensor = index_of(op.tensors, name);
  if (tensor < 0) return std::nullopt;
  if (op.tensors[static_cast<std::size_t>(tensor)].dtype != DType::i32 ||
      op.tensors[static_cast<std::size_t>(tensor)].role != Role::in)
    node.fail(fmt::format("{} is no input of integers", name), "only their values can be required");
  const Node value = Node::parse("value: \"" + text.substr(equals + 2) + "\"", "", "a value");
  try {
    return Shim::Fixed{tensor, read_expression(op, value.entries()[0].second)};
  } catch (const InputError& e) {
    node.fail(e.problem, e.remedy);
  }
}

/// Returns the condition on dims under which the contract admits the value.
Condition admitted_by_contract(const OpDescriptor& op, const Shim::Fixed& fixed, const std::string& text) {
  const TensorInfo& tensor = op.tensors[static_cast<std::size_t>(fixed.tensor)];
  Condition condition;
  condition.holds = [&tensor, value = fixed.value.value](const Scope& scope) {
    return admits_integer(tensor, scope.dims, value(scope));
  };
  condition.text = fmt::format("{}, which the contract forbids here", text);
  condition.numbers = {fixed.value};
  for (std::size_t d = 0; d < op.dims.size(); ++d)
    if (range_depends_on(op, tensor, d)) condition.dims.push_back(static_cast<int>(d));
  return condition;
}

void require(Shim& shim, std::vector<Condition>& conditions, bool& nonempty, const OpDescriptor& op, const Node& node) {
  const std::string word = node.text().value;
  if (word == "row-major") shim.row_major = true;
  else if (word == "dense row-major" || word == "dense rows") shim.dense = true;
  else if (word == "offsets below 2^31") shim.near = true;
  else if (word == "no empty tensors") nonempty = true;
  else if (word == "aligned to 16 bytes" || word == "aligned to 32 bytes" || word == "aligned to 64 bytes")
    shim.alignment = std::max(shim.alignment, static_cast<std::size_t>(std::stoi(word.substr(11))));
  else if (word.find_first_of("<>=") == word.npos && word.find(" in ") == word.npos)
    node.fail(
        fmt::format("'requires' cannot be '{}'", word),
        "write a condition such as \"k % 8 == 0\" or \"d in [64, 128]\", or one of: row-major, dense rows, offsets below 2^31, "
        "no empty tensors, aligned to 16 bytes, aligned to 32 bytes, aligned to 64 bytes");
  else if (auto fixed = fixed_values(op, node)) {
    conditions.push_back(admitted_by_contract(op, *fixed, word));
    shim.fixed.push_back(std::move(*fixed));
  } else conditions.push_back(read_condition(op, node));
}

/// Returns a message about two conditions on one dim that no extent satisfies; empty if no such pair is found.
std::string contradiction(const OpDescriptor& op, const std::vector<Condition>& conditions) {
  for (std::size_t i = 0; i < conditions.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Condition &one = conditions[j], &other = conditions[i];
      if (one.dims.size() != 1 || one.dims != other.dims || !one.params.empty() || !other.params.empty()) continue;
      const auto d = static_cast<std::size_t>(one.dims[0]);
      std::vector<Index> dims;
      for (const DimInfo& dim : op.dims) dims.push_back(dim.min);
      const std::vector<double> params(op.params.size());
      const auto holds = [&](const Condition& c) { return c.holds(Scope{dims, params}); };
      bool any_one = false, any_other = false, both = false;
      for (dims[d] = op.dims[d].min; dims[d] <= op.dims[d].max && !both; ++dims[d]) {
        const bool here = holds(one), there = holds(other);
        any_one = any_one || here, any_other = any_other || there, both = here && there;
      }
      if (any_one && any_other && !both)
        return fmt::format("'{}' and '{}' contradict each other", one.text, other.text);
    }
  return {};
}

/// Parses `requires`. A kernel that takes no call at all cannot be tested, so this is an error.
void read_requirements(Shim& shim, const OpDescriptor& op, const Node& node) {
  std::vector<Condition> conditions;
  bool nonempty = false;
  for (const Node& item : list_or_one(node)) require(shim, conditions, nonempty, op, item);
  shim.requirements.emplace(op, conditions, nonempty);
  std::vector<Index> dims;
  std::vector<double> params;
  for (const DimInfo& dim : op.dims) dims.push_back(std::clamp<Index>(8, dim.min, dim.max));
  for (const ParamInfo& param : op.params) params.push_back(param.typical);
  if (shim.requirements->repair(dims, params, 1)) return;
  const std::string two = contradiction(op, conditions);
  node.fail(!two.empty() ? two
                         : fmt::format("no call of {} was found that it admits ({} never holds)", op.name,
                                       shim.requirements->refuse(dims, params).value_or("it")),
            "require what the contract's dims and params can satisfy");
}

/// Parses all keys other than the arguments.
class Keys {
 public:
  Keys(const OpDescriptor& op, const Fields& fields, Shim& shim) : op_(op), fields_(fields), shim_(shim) {}

  void read() {
    if (const Node* list = fields_.find("loop"))
      for (const Node& dim : list_or_one(*list)) shim_.loops.push_back(require_index(op_.dims, dim, "dim"));
    if (const Node* list = fields_.find("absent"))
      for (const Node& node : list_or_one(*list)) shim_.absent.push_back(output(node));
    if (const Node* list = fields_.find("zeroed"))
      for (const Node& node : list_or_one(*list)) shim_.zeroed.push_back(output(node));
    if (const Node* map = fields_.find("in_place"))
      for (const auto& [name, node] : map->entries()) in_place(name.value, node);
    if (const Node* list = fields_.find("rejects"))
      for (const Node& node : list_or_one(*list)) rejects(node);
    returns();
    for (const Argument& a : shim_.arguments) {
      if (a.what != What::index) continue;
      const auto loop = std::ranges::find(shim_.loops, a.index);
      if (loop == shim_.loops.end())
        fields_.require("args").fail(a.text + " belongs to no loop", "add the dim to `loop`");
    }
    for (Argument& a : shim_.arguments)  // index of a dim until here, of its loop from here on
      if (a.what == What::index)
        a.index = static_cast<int>(std::ranges::find(shim_.loops, a.index) - shim_.loops.begin());
  }

  /// Fails for outputs and params that the shim does not mention: the function would be falsified although it is
  /// correct.
  void expect_all_named(const Node& args) const {
    for (std::size_t t = 0; t < op_.tensors.size(); ++t) {
      const auto index = static_cast<int>(t);
      const bool given = std::ranges::any_of(
          shim_.arguments, [&](const Argument& a) { return a.what == What::tensor && a.index == index; });
      if (op_.tensors[t].role == Role::in || given || shim_.returned_tensor == index ||
          std::ranges::find(shim_.absent, index) != shim_.absent.end())
        continue;
      args.fail(fmt::format("no argument is the output '{}'", op_.tensors[t].name),
                fmt::format("add it, or `absent: [{}]` if the function does not give it", op_.tensors[t].name));
    }
    for (std::size_t p = 0; p < op_.params.size(); ++p)
      if (!names_param(p))
        args.fail(fmt::format("no argument is the param '{}'", op_.params[p].name),
                  fmt::format("add it, or the value that the function always has: `requires: {} == {}`",
                              op_.params[p].name, op_.params[p].typical));
  }

 private:
  bool names_param(std::size_t p) const {
    const auto index = static_cast<int>(p);
    return std::ranges::any_of(shim_.arguments,
                               [&](const Argument& a) {
                                 return ((a.what == What::param || a.what == What::sequence) && a.index == index) ||
                                        (a.what == What::number && a.text.find(op_.params[p].name) != a.text.npos);
                               }) ||
           (shim_.requirements && shim_.requirements->mentions(index));
  }

  int output(const Node& node) const {
    const int t = require_index(op_.tensors, node, "tensor");
    if (op_.tensors[static_cast<std::size_t>(t)].role != Role::out)
      node.fail(fmt::format("{} is no output that is only written", node.text().value), "name one that is");
    return t;
  }

  void in_place(const std::string& name, const Node& from) {
    const int y = index_of(op_.tensors, name), x = require_index(op_.tensors, from, "tensor");
    if (y < 0 || op_.tensors[static_cast<std::size_t>(y)].role != Role::out)
      from.fail(fmt::format("'{}' is no output of {}", name, op_.name), "write in_place: {output: input}");
    const TensorInfo &to = op_.tensors[static_cast<std::size_t>(y)], &of = op_.tensors[static_cast<std::size_t>(x)];
    if (of.role != Role::in || to.dtype != of.dtype || to.storage != of.storage ||
        !(shape_of(to, op_) == shape_of(of, op_)))
      from.fail(fmt::format("{} cannot hold {}", name, of.name), "name an input of the output's shape and type");
    shim_.in_place.emplace_back(y, x);
  }

  void rejects(const Node& node) {
    const std::string name = node.text().value;
    if (index_of(op_.tensors, name) < 0 && index_of(op_.params, name) < 0 && index_of(op_.dims, name) < 0)
      node.fail(fmt::format("'{}' is no tensor, param or dim of {}", name, op_.name),
                "name what has values that the contract forbids");
    shim_.rejects.push_back(name);
  }

  void returns() {
    if (const Node* node = fields_.find("returns")) {
      if (node->is_map()) {
        const Fields what(*node, {"value", "as"});
        shim_.returned_tensor = output(what.require("value"));
        if (op_.tensors[static_cast<std::size_t>(shim_.returned_tensor)].dtype != DType::f32)
          node->fail("that output holds no floats", "only floats can be returned");
        if (const Node* as = what.find("as"))
          shim_.returned_type = as->one_of({"float", "double"}).value == "double" ? Type::real64 : Type::real32;
      } else {
        shim_.returns_status = node->one_of({"void", "status"}).value == "status";
      }
    }
    const auto expect_status = [&](const Node& node) {
      if (!shim_.returns_status) node.fail(fmt::format("'{}' names no status", node.name()), "add `returns: status`");
    };
    constexpr Index kMost = std::numeric_limits<int>::max();
    if (const Node* node = fields_.find("done")) {
      expect_status(*node);
      shim_.done = static_cast<int>(node->integer(-kMost, kMost));
    }
    const Node* const refused = fields_.find("refused");
    if (refused == nullptr) return;
    expect_status(*refused);
    if (refused->scalar() == "any") {
      shim_.others_refuse = true;
      return;
    }
    for (const Node& node : list_or_one(*refused)) {
      shim_.refused.push_back(static_cast<int>(node.integer(-kMost, kMost)));
      if (shim_.refused.back() == shim_.done)
        node.fail("'refused' names the status of a call that was done", "give the others, or `any`");
    }
  }

  const OpDescriptor& op_;
  const Fields& fields_;
  Shim& shim_;
};

/// Rewrites `[d in [64, 128]]`, which is invalid YAML because brackets cannot nest in plain text, to `d in (64; 128)`
/// of the same length.
std::string readable(std::string text) {
  static const std::regex list(R"((\w\s+in\s+)\[([^\[\]{}"']*)\])");
  for (std::smatch found; std::regex_search(text, found, list);) {
    std::string values = found[2].str();
    std::ranges::replace(values, ',', ';');
    text = found.prefix().str() + found[1].str() + "(" + values + ")" + found.suffix().str();
  }
  return text;
}

}  // namespace

Shim Shim::read_arguments(const OpDescriptor& op, const Fields& fields, const Node* list) {
  Shim shim;
  const Defaults defaults{default_type(fields, "integers", Type::int32, true),
                          default_type(fields, "reals", Type::real32, false)};
  const Arguments arguments(op, defaults);
  if (list != nullptr)
    for (const Node& node : list->items()) shim.arguments.push_back(arguments.read(node));
  if (const Node* conditions = fields.find("requires")) read_requirements(shim, op, *conditions);
  return shim;
}

Shim Shim::read(const OpDescriptor& op, const std::string& text, const std::string& label) {
  const Node root = Node::parse(readable(text), label, "the shim");
  const Fields fields(root, {"symbol", "args", "integers", "reals", "requires", "loop", "in_place", "absent", "zeroed",
                             "rejects", "returns", "done", "refused", "declares"});
  Shim shim = read_arguments(op, fields, &fields.require("args"));
  shim.symbol = fields.text_or("symbol", "");
  shim.declares = fields.text_or("declares", "");
  Keys keys(op, fields, shim);
  keys.read();
  keys.expect_all_named(fields.require("args"));
  return shim;
}

Shim Shim::read_limits(const OpDescriptor& op, const std::string& text, const std::string& label) {
  const Node root = Node::parse(readable(text), label, "the shim");
  const Fields fields(root, {"requires", "absent", "in_place", "zeroed"});
  Shim shim = read_arguments(op, fields, nullptr);
  Keys(op, fields, shim).read();
  return shim;
}

}  // namespace assay::plugin
