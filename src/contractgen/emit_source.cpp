#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "contract/expression.hpp"
#include "contractgen/emit.hpp"

namespace assay::contractgen {
namespace {

using namespace contract;
using model::Breakage;
using model::Clause;
using model::Text;

std::string joined(const std::vector<Text>& axes) {
  std::vector<std::string_view> parts;
  for (const Text& axis : axes) parts.push_back(axis.value);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string args_name(const Contract& contract) { return pascal_case(contract.op.value) + "Args"; }

/// Emits references that bind all names of the contract to a call's arguments.
void bind_arguments(Source& out, const Contract& contract) {
  std::vector<std::string_view> names;
  for (const auto& dim : contract.dims) names.push_back(dim.name.value);
  for (const auto& param : contract.params) names.push_back(param.name.value);
  for (const auto& tensor : contract.tensors) names.push_back(tensor.name.value);
  out.line("  [[maybe_unused]] const auto& [{}] = *static_cast<const {}*>(args_);", fmt::join(names, ", "),
           args_name(contract));
}

/// Emits a function from dims to a shape, with a YAML position for each axis.
void shape_function(Source& out, const Contract& contract, const std::string& name, const std::vector<Text>& axes) {
  out.line("Shape {}(std::span<const Index> dims_) {{", name);
  for (std::size_t i = 0; i < contract.dims.size(); ++i)
    out.line("  [[maybe_unused]] const Index {} = dims_[{}];", contract.dims[i].name.value, i);
  out.from_yaml(axes.front().at.line, "  return Shape{" + joined(axes) + "};");
  out.line("}}");
}

/// Emits a function from dims to a number.
void number_function(Source& out, const Contract& contract, const std::string& name, const Text& expression) {
  out.line("Index {}([[maybe_unused]] std::span<const Index> dims_) {{", name);
  for (std::size_t i = 0; i < contract.dims.size(); ++i)
    out.line("  [[maybe_unused]] const Index {} = dims_[{}];", contract.dims[i].name.value, i);
  out.from_yaml(expression.at.line, "  return " + expression.value + ";");
  out.line("}}");
}

/// Returns the sides of a condition as the contract words them, or else as written in C++.
Comparison wording(const Clause& clause, std::size_t index, std::size_t count, const Comparison& sides) {
  const std::vector<std::string> said = conjuncts(clause.says);
  if (said.size() == count)
    if (const auto words = comparison(said[index])) return *words;
  return sides;
}

/// Returns the contract's names used in a condition, as arguments of contract::values.
std::string mentioned(const Contract& contract, const std::string& condition) {
  std::vector<std::string> pairs;
  for (const std::string& name : identifiers(condition))
    if (model::dim_index(contract, name) >= 0 || model::param_index(contract, name) >= 0 ||
        model::tensor_index(contract, name) >= 0)
      pairs.push_back(fmt::format("\"{0}\", {0}", name));
  return fmt::format("{}", fmt::join(pairs, ", "));
}

void values_function(Source& out, const Contract& contract, const Clause& clause) {
  const std::vector<std::string> conditions = conjuncts(clause.expr.value);
  out.line("std::string {}_values(const void* args_) {{", function_name(clause.id.value));
  bind_arguments(out, contract);
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    std::string shown = mentioned(contract, conditions[i]);
    if (const auto sides = comparison(conditions[i])) {
      const Comparison words = wording(clause, i, conditions.size(), *sides);
      shown = fmt::format("{}, {}, {}, {}", string_literal(without_spaces(words.left)), sides->left,
                          string_literal(without_spaces(words.right)), sides->right);
    }
    out.from_yaml(clause.expr.at.line, fmt::format("  if (!({})) return values({});", conditions[i], shown));
  }
  out.line("  return {{}};");
  out.line("}}");
}

void clause_functions(Source& out, const Contract& contract, const Clause& clause) {
  const std::string name = function_name(clause.id.value);
  if (clause.kind == ClauseKind::certificate) {
    out.line("Certified {}(const void* args_) {{", name);
    bind_arguments(out, contract);
    out.from_yaml(clause.expr.at.line, "  return " + clause.expr.value + ";");
    out.line("}}");
  } else {
    out.line("bool {}(const void* args_) {{", name);
    bind_arguments(out, contract);
    out.from_yaml(clause.expr.at.line, "  return truth(" + clause.expr.value + ");");
    out.line("}}");
    values_function(out, contract, clause);
  }
  if (clause.reads.empty()) return;
  std::vector<int> tensors;
  for (const Text& tensor : clause.reads) tensors.push_back(model::tensor_index(contract, tensor.value));
  out.line("constexpr int {}_reads[] = {{{}}};", name, fmt::join(tensors, ", "));
}

void enforcement(Source& out, const Contract& contract) {
  out.line("constexpr ClauseCheck kChecks[] = {{");
  for (const Clause& clause : contract.clauses) {
    const std::string name = function_name(clause.id.value);
    if (clause.kind == ClauseKind::certificate) out.line("    {{.certify = &{}}},", name);
    else out.line("    {{.holds = &{0}, .values = &{0}_values}},", name);
  }
  out.line("}};");
  out.line("std::uint64_t counts[std::size(kChecks)];");
  out.blank();
  out.line("void ensure(const Call& call, const Kernel& kernel);");
  out.line("void require(const Call& call, std::size_t clause);");
  out.line("constinit const EnforcedContract kEnforced{{&{}_descriptor, kChecks, counts, &ensure, &require}};",
           contract.op.value);
  out.line("void require(const Call& call, std::size_t clause) {{");
  out.line("  const {0} args = {0}::unpack(call);", args_name(contract));
  out.line("  evaluate(kEnforced, clause, &args);");
  out.line("}}");
  out.line("void ensure(const Call& call, const Kernel& kernel) {{");
  out.line("  const {0} args = {0}::unpack(call);", args_name(contract));
  out.line("  check_ensures(kEnforced, &args, kernel);");
  out.line("}}");
  out.line("void require_all(const Call& call) {{");
  out.line("  const {0} args = {0}::unpack(call);", args_name(contract));
  out.line("  check_requires(kEnforced, &args);");
  out.line("}}");
  out.blank();
  out.line("void checked(const Call& call, const Kernel& kernel, Device& device) {{");
  out.line("  const {0} args = {0}::unpack(call);", args_name(contract));
  out.line("  enforce(kEnforced, &args, call, kernel, device);");
  out.line("}}");
  out.line("std::span<std::uint64_t> evaluations() {{ return counts; }}");
}

void pack(Source& out, const Contract& contract) {
  const std::string args = args_name(contract);
  std::vector<std::string> dims, params, tensors;
  for (const auto& dim : contract.dims) dims.push_back(dim.name.value);
  for (const auto& param : contract.params) params.push_back(param.name.value);
  for (const auto& tensor : contract.tensors) tensors.push_back(fmt::format("contract::erase({})", tensor.name.value));
  out.line("Call {}::pack() const {{", args);
  out.line("  return {{{{{}}}, {{{}}}, {{{}}}}};", fmt::join(dims, ", "), fmt::join(params, ", "),
           fmt::join(tensors, ", "));
  out.line("}}");
}

}  // namespace

void include_of(Source& out, std::string_view folder, std::string_view op) {
  constexpr std::string_view kGradient = "_backward";
  out.line("#if __has_include(\"{}/{}.hpp\")", folder, op);
  out.line("#include \"{}/{}.hpp\"", folder, op);
  if (op.ends_with(kGradient)) {
    op.remove_suffix(kGradient.size());
    out.line("#elif __has_include(\"{}/{}.hpp\")", folder, op);
    out.line("#include \"{}/{}.hpp\"", folder, op);
  }
  out.line("#endif");
}

std::string internal_namespace(const Contract& contract) { return "of_" + contract.op.value; }

void open_internal(Source& out, const Contract& contract) {
  out.line("namespace {{");
  out.line("namespace {} {{", internal_namespace(contract));
}

void close_internal(Source& out, const Contract& contract) {
  out.line("}}  // namespace {}", internal_namespace(contract));
  out.line("}}  // namespace");
}

void dim_limits(Source& out, const Contract& contract) {
  for (const auto& dim : contract.dims)
    out.line("[[maybe_unused]] constexpr Index {0}_min = {1}, {0}_max = {2};", dim.name.value, dim.min, dim.max);
}

void violation_function(Source& out, const Contract& contract, const Breakage& breakage, const std::string& stem) {
  if (!breakage.value.empty()) shape_function(out, contract, stem + "_violation", breakage.value);
}

std::string violation_initializer(const Contract& contract, const Breakage& breakage, const std::string& stem) {
  static constexpr std::string_view kKinds[] = {"shape", "strides", "alias", "dim", "null", "param", "value"};
  const std::string& target = breakage.target.value;
  const int index = breakage.kind == Violation::Kind::dim     ? model::dim_index(contract, target)
                    : breakage.kind == Violation::Kind::param ? model::param_index(contract, target)
                                                              : model::tensor_index(contract, target);
  const int other = breakage.kind == Violation::Kind::alias ? model::tensor_index(contract, breakage.other.value) : -1;
  return fmt::format("Violation{{Violation::Kind::{}, {}, {}, {}, {}}}",
                     kKinds[static_cast<std::size_t>(breakage.kind)], index, other,
                     breakage.value.empty() ? "nullptr" : "&" + stem + "_violation", breakage.number);
}

Source ops_source(const Contract& contract) {
  const std::string& op = contract.op.value;
  Source out("ops/" + op + ".cpp", contract.file);
  out.line("#include \"ops/{}.hpp\"", op);
  out.blank();
  out.line("#include <array>");
  out.blank();
  const auto certificate = [](const Clause& clause) { return clause.kind == ClauseKind::certificate; };
  if (std::ranges::any_of(contract.clauses, certificate)) {
    out.line("#include \"contract/certificates.hpp\"");
    include_of(out, "contract/certificates", op);
  }
  out.line("#include \"contract/clauses.hpp\"");
  out.line("#include \"contract/enforce.hpp\"");
  out.blank();
  out.line("namespace assay::ops {{");
  out.line("extern const OpDescriptor {}_descriptor;", op);
  open_internal(out, contract);
  out.line("using namespace contract;");
  out.blank();
  dim_limits(out, contract);
  for (const auto& tensor : contract.tensors) {
    shape_function(out, contract, "shape_of_" + tensor.name.value, tensor.shape);
    if (tensor.least.value.empty()) continue;
    number_function(out, contract, "least_of_" + tensor.name.value, tensor.least);
    number_function(out, contract, "most_of_" + tensor.name.value, tensor.most);
  }
  if (!contract.terms.value.empty()) number_function(out, contract, "terms", contract.terms);
  for (const Clause& clause : contract.clauses) clause_functions(out, contract, clause);
  out.blank();
  tables(out, contract);
  out.blank();
  enforcement(out, contract);
  close_internal(out, contract);
  out.blank();
  descriptor(out, contract);
  out.blank();
  pack(out, contract);
  out.line("}}  // namespace assay::ops");
  return out;
}

}  // namespace assay::contractgen
