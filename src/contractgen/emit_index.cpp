#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "contractgen/emit.hpp"

namespace assay::contractgen {
namespace {

constexpr std::string_view kAll = "contracts/*.yaml";

std::vector<std::string> names(std::span<const Contract> contracts) {
  std::vector<std::string> list;
  for (const Contract& contract : contracts) list.push_back(contract.op.value);
  return list;
}

/// Emits a function that finds `result` by name among `entry(op)`, or throws InputError.
void lookup(Source& out, std::span<const Contract> contracts, std::string_view signature, std::string_view entry) {
  out.line("{} {{", signature);
  for (const std::string& op : names(contracts))
    out.line("  if (op == {}) return {};", string_literal(op), fmt::format(fmt::runtime(entry), op));
  out.line("  throw InputError(\"operation '\" + std::string(op) + \"'\", \"there is no contract of this name\",");
  out.line("                   \"use one of: {}\");", fmt::join(names(contracts), ", "));
  out.line("}}");
}

}  // namespace

Source ops_index(std::span<const Contract> contracts) {
  Source out("ops/index.cpp", std::string(kAll));
  out.line("#include \"contract/descriptor.hpp\"");
  out.line("#include \"core/errors.hpp\"");
  out.blank();
  out.line("namespace assay {{");
  out.line("namespace ops {{");
  for (const std::string& op : names(contracts)) out.line("extern const OpDescriptor {}_descriptor;", op);
  out.line("}}  // namespace ops");
  out.blank();
  out.line("std::span<const OpDescriptor* const> operations() {{");
  out.line("  static constexpr const OpDescriptor* kAll[] = {{");
  for (const std::string& op : names(contracts)) out.line("      &ops::{}_descriptor,", op);
  out.line("  }};");
  out.line("  return kAll;");
  out.line("}}");
  out.blank();
  lookup(out, contracts, "const OpDescriptor& operation(std::string_view op)", "ops::{}_descriptor");
  out.line("}}  // namespace assay");
  return out;
}

Source ops_calls(std::span<const Contract> contracts) {
  Source out("ops/calls.cpp", std::string(kAll));
  for (const std::string& op : names(contracts)) out.line("#include \"ops/{}.hpp\"", op);
  out.line("#include \"serve/serve.hpp\"");
  out.blank();
  out.line("namespace assay::ops {{");
  for (const std::string& op : names(contracts)) {
    const std::string args = pascal_case(op) + "Args", enforced = "*" + op + "_descriptor.enforced";
    out.blank();
    out.line("extern const OpDescriptor {}_descriptor;", op);
    out.line("void {}(const {}& args, const Kernel& kernel, Device& device) {{", op, args);
    out.line("  serve::call({}, &args, args.pack(), kernel, device);", enforced);
    out.line("}}");
    out.line("void {}(const {}& args) {{ serve::call({}, &args, args.pack(), Backend::cpu); }}", op, args, enforced);
    out.line("Dispatched {}(const {}& args, Automatic how) {{ return serve::call({}, &args, args.pack(), how); }}", op,
             args, enforced);
  }
  out.line("}}  // namespace assay::ops");
  return out;
}

Source oracle_index(std::span<const Contract> contracts) {
  Source out("oracles.cpp", std::string(kAll));
  std::vector<Contract> differentiable;
  std::ranges::copy_if(contracts, std::back_inserter(differentiable),
                       [](const Contract& c) { return !c.gradients.empty(); });
  out.line("#include \"core/errors.hpp\"");
  out.line("#include \"falsify/engine/backward_oracle.hpp\"");
  out.blank();
  out.line("namespace assay::falsify {{");
  for (const std::string& op : names(contracts)) out.line("extern const Oracle {}_oracle;", op);
  out.blank();
  lookup(out, contracts, "const Oracle& oracle(std::string_view op)", "{}_oracle");
  out.blank();
  for (const std::string& op : names(differentiable))
    out.line("extern const BackwardOracle gradient_oracle_of_{};", op);
  out.blank();
  lookup(out, differentiable, "const BackwardOracle& backward_oracle(std::string_view op)", "gradient_oracle_of_{}");
  out.line("}}  // namespace assay::falsify");
  return out;
}

Source obligations_index(std::span<const Contract> contracts) {
  Source out("obligations.cpp", std::string(kAll));
  out.line("#include \"core/errors.hpp\"");
  out.line("#include \"falsify/audit/subject.hpp\"");
  out.line("#include \"falsify/engine/obligation.hpp\"");
  out.blank();
  out.line("namespace assay::falsify {{");
  out.line("// Of an operation whose properties define none.");
  for (const std::string& op : names(contracts))
    out.line("namespace {} {{ [[gnu::weak]] audit::Subject audited() {{ return {{.no_sums = audit::kNotSaid}}; }} }}",
             op);
  for (const std::string& op : names(contracts)) {
    out.line("std::span<const Obligation> obligations_of_{}();", op);
    out.line("extern const InputHook {}_inputs;", op);
  }
  out.blank();
  out.line("namespace {{");
  out.line("const OperationChecks kChecks[] = {{");
  for (const std::string& op : names(contracts))
    out.line("    {{{}, obligations_of_{}(), {}_inputs}},", string_literal(op), op, op);
  out.line("}};");
  out.line("const ChecksRegistration checks(kChecks);");
  out.line("constexpr audit::OperationSubject kSubjects[] = {{");
  for (const std::string& op : names(contracts)) out.line("    {{{}, &{}::audited}},", string_literal(op), op);
  out.line("}};");
  out.line("const audit::SubjectsRegistration subjects(kSubjects);");
  out.line("}}  // namespace");
  out.line("}}  // namespace assay::falsify");
  return out;
}

}  // namespace assay::contractgen
