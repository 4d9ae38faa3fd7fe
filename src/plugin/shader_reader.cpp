#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "contract/reader.hpp"
#include "plugin/shader.hpp"

namespace assay::plugin {
namespace {

using contract::Fields;
using contract::Node;

/// Reads "(rows + 63) / 64" by recursive descent: sums of products of numbers, dims and brackets.
class CountReader {
 public:
  CountReader(const OpDescriptor& op, const Node& node) : op_(op), node_(node), text_(node.text().value) {}

  GroupCount read() {
    GroupCount count = sum();
    if (at_ != text_.size()) fail();
    return count;
  }

 private:
  [[noreturn]] void fail() const {
    node_.fail(fmt::format("'{}' is no count of workgroups", text_),
               "write dims and whole numbers with + - * / % and brackets");
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  GroupCount sum() {
    GroupCount left = product();
    for (char sign = peek(); sign == '+' || sign == '-'; sign = peek()) {
      ++at_;
      GroupCount right = product();
      left = [left, right, sign](const auto& dims) {
        return sign == '+' ? left(dims) + right(dims) : left(dims) - right(dims);
      };
    }
    return left;
  }

  GroupCount product() {
    GroupCount left = factor();
    for (char sign = peek(); sign == '*' || sign == '/' || sign == '%'; sign = peek()) {
      ++at_;
      GroupCount right = factor();
      left = [left, right, sign](const auto& dims) -> Index {
        const Index a = left(dims), b = right(dims);
        if (sign == '*') return a * b;
        if (b == 0) return -1;  // no count: the call is refused
        return sign == '/' ? a / b : a % b;
      };
    }
    return left;
  }

  GroupCount factor() {
    if (peek() == '(') {
      ++at_;
      GroupCount inner = sum();
      if (peek() != ')') fail();
      ++at_;
      return inner;
    }
    const std::size_t end = std::min(text_.find_first_of(" +-*/%()", at_), text_.size());
    const std::string word = text_.substr(at_, end - at_);
    at_ = end;
    int number = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (!word.empty() && error == std::errc{} && rest == word.data() + word.size())
      return [number](const auto&) { return Index{number}; };
    const auto dim = std::ranges::find(op_.dims, word, &DimInfo::name);
    if (word.empty()) fail();
    if (dim == op_.dims.end()) {
      std::vector<std::string_view> names;
      for (const DimInfo& d : op_.dims) names.push_back(d.name);
      node_.fail(fmt::format("'{}' is no dim of {}", word, op_.name), contract::suggestion(word, names));
    }
    const auto index = static_cast<std::size_t>(dim - op_.dims.begin());
    return [index](const std::vector<Index>& dims) { return dims[index]; };
  }

  const OpDescriptor& op_;
  const Node& node_;
  std::string text_;
  std::size_t at_ = 0;
};

/// Tensors by binding: each of the operation's has one, and they are 0, 1, ...
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
  for (const Shim::Argument& a : map.push.arguments)
    if (a.type != Shim::Type::int32 && a.type != Shim::Type::real32)
      fields.require("push").fail(fmt::format("{} takes no 4 bytes", a.text),
                                  "push constants are dims, params, strides and constants, as int32 or float");
  const Node& groups = fields.require("groups");
  const std::vector<Node> axes = groups.items();
  if (axes.size() > 3) groups.fail(fmt::format("workgroups have {} axes", axes.size()), "give at most 3");
  for (const Node& axis : axes) map.groups.push_back(CountReader(op, axis).read());
  if (const Node* constants = fields.find("specialization"))
    for (const Node& item : constants->items())
      map.specialization.push_back(
          static_cast<std::uint32_t>(item.integer(0, std::numeric_limits<std::uint32_t>::max())));
  return map;
}

}  // namespace assay::plugin
