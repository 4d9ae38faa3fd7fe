#include <fmt/format.h>
#include <fmt/ranges.h>

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
  for (const auto& dim : contract.dims)
    if (!dim.typical.empty())
      out.line("constexpr Index kTypical_{}[] = {{{}}};", dim.name.value, fmt::join(dim.typical, ", "));
  out.line("constexpr DimInfo kDims[] = {{");
  for (const auto& dim : contract.dims) {
    const int multiple_of = model::dim_index(contract, dim.multiple.value);
    out.line("    {{{}, {}, {}, {}, {}, {}, {}}},", quoted(dim.name.value), dim.min, dim.max, quoted(dim.says),
             dim.multiple.value.empty() || multiple_of >= 0 ? "1" : dim.multiple.value, multiple_of,
             dim.typical.empty() ? "{}" : "kTypical_" + dim.name.value);
  }
  out.line("}};");
  for (const auto& p : contract.params)
    if (!p.choices.empty())
      out.line("constexpr double kChoices_{}[] = {{{}}};", p.name.value, fmt::join(p.choices, ", "));
  out.line("constexpr std::array<ParamInfo, {}> kParams = {{{{", contract.params.size());
  for (const auto& p : contract.params)
    out.line("    {{{}, {}, {}, {}, {}, {}, {}}},", quoted(p.name.value), p.min, p.max, p.typical, quoted(p.says),
             p.integer, p.choices.empty() ? "{}" : "kChoices_" + p.name.value);
  out.line("}}}};");
  out.line("constexpr TensorInfo kTensors[] = {{");
  for (const auto& tensor : contract.tensors) {
    const std::string& own = tensor.name.value;
    out.line("    {{.name = {}, .role = Role::{}, .dtype = DType::{}, .shape_text = {}, .shape = &shape_of_{},", quoted(own),
             tensor.role == Role::in    ? "in"
             : tensor.role == Role::out ? "out"
                                        : "inout",
             name(tensor.dtype), quoted(shape_text(tensor)), own);
    out.line("     .unit_inner_stride = {}, .says = {}, .storage = {}, .least = {}, .most = {},", !tensor.strided,
             quoted(tensor.says), tensor.storage, tensor.least.value.empty() ? "nullptr" : "&least_of_" + own,
             tensor.most.value.empty() ? "nullptr" : "&most_of_" + own);
    out.line("     .saved = {}, .no_gradient = {}}},", tensor.saved, quoted(tensor.no_gradient));
  }
  out.line("}};");
  out.line("constexpr ClauseInfo kClauses[] = {{");
  for (const Clause& clause : contract.clauses) {
    out.line("    {{{}, ClauseKind::{}, {}, {}, {}, {}}},", quoted(clause.id.value), kind_text(clause.kind),
             quoted(clause.says), quoted(clause.expr.value), clause.expr.at.line,
             clause.reads.empty() ? "{}" : function_name(clause.id.value) + "_reads");
  }
  out.line("}};");
  out.line("constexpr ObligationInfo kObligations[] = {{");
  for (const auto& o : contract.obligations)
    out.line("    {{{}, {}, {}, {}, {}}},", quoted(o.id.value), quoted(o.claim), quoted(o.by.value), quoted(o.if_fails),
             o.id.at.line);
  out.line("}};");
  out.line("constexpr std::array<PinInfo, {}> kPins = {{{{", contract.pins.size());
  for (const auto& pin : contract.pins)
    out.line("    {{{}, {}, {}}},", quoted(pin.name.value), quoted(pin.says), quoted(pin.tested_by.value));
  out.line("}}}};");
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
  out.line("    .pins = kPins,");
  out.line("    .nonfinite = Nonfinite::{},", contract.nonfinite.value);
  out.line("    .bitwise_deterministic = {},", contract.determinism.value == "bitwise");
  out.line("    .copies = {},", contract.copies);
  out.line("    .directed = {},", !contract.inputs.value.empty());
  out.line("    .no_gradients = {},", quoted(contract.no_gradients.value));
  out.line("    .checked = &checked,");
  out.line("    .counters = &evaluations,");
  out.line("}};");
}

}  // namespace assay::contractgen
