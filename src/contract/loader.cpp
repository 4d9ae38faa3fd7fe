#include "contract/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "contract/validate.hpp"
#include "contract/expression.hpp"
#include "contract/reader.hpp"
#include "contract/standard.hpp"

namespace assay::contract {
namespace {

using model::Text;

constexpr Index kLargestDim = std::numeric_limits<std::int32_t>::max();

std::vector<std::string> texts(const Node& list) {
  std::vector<std::string> result;
  for (const Node& item : list.items()) result.push_back(item.text().value);
  return result;
}

/// Returns one expression per axis, from a list or from text such as "[m, k + 1]".
std::vector<Text> axes(const Node& node) {
  std::vector<Text> result;
  if (node.is_list()) {
    for (const Node& item : node.items()) result.push_back(item.text());
  } else {
    const Text whole = node.text();
    const std::string& text = whole.value;
    if (text.size() < 3 || text.front() != '[' || text.back() != ']' || malformed(text))
      node.fail(fmt::format("'{}' is not a list of extents", text), "write it like \"[m, k + 1]\"");
    for (const std::string& part : separated(text.substr(1, text.size() - 2))) result.push_back({part, whole.at});
  }
  if (result.size() > Shape::kMaxRank)
    node.fail(fmt::format("'{}' has {} axes", node.name(), result.size()),
              fmt::format("tensors have at most {}", Shape::kMaxRank));
  return result;
}

model::Dim read_dim(const Text& name, const Node& node) {
  const Fields fields(node, {"min", "max", "says", "multiple", "typical", "independent", "counts"});
  const Node* min = fields.find("min");
  model::Dim dim{name, min ? min->integer(0, kLargestDim) : 1, 0, fields.require("says").text().value};
  dim.max = fields.require("max").integer(dim.min, kLargestDim);
  dim.independent = fields.find("independent") != nullptr && fields.require("independent").boolean();
  if (const Node* counts = fields.find("counts")) dim.counts = counts->one_of({"batch", "heads"});
  if (const Node* multiple = fields.find("multiple")) dim.multiple = multiple->text();
  if (const Node* typical = fields.find("typical"))
    for (const Node& item : typical->items()) dim.typical.push_back(item.integer(dim.min, dim.max));
  return dim;
}

model::Param read_param(const Text& name, const Node& node) {
  const Fields fields(node, {"min", "max", "typical", "choices", "integer", "says"});
  if (const Node* choices = fields.find("choices")) {
    model::Param param{name, 0, 0, 0, fields.require("says").text().value};
    for (const Node& item : choices->items()) param.choices.push_back(item.number());
    const auto [least, most] = std::ranges::minmax(param.choices);
    param.min = least, param.max = most, param.typical = param.choices.front();
    for (std::string_view key : {"min", "max", "typical", "integer"})
      if (const Node* other = fields.find(key))
        other->fail(fmt::format("parameter '{}' has both choices and '{}'", name.value, key), "give one of the two");
    return param;
  }
  const Node& typical = fields.require("typical");
  model::Param param{name, fields.require("min").number(), fields.require("max").number(), 0,
                     fields.require("says").text().value};
  param.integer = fields.find("integer") != nullptr && fields.require("integer").boolean();
  if (!typical.is_list()) param.usual = {typical.number()};
  else
    for (const Node& item : typical.items()) param.usual.push_back(item.number());
  param.typical = param.usual.front();
  for (const double value : param.usual) {
    const double rounded = param.integer ? value : static_cast<float>(value);  // the value as cases draw it
    if (rounded < param.min || param.max < rounded)
      node.fail(fmt::format("parameter '{}' needs min <= typical <= max", name.value), "reorder the three numbers");
  }
  return param;
}

model::Tensor read_tensor(const Text& name, const Node& node) {
  const Fields fields(node, {"role", "dtype", "shape", "strided", "values", "saved", "no_gradient", "says"});
  const std::string role = fields.require("role").one_of({"in", "out", "inout"}).value;
  const std::string dtype = fields.require("dtype").one_of({"f32", "storage", "i32", "u8"}).value;
  const auto flag = [&](std::string_view key) { return fields.find(key) != nullptr && fields.require(key).boolean(); };
  model::Tensor tensor{.name = name,
                       .role = role == "in"    ? Role::in
                               : role == "out" ? Role::out
                                               : Role::inout,
                       .dtype = dtype == "i32"  ? DType::i32
                                : dtype == "u8" ? DType::u8
                                                : DType::f32,
                       .shape = axes(fields.require("shape")),
                       .strided = flag("strided"),
                       .says = fields.require("says").text().value,
                       .storage = dtype == "storage",
                       .saved = flag("saved"),
                       .no_gradient = fields.text_or("no_gradient", "")};
  if (tensor.saved && tensor.role != Role::out)
    node.fail(fmt::format("'{}' is saved but no output", name.value), "only outputs are kept for the backward pass");
  if (!tensor.no_gradient.empty() && tensor.role != Role::in)
    node.fail(fmt::format("'{}' has no_gradient but is no input", name.value), "remove the key");
  const Node* values = fields.find("values");
  if ((values != nullptr) != (tensor.dtype == DType::i32 && tensor.role != Role::out))
    node.fail(fmt::format("'{}' {} 'values'", name.value, values ? "has" : "lacks"),
              "inputs of i32 have 'values: {min: 0, max: \"n - 1\"}', other tensors have none");
  if (values != nullptr) {
    const Fields range(*values, {"min", "max"});
    tensor.least = range.require("min").text();
    tensor.most = range.require("max").text();
  }
  return tensor;
}

model::Breakage read_breakage(const Node& node) {
  const Fields fields(node, {"shape", "strides", "alias", "dim", "nullptr", "param", "value"});
  const auto entries = node.entries();
  if (entries.size() != 1) node.fail("a violation changes one thing", "make a list of violations, one key each");
  const auto& [kind, value] = entries.front();
  model::Breakage breakage;
  if (kind.value == "nullptr") {
    breakage.kind = Violation::Kind::null;
    breakage.target = value.text();
    return breakage;
  }
  if (kind.value == "alias") {
    const std::vector<Node> pair = value.items();
    if (pair.size() != 2) value.fail("'alias' takes two tensors", "write [changed, the one whose memory it takes]");
    breakage.kind = Violation::Kind::alias;
    breakage.target = pair[0].text();
    breakage.other = pair[1].text();
    return breakage;
  }
  const auto targets = value.entries();
  if (targets.size() != 1) value.fail("a violation changes one thing", "make a list of violations, one name each");
  const auto& [name, change] = targets.front();
  breakage.target = name;
  breakage.kind = kind.value == "shape"     ? Violation::Kind::shape
                  : kind.value == "strides" ? Violation::Kind::strides
                  : kind.value == "dim"     ? Violation::Kind::dim
                  : kind.value == "value"   ? Violation::Kind::value
                                            : Violation::Kind::param;
  if (breakage.kind == Violation::Kind::param) breakage.number = change.number();
  else if (breakage.kind == Violation::Kind::dim || breakage.kind == Violation::Kind::value)
    breakage.value = {change.text()};
  else breakage.value = axes(change);
  return breakage;
}

model::Clause read_requires(const Node& node) {
  const Fields fields(node, {"id", "expr", "says", "reads", "violate"});
  model::Clause clause;
  clause.id = fields.require("id").text();
  clause.expr = fields.require("expr").text();
  clause.says = fields.text_or("says", clause.expr.value);
  if (const Node* reads = fields.find("reads"))
    for (const Node& item : reads->items()) clause.reads.push_back(item.text());
  const Node& violate = fields.require("violate");
  if (violate.is_list())
    for (const Node& item : violate.items()) clause.violate.push_back(read_breakage(item));
  else clause.violate.push_back(read_breakage(violate));
  return clause;
}

model::Clause read_ensures(const model::Contract& contract, const Node& node) {
  const Fields fields(node, {"id", "expr", "certificate", "says"});
  const Node* certificate = fields.find("certificate");
  if ((certificate != nullptr) == (fields.find("expr") != nullptr))
    node.fail("an ensures clause has either 'expr' or 'certificate'", "give one of the two");
  model::Clause clause;
  clause.id = fields.require("id").text();
  clause.kind = certificate ? ClauseKind::certificate : ClauseKind::ensures_clause;
  clause.expr = certificate ? certificate->text() : fields.require("expr").text();
  clause.says = certificate ? fields.require("says").text().value : fields.text_or("says", clause.expr.value);
  for (const model::Tensor& tensor : contract.tensors)
    if (certificate ? mentions(clause.expr.value, tensor.name.value)
                    : reads_element(clause.expr.value, tensor.name.value))
      clause.reads.push_back(tensor.name);
  return clause;
}

model::Obligation read_obligation(const Node& node) {
  const Fields fields(node, {"id", "claim", "prediction", "by", "if_fails"});
  const Text by = fields.require("by").text();
  if (!model::builtin_check(by.value))  // add_standard() fills in missing fields
    for (std::string_view key : {"id", "claim", "if_fails"}) fields.require(key);
  const Node* id = fields.find("id");
  return {id ? id->text() : Text{}, fields.text_or("claim", ""), fields.text_or("prediction", ""), by,
          fields.text_or("if_fails", "")};
}

/// Reads the entries of the map under `key`, if present, into a list.
template <class T>
std::vector<T> read_map(const Fields& top, std::string_view key, T (*read)(const Text&, const Node&)) {
  std::vector<T> result;
  if (const Node* map = top.find(key))
    for (const auto& [name, node] : map->entries()) result.push_back(read(name, node));
  return result;
}

model::ShapeRegion read_region(const Text& name, const Node& node) {
  model::ShapeRegion region{name, {}};
  for (const Node& item : node.items()) {
    model::ShapeTuple& tuple = region.tuples.emplace_back();
    tuple.at = {name.value, item.at()};
    for (const auto& [dim, value] : item.entries()) {
      model::ShapeTuple::Extent& extent = tuple.extents.emplace_back(dim, std::vector<Text>{});
      if (!value.is_list()) extent.values = {value.text()};
      else
        for (const Node& one : value.items()) extent.values.push_back(one.text());
    }
  }
  return region;
}

model::Pin read_pin(const Text& name, const Node& node) {
  const Fields fields(node, {"says", "tested_by"});
  return {name, fields.require("says").text().value, fields.require("tested_by").text()};
}

model::Gradient read_gradient(const Text& input, const Node& node) {
  const Fields fields(node, {"id", "equation", "by"});
  const Node* by = fields.find("by");
  return {input, fields.require("id").text(), fields.require("equation").text().value, by ? by->text() : Text{}};
}

model::Equation read_equation(const Text& name, const Node& node) { return {name, node.text().value}; }

}  // namespace

model::Contract load(const std::string& path, const std::string& label) {
  const Node root = Node::load(path, label);
  const Fields top(root, {"op",        "code",     "summary", "sources",   "dims",         "params",    "tensors",
                          "equations", "requires", "ensures", "shapes",    "terms",        "nonfinite", "determinism",
                          "copies",    "inputs",   "pins",    "gradients", "no_gradients", "falsify"});
  for (std::string_view key :
       {"op", "code", "summary", "sources", "dims", "tensors", "equations", "nonfinite", "determinism"})
    top.require(key);

  model::Contract contract;
  contract.file = label;
  contract.op = top.require("op").text();
  contract.code = top.require("code").text();
  contract.summary = top.require("summary").text().value;
  contract.sources = texts(top.require("sources"));
  contract.dims = read_map(top, "dims", read_dim);
  contract.params = read_map(top, "params", read_param);
  contract.tensors = read_map(top, "tensors", read_tensor);
  contract.equations = read_map(top, "equations", read_equation);
  contract.shapes = read_map(top, "shapes", read_region);
  if (const Node* terms = top.find("terms")) contract.terms = terms->text();
  if (const Node* conditions = top.find("requires"))
    for (const Node& node : conditions->items()) contract.clauses.push_back(read_requires(node));
  if (const Node* ensures = top.find("ensures"))
    for (const Node& node : ensures->items()) contract.clauses.push_back(read_ensures(contract, node));
  contract.nonfinite = top.require("nonfinite").one_of({"propagate", "reject", "bitwise"});
  contract.determinism = top.require("determinism").one_of({"bitwise", "none"});
  contract.copies = top.find("copies") != nullptr && top.require("copies").boolean();
  if (const Node* inputs = top.find("inputs")) contract.inputs = inputs->text();
  if (const Node* reason = top.find("no_gradients")) contract.no_gradients = reason->text();
  contract.pins = read_map(top, "pins", read_pin);
  contract.gradients = read_map(top, "gradients", read_gradient);
  if (const Node* obligations = top.find("falsify"))
    for (const Node& node : obligations->items()) contract.obligations.push_back(read_obligation(node));

  const std::string basename = std::filesystem::path(path).stem().string();
  if (contract.op.value != basename)
    fail_at(label, contract.op.at, fmt::format("op is '{}' but the file is named '{}'", contract.op.value, basename),
            fmt::format("rename the file to {}.yaml or the op to {}", contract.op.value, basename));
  check_code(contract);
  add_standard(contract);
  check(contract);
  return contract;
}

}  // namespace assay::contract
