#include <fmt/format.h>
#include <fmt/ranges.h>

#include "contract/validate.hpp"
#include "contractgen/emit.hpp"

namespace assay::contractgen {
namespace {

using contract::model::Clause;
namespace model = contract::model;

std::string_view kind_text(ClauseKind kind) {
  switch (kind) {
    case ClauseKind::requires_clause: return "requires_clause";
    case ClauseKind::ensures_clause: return "ensures_clause";
    case ClauseKind::certificate: return "certificate";
  }
  return "";
}

}  // namespace

void tables(Source& out, const Contract& contract) {
  out.line("constexpr std::string_view kSources[] = {{");
  for (const std::string& source : contract.sources) out.line("    {},", string_literal(source));
  out.line("}};");
  out.line("constexpr std::string_view kEquations[] = {{");
  for (const auto& equation : contract.equations) out.line("    {},", string_literal(equation.formula));
  out.line("}};");
  for (const auto& dim : contract.dims)
    if (!dim.typical.empty())
      out.line("constexpr Index kTypical_{}[] = {{{}}};", dim.name.value, fmt::join(dim.typical, ", "));
  out.line("constexpr DimInfo kDims[] = {{");
  for (const auto& dim : contract.dims) {
    const int multiple_of = model::dim_index(contract, dim.multiple.value);
    out.line("    {{{}, {}, {}, {}, {}, {}, {}, {}, Counts::{}}},", string_literal(dim.name.value), dim.min, dim.max,
             string_literal(dim.says), dim.multiple.value.empty() || multiple_of >= 0 ? "1" : dim.multiple.value,
             multiple_of, dim.typical.empty() ? "{}" : "kTypical_" + dim.name.value, dim.independent,
             dim.counts.value.empty() ? "places" : dim.counts.value);
  }
  out.line("}};");
  for (const auto& p : contract.params)
    if (!p.choices.empty())
      out.line("constexpr double kChoices_{}[] = {{{}}};", p.name.value, fmt::join(p.choices, ", "));
  for (const auto& p : contract.params) {  // values are float32, as kernels receive params in either type
    std::vector<double> drawn;
    for (const double value : p.usual) drawn.push_back(p.integer ? value : static_cast<float>(value));
    if (!drawn.empty()) out.line("constexpr double kUsual_{}[] = {{{}}};", p.name.value, fmt::join(drawn, ", "));
  }
  out.line("constexpr std::array<ParamInfo, {}> kParams = {{{{", contract.params.size());
  for (const auto& p : contract.params)
    out.line("    {{{}, {}, {}, {}, {}, {}, {}, {}}},", string_literal(p.name.value), p.min, p.max,
             p.integer ? p.typical : static_cast<float>(p.typical), string_literal(p.says), p.integer,
             p.choices.empty() ? "{}" : "kChoices_" + p.name.value, p.usual.empty() ? "{}" : "kUsual_" + p.name.value);
  out.line("}}}};");
  out.line("constexpr TensorInfo kTensors[] = {{");
  for (const auto& tensor : contract.tensors) {
    const std::string& own = tensor.name.value;
    out.line("    {{.name = {}, .role = Role::{}, .dtype = DType::{}, .shape_text = {}, .shape = &shape_of_{},",
             string_literal(own),
             tensor.role == Role::in    ? "in"
             : tensor.role == Role::out ? "out"
                                        : "inout",
             name(tensor.dtype), string_literal(shape_text(tensor)), own);
    out.line("     .unit_inner_stride = {}, .says = {}, .storage = {}, .least = {}, .most = {},", !tensor.strided,
             string_literal(tensor.says), tensor.storage, tensor.least.value.empty() ? "nullptr" : "&least_of_" + own,
             tensor.most.value.empty() ? "nullptr" : "&most_of_" + own);
    out.line("     .saved = {}, .no_gradient = {}}},", tensor.saved, string_literal(tensor.no_gradient));
  }
  out.line("}};");
  out.line("constexpr ClauseInfo kClauses[] = {{");
  for (const Clause& clause : contract.clauses) {
    out.line("    {{{}, ClauseKind::{}, {}, {}, {}, {}}},", string_literal(clause.id.value), kind_text(clause.kind),
             string_literal(clause.says), string_literal(clause.expr.value), clause.expr.at.line,
             clause.reads.empty() ? "{}" : function_name(clause.id.value) + "_reads");
  }
  out.line("}};");
  out.line("constexpr ObligationInfo kObligations[] = {{");
  for (const auto& o : contract.obligations)
    out.line("    {{{}, {}, {}, {}, {}}},", string_literal(o.id.value), string_literal(o.claim),
             string_literal(o.by.value), string_literal(o.if_fails), o.id.at.line);
  out.line("}};");
  out.line("constexpr std::array<PinInfo, {}> kPins = {{{{", contract.pins.size());
  for (const auto& pin : contract.pins)
    out.line("    {{{}, {}, {}}},", string_literal(pin.name.value), string_literal(pin.says),
             string_literal(pin.tested_by.value));
  out.line("}}}};");
  for (const auto& region : contract.shapes)
    out.line("constexpr Index kShapes_{}[] = {{{}}};", region.name.value,
             fmt::join(region_extents(contract, region), ", "));
  out.line("constexpr std::array<ShapeRegion, {}> kShapes = {{{{", contract.shapes.size());
  for (const auto& region : contract.shapes)
    out.line("    {{{}, kShapes_{}}},", string_literal(region.name.value), region.name.value);
  out.line("}}}};");
  out.line("constexpr std::array<GradientInfo, {}> kGradients = {{{{", contract.gradients.size());
  for (const auto& g : contract.gradients)
    out.line("    {{{}, {}, {}, {}}},", model::tensor_index(contract, g.input.value), string_literal(g.id.value),
             string_literal(g.equation), string_literal(g.by.value));
  out.line("}}}};");
}

void descriptor(Source& out, const Contract& contract) {
  const std::string within = internal_namespace(contract) + "::";
  out.line("constinit const OpDescriptor {}_descriptor = {{", contract.op.value);
  out.line("    .name = {},", string_literal(contract.op.value));
  out.line("    .summary = {},", string_literal(contract.summary));
  out.line("    .file = {},", string_literal(contract.file));
  out.line("    .sources = {}kSources,", within);
  out.line("    .equations = {}kEquations,", within);
  out.line("    .dims = {}kDims,", within);
  out.line("    .params = {}kParams,", within);
  out.line("    .tensors = {}kTensors,", within);
  out.line("    .clauses = {}kClauses,", within);
  out.line("    .obligations = {}kObligations,", within);
  out.line("    .gradients = {}kGradients,", within);
  out.line("    .pins = {}kPins,", within);
  out.line("    .nonfinite = Nonfinite::{},", contract.nonfinite.value);
  out.line("    .bitwise_deterministic = {},", contract.determinism.value == "bitwise");
  out.line("    .copies = {},", contract.copies);
  out.line("    .directed = {},", !contract.inputs.value.empty());
  out.line("    .no_gradients = {},", string_literal(contract.no_gradients.value));
  out.line("    .shapes = {}kShapes,", within);
  if (!contract.terms.value.empty()) out.line("    .terms = &{}terms,", within);
  out.line("    .enforced = &{}kEnforced,", within);
  out.line("    .checked = &{}checked,", within);
  out.line("    .check_requires = &{}require_all,", within);
  out.line("    .check_ensures = &{}ensure,", within);
  out.line("    .counters = &{}evaluations,", within);
  out.line("}};");
}

}  // namespace assay::contractgen
