#include <fmt/format.h>

#include "contractgen/emit.hpp"

namespace assay::contractgen {
namespace {

using contract::model::Clause;
namespace model = contract::model;

std::string_view kind_text(ClauseKind kind) {
  switch (kind) {
    case ClauseKind::requires_clause:
      return "requires_clause";
    case ClauseKind::ensures_clause:
      return "ensures_clause";
    case ClauseKind::certificate:
      return "certificate";
  }
  return "";
}

}  // namespace

void tables(Source& out, const Contract& contract) {
  out.line("constexpr std::string_view kSources[] = {{");
  for (const std::string& source : contract.sources) out.line("    {},", quoted(source));
  out.line("}};");
  out.line("constexpr std::string_view kEquations[] = {{");
  for (const auto& equation : contract.equations) out.line("    {},", quoted(equation.formula));
  out.line("}};");
  out.line("constexpr DimInfo kDims[] = {{");
  for (const auto& dim : contract.dims)
    out.line("    {{{}, {}, {}, {}}},", quoted(dim.name.value), dim.min, dim.max, quoted(dim.says));
  out.line("}};");
  out.line("constexpr std::array<ParamInfo, {}> kParams = {{{{", contract.params.size());
  for (const auto& p : contract.params)
    out.line("    {{{}, {}, {}, {}, {}}},", quoted(p.name.value), p.min, p.max, p.typical, quoted(p.says));
  out.line("}}}};");
  out.line("constexpr TensorInfo kTensors[] = {{");
  for (const auto& tensor : contract.tensors)
    out.line("    {{{}, Role::{}, DType::f32, {}, &shape_of_{}, {}, {}}},", quoted(tensor.name.value),
             tensor.role == Role::in    ? "in"
             : tensor.role == Role::out ? "out"
                                        : "inout",
             quoted(shape_text(tensor)), tensor.name.value, !tensor.strided, quoted(tensor.says));
  out.line("}};");
  out.line("constexpr ClauseInfo kClauses[] = {{");
  for (const Clause& clause : contract.clauses) {
    const std::string violate = clause.violate.empty() ? "std::nullopt"
                                                       : violation_initializer(contract, clause.violate.front(),
                                                                               function_name(clause.id.value));
    out.line("    {{{}, ClauseKind::{}, {}, {}, {}, {}}},", quoted(clause.id.value), kind_text(clause.kind),
             quoted(clause.says), quoted(clause.expr.value), clause.expr.at.line, violate);
  }
  out.line("}};");
  out.line("constexpr ObligationInfo kObligations[] = {{");
  for (const auto& o : contract.obligations)
    out.line("    {{{}, {}, {}, {}, {}}},", quoted(o.id.value), quoted(o.claim), quoted(o.by.value), quoted(o.if_fails),
             o.id.at.line);
  out.line("}};");
  out.line("constexpr std::array<GradientInfo, {}> kGradients = {{{{", contract.gradients.size());
  for (const auto& g : contract.gradients)
    out.line("    {{{}, {}, {}, {}}},", model::tensor_index(contract, g.input.value), quoted(g.id.value),
             quoted(g.equation), quoted(g.by.value));
  out.line("}}}};");
}

void descriptor(Source& out, const Contract& contract) {
  out.line("constinit const OpDescriptor {}_descriptor = {{", contract.op.value);
  out.line("    .name = {},", quoted(contract.op.value));
  out.line("    .summary = {},", quoted(contract.summary));
  out.line("    .file = {},", quoted(contract.file));
  out.line("    .sources = kSources,");
  out.line("    .equations = kEquations,");
  out.line("    .dims = kDims,");
  out.line("    .params = kParams,");
  out.line("    .tensors = kTensors,");
  out.line("    .clauses = kClauses,");
  out.line("    .obligations = kObligations,");
  out.line("    .gradients = kGradients,");
  out.line("    .nonfinite = Nonfinite::{},", contract.nonfinite.value);
  out.line("    .bitwise_deterministic = {},", contract.determinism.value == "bitwise");
  out.line("    .copies = {},", contract.copies);
  out.line("    .checked = &checked,");
  out.line("    .counters = &evaluations,");
  out.line("}};");
}

}  // namespace assay::contractgen
