#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "contractgen/emit.hpp"
#include "core/errors.hpp"

namespace assay::contractgen {
namespace {

using contract::model::builtin_check;

/// Returns the checks that the operation itself defines, each once.
std::vector<std::string> own_checks(const Contract& contract) {
  std::vector<std::string> names;
  for (const auto& obligation : contract.obligations) {
    const std::string& by = obligation.by.value;
    if (!builtin_check(by) && std::ranges::find(names, by) == names.end()) names.push_back(by);
  }
  return names;
}

using contract::model::Tensor;

/// Returns the names of a backward reference's tensors, in the order of BackwardOracle: inputs, saved outputs, upstream
/// gradients of the other outputs, gradients of the inputs, and the other outputs themselves.
std::vector<std::string> backward_tensors(const Contract& contract, bool with_outputs) {
  std::vector<std::string> names;
  const auto add = [&](const char* prefix, auto wanted) {
    for (const Tensor& tensor : contract.tensors)
      if (wanted(tensor)) names.push_back(prefix + tensor.name.value);
  };
  add("", [](const Tensor& t) { return t.role != Role::out; });
  add("", [](const Tensor& t) { return t.saved; });
  add("d", [](const Tensor& t) { return t.role == Role::out && !t.saved; });
  add("d", [](const Tensor& t) { return t.role != Role::out && is_floating(t.dtype) && t.no_gradient.empty(); });
  if (with_outputs) add("", [](const Tensor& t) { return t.role == Role::out && !t.saved; });
  return names;
}

/// Returns whether the backward operation gives every gradient. Other calls compose the gradients it omits (of frozen
/// weights).
bool has_every_gradient(const Contract& contract, const Contract& backward) {
  return std::ranges::all_of(contract.gradients, [&](const auto& gradient) {
    return std::ranges::any_of(backward.tensors,
                               [&](const Tensor& t) { return t.name.value == "d" + gradient.input.value; });
  });
}

/// Returns the arguments of reference::<op>_backward: those in the backward operation's contract, or, for an overload,
/// all of them if there is no such contract or it omits gradients.
std::vector<std::string> backward_arguments(const Contract& contract, const Contract* backward) {
  const std::vector<std::string> names = backward_tensors(contract, true);
  std::vector<std::string> wanted = backward_tensors(contract, false), params, arguments;
  for (const auto& param : contract.params) params.push_back(param.name.value);
  std::vector<std::string> wanted_params = params;
  if (backward != nullptr && has_every_gradient(contract, *backward)) {
    wanted.clear(), wanted_params.clear();
    for (const Tensor& tensor : backward->tensors) wanted.push_back(tensor.name.value);
    for (const auto& param : backward->params) wanted_params.push_back(param.name.value);
  }
  const auto position = [&](const std::vector<std::string>& list, const std::string& name) {
    const auto found = std::ranges::find(list, name);
    if (found == list.end())
      throw InputError(backward->file,
                       fmt::format("'{}' is nothing that {} has, saves or is given upstream", name, contract.op.value),
                       "name inputs, saved outputs, d<output> and d<input> as the forward contract does");
    return found - list.begin();
  };
  for (const std::string& name : wanted) arguments.push_back(fmt::format("tensors[{}]", position(names, name)));
  for (const std::string& name : wanted_params) arguments.push_back(fmt::format("params[{}]", position(params, name)));
  return arguments;
}

void backward_oracle(Source& out, const Contract& contract, const Contract* backward) {
  const std::string& op = contract.op.value;
  const std::string within = internal_namespace(contract);
  const std::vector<std::string> arguments = backward_arguments(contract, backward);
  out.blank();
  open_internal(out, contract);
  out.line("template <class T>");
  out.line(
      "void run_backward([[maybe_unused]] std::span<const View<T>> tensors, [[maybe_unused]] std::span<const double> params) {{");
  out.line("  reference::{}_backward<T>({});", op, fmt::join(arguments, ", "));
  out.line("}}");
  close_internal(out, contract);
  out.blank();
  out.line("extern const BackwardOracle gradient_oracle_of_{};", op);
  out.line("const BackwardOracle gradient_oracle_of_{} = {{", op);
  out.line("    .exact = &{}::run_backward<double>,", within);
  out.line("    .bounded = &{}::run_backward<Bounded>,", within);
  out.line("    .bounded_dual = &{}::run<Dual<Bounded>>,", within);
  out.line("}};");
}

}  // namespace

Source negative_test(const Contract& contract) {
  const std::string& op = contract.op.value;
  Source out(op + "_negative_test.cpp", contract.file);
  out.line("#include <gtest/gtest.h>");
  out.blank();
  out.line("#include \"falsify/engine/negative.hpp\"");
  out.blank();
  out.line("namespace assay::falsify {{");
  open_internal(out, contract);
  out.blank();
  dim_limits(out, contract);
  out.blank();
  out.line("TEST({}Contract, AcceptsValidCalls) {{ EXPECT_EQ(valid_calls_fault(operation({})), \"\"); }}",
           pascal_case(op), string_literal(op));
  for (const auto& clause : contract.clauses) {
    for (std::size_t i = 0; i < clause.violate.size(); ++i) {
      const std::string stem = fmt::format("{}_{}", function_name(clause.id.value), i);
      out.blank();
      violation_function(out, contract, clause.violate[i], stem);
      out.line("TEST({}Contract, {}_{}) {{", pascal_case(op), pascal_case(function_name(clause.id.value)), i);
      out.line("  EXPECT_EQ(broken_call_fault(operation(\"{}\"), \"{}\", {}), \"\");", op, clause.id.value,
               violation_initializer(contract, clause.violate[i], stem));
      out.line("}}");
    }
  }
  out.blank();
  close_internal(out, contract);
  out.line("}}  // namespace assay::falsify");
  return out;
}

Source oracle(const Contract& contract, const Contract* backward) {
  const std::string &op = contract.op.value, within = internal_namespace(contract);
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < contract.tensors.size(); ++i) arguments.push_back(fmt::format("tensors[{}]", i));
  for (std::size_t i = 0; i < contract.params.size(); ++i) arguments.push_back(fmt::format("params[{}]", i));
  Source out(op + "_oracle.cpp", contract.file);
  out.line("#include \"falsify/engine/audit_oracle.hpp\"");
  out.line("#include \"falsify/engine/backward_oracle.hpp\"");
  include_of(out, "reference", op);
  if (backward != nullptr) include_of(out, "reference", backward->op.value);
  out.blank();
  out.line("namespace assay::falsify {{");
  open_internal(out, contract);
  out.line("template <class T>");
  out.line("void run(std::span<const View<T>> tensors, [[maybe_unused]] std::span<const double> params) {{");
  out.line("  reference::{}<T>({});", op, fmt::join(arguments, ", "));
  out.line("}}");
  out.line("const AuditOracle digits50{{&run<Digits50>}};");
  close_internal(out, contract);
  out.blank();
  out.line("extern const Oracle {}_oracle;", op);
  out.line("const Oracle {}_oracle = {{", op);
  out.line("    .mirror = &{}::run<float>,", within);
  out.line("    .exact = &{}::run<double>,", within);
  out.line("    .bounded = &{}::run<Bounded>,", within);
  out.line("    .dual = &{}::run<Dual<double>>,", within);
  out.line("    .complex_step = &{}::run<std::complex<double>>,", within);
  out.line("    .digits50 = &{}::digits50,", within);
  out.line("}};");
  if (!contract.gradients.empty()) backward_oracle(out, contract, backward);
  out.line("}}  // namespace assay::falsify");
  return out;
}

Source obligations_header(const Contract& contract) {
  const std::string& op = contract.op.value;
  Source out(op + "_obligations.hpp", contract.file);
  out.line("#pragma once");
  out.blank();
  out.line("#include \"falsify/audit/subject.hpp\"");
  out.line("#include \"falsify/engine/obligation.hpp\"");
  out.blank();
  out.line(
      "/// Defined in falsify/properties/{}.cpp: one function for each check that the contract names, and what an audit probes.",
      op);
  out.line("namespace assay::falsify::{} {{", op);
  for (const std::string& name : own_checks(contract)) out.line("Outcome {}(Trial& trial);", name);
  if (!contract.inputs.value.empty())
    out.line("void {}(Problem& problem, Strategy strategy, Random& random);", contract.inputs.value);
  out.line("audit::Subject audited();");
  out.line("}}  // namespace assay::falsify::{}", op);
  return out;
}

Source obligations_source(const Contract& contract) {
  const std::string& op = contract.op.value;
  Source out(op + "_obligations.cpp", contract.file);
  out.line("#include \"{}_obligations.hpp\"", op);
  out.blank();
  out.line("#include \"falsify/audit/confirm.hpp\"");
  out.blank();
  out.line("namespace assay::ops {{");
  out.line("extern const OpDescriptor {}_descriptor;", op);
  out.line("}}");
  out.blank();
  out.line("namespace assay::falsify {{");
  out.line("std::span<const Obligation> obligations_of_{}() {{", op);
  out.line("  static const Obligation kTable[] = {{");
  for (std::size_t i = 0; i < contract.obligations.size(); ++i) {
    const std::string& by = contract.obligations[i].by.value;
    out.line("      {{&ops::{}_descriptor.obligations[{}], &{}::{}}},", op, i,
             by == "statistical" ? "audit"
             : builtin_check(by) ? "builtin"
                                 : op,
             by);
  }
  out.line("  }};");
  out.line("  return kTable;");
  out.line("}}");
  out.line("extern const InputHook {}_inputs;", op);
  out.line("const InputHook {}_inputs = {};", op,
           contract.inputs.value.empty() ? "nullptr" : "&" + op + "::" + contract.inputs.value);
  out.line("}}  // namespace assay::falsify");
  return out;
}

}  // namespace assay::contractgen
