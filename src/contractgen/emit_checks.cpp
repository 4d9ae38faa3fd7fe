#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "contractgen/emit.hpp"

namespace assay::contractgen {
namespace {

using contract::model::builtin_check;

/// Checks of the operation's own, each once.
std::vector<std::string> own_checks(const Contract& contract) {
  std::vector<std::string> names;
  for (const auto& obligation : contract.obligations) {
    const std::string& by = obligation.by.value;
    if (!builtin_check(by) && std::ranges::find(names, by) == names.end()) names.push_back(by);
  }
  return names;
}

/// Inputs, upstream gradients of the outputs, gradients of the inputs, params.
void backward_oracle(Source& out, const Contract& contract) {
  const std::string& op = contract.op.value;
  const std::size_t tensors = contract.tensors.size() + static_cast<std::size_t>(std::ranges::count(contract.tensors, Role::in, &contract::model::Tensor::role));
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < tensors; ++i) arguments.push_back(fmt::format("tensors[{}]", i));
  for (std::size_t i = 0; i < contract.params.size(); ++i) arguments.push_back(fmt::format("params[{}]", i));
  out.blank();
  out.line("namespace {{");
  out.line("template <class T>");
  out.line("void run_backward(std::span<const View<T>> tensors, [[maybe_unused]] std::span<const double> params) {{");
  out.line("  reference::{}_backward<T>({});", op, fmt::join(arguments, ", "));
  out.line("}}");
  out.line("}}  // namespace");
  out.blank();
  out.line("extern const BackwardOracle {}_backward_oracle;", op);
  out.line("const BackwardOracle {}_backward_oracle = {{", op);
  out.line("    .exact = &run_backward<double>,");
  out.line("    .bounded = &run_backward<Bounded>,");
  out.line("    .bounded_dual = &run<Dual<Bounded>>,");
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
  out.line("namespace {{");
  out.blank();
  dim_limits(out, contract);
  out.blank();
  out.line("TEST({}Contract, AcceptsValidCalls) {{ EXPECT_EQ(valid_calls_fault(operation({})), \"\"); }}",
           pascal_case(op), quoted(op));
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
  out.line("}}  // namespace");
  out.line("}}  // namespace assay::falsify");
  return out;
}

Source oracle(const Contract& contract) {
  const std::string& op = contract.op.value;
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < contract.tensors.size(); ++i) arguments.push_back(fmt::format("tensors[{}]", i));
  for (std::size_t i = 0; i < contract.params.size(); ++i) arguments.push_back(fmt::format("params[{}]", i));
  Source out(op + "_oracle.cpp", contract.file);
  out.line("#include \"falsify/engine/backward_oracle.hpp\"");
  out.line("#include \"reference/{}.hpp\"", op);
  out.blank();
  out.line("namespace assay::falsify {{");
  out.line("namespace {{");
  out.line("template <class T>");
  out.line("void run(std::span<const View<T>> tensors, [[maybe_unused]] std::span<const double> params) {{");
  out.line("  reference::{}<T>({});", op, fmt::join(arguments, ", "));
  out.line("}}");
  out.line("}}  // namespace");
  out.blank();
  out.line("extern const Oracle {}_oracle;", op);
  out.line("const Oracle {}_oracle = {{", op);
  out.line("    .mirror = &run<float>,");
  out.line("    .exact = &run<double>,");
  out.line("    .bounded = &run<Bounded>,");
  out.line("    .dual = &run<Dual<double>>,");
  out.line("    .complex_step = &run<std::complex<double>>,");
  out.line("    .digits50 = &run<Digits50>,");
  out.line("}};");
  if (!contract.gradients.empty()) backward_oracle(out, contract);
  out.line("}}  // namespace assay::falsify");
  return out;
}

Source obligations_header(const Contract& contract) {
  const std::string& op = contract.op.value;
  Source out(op + "_obligations.hpp", contract.file);
  out.line("#pragma once");
  out.blank();
  out.line("#include \"falsify/engine/obligation.hpp\"");
  out.blank();
  out.line("/// Defined in falsify/{}.cpp, one for each check that the contract names.", op);
  out.line("namespace assay::falsify::{} {{", op);
  for (const std::string& name : own_checks(contract)) out.line("Outcome {}(Trial& trial);", name);
  out.line("}}  // namespace assay::falsify::{}", op);
  return out;
}

Source obligations_source(const Contract& contract) {
  const std::string& op = contract.op.value;
  Source out(op + "_obligations.cpp", contract.file);
  out.line("#include \"{}_obligations.hpp\"", op);
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
    out.line("      {{&ops::{}_descriptor.obligations[{}], &{}::{}}},", op, i, builtin_check(by) ? "builtin" : op, by);
  }
  out.line("  }};");
  out.line("  return kTable;");
  out.line("}}");
  out.line("}}  // namespace assay::falsify");
  return out;
}

}  // namespace assay::contractgen
