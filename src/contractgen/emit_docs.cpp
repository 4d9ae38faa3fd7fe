#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "contract/validate.hpp"
#include "contractgen/emit.hpp"

namespace assay::contractgen {
namespace {

using namespace contract;

/// Escapes text for a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string arguments(const Contract& contract) {
  std::string page =
      "## Arguments\n\n| name | what | range or shape | memory | meaning |\n| --- | --- | --- | --- | --- |\n";
  auto out = std::back_inserter(page);
  for (const auto& dim : contract.dims)
    fmt::format_to(out, "| `{}` | dim | {} to {} | | {} |\n", dim.name.value, dim.min, dim.max, cell(dim.says));
  for (const auto& p : contract.params)
    fmt::format_to(out, "| `{}` | {} | {} | | {} |\n", p.name.value, p.integer ? "integer" : "parameter",
                   p.choices.empty() ? fmt::format("{} to {}, typically {}", p.min, p.max, p.typical)
                                     : fmt::format("one of {}", fmt::join(p.choices, ", ")),
                   cell(p.says));
  for (const auto& tensor : contract.tensors)
    fmt::format_to(out, "| `{}` | {} {} | {} | {} | {} |\n", tensor.name.value,
                   tensor.role == Role::in    ? "in"
                   : tensor.role == Role::out ? "out"
                                              : "in and out",
                   dtype_text(tensor), shape_text(tensor),
                   tensor.strided ? "any strides that do not overlap" : "inner stride 1, leading dimension >= width",
                   cell(tensor.says));
  return page + "\n";
}

std::string clauses(const Contract& contract) {
  std::string page = "## Conditions\n\n| id | kind | condition | as checked |\n| --- | --- | --- | --- |\n";
  for (const auto& clause : contract.clauses)
    fmt::format_to(std::back_inserter(page), "| {} | {} | {} | `{}` |\n", clause.id.value,
                   clause.kind == ClauseKind::requires_clause  ? "requires"
                   : clause.kind == ClauseKind::ensures_clause ? "ensures"
                                                               : "certificate",
                   cell(clause.says), cell(clause.expr.value));
  return page + "\n";
}

std::string behaviour(const Contract& contract) {
  std::string page = "## Behaviour\n\n";
  auto out = std::back_inserter(page);
  fmt::format_to(out, "- NaN and infinities: {}.\n",
                 contract.nonfinite.value == "propagate" ? "propagate as in the equations"
                 : contract.nonfinite.value == "reject"  ? "are rejected"
                                                         : "keep their bits");
  fmt::format_to(out, "- The same call twice {}.\n",
                 contract.determinism.value == "bitwise" ? "gives the same bits" : "may differ within the bounds");
  if (contract.copies) fmt::format_to(out, "- Outputs are copies of inputs, bit for bit.\n");
  for (const auto& pin : contract.pins)
    fmt::format_to(out, "- {}: {} ({}).\n", pin.name.value, pin.says, pin.tested_by.value);
  return page + "\n";
}

std::string gradients(const Contract& contract) {
  if (!contract.no_gradients.value.empty())
    return fmt::format("## Gradients\n\nNone: {}.\n\n", contract.no_gradients.value);
  if (contract.gradients.empty()) return {};
  std::string page = "## Gradients\n\n| id | of | equation | computed by |\n| --- | --- | --- | --- |\n";
  for (const auto& g : contract.gradients)
    fmt::format_to(std::back_inserter(page), "| {} | `{}` | {} | `{}` |\n", g.id.value, g.input.value, cell(g.equation),
                   g.by.value.empty() ? "the reference alone" : cell(g.by.value));
  for (const auto& tensor : contract.tensors)
    if (!tensor.no_gradient.empty())
      fmt::format_to(std::back_inserter(page), "\n`{}` has none: {}.\n", tensor.name.value, tensor.no_gradient);
  return page + "\n";
}

std::string obligations(const Contract& contract) {
  std::string page = "## Falsification\n\n| id | claim | checked by | if it fails |\n| --- | --- | --- | --- |\n";
  for (const auto& o : contract.obligations)
    fmt::format_to(std::back_inserter(page), "| {} | {}{}{} | {} | {} |\n", o.id.value, cell(o.claim),
                   o.prediction.empty() ? "" : "; seen as: ", cell(o.prediction), o.by.value, cell(o.if_fails));
  return page + "\n";
}

std::string shapes(const Contract& contract) {
  if (contract.shapes.empty()) return {};
  std::string page = "## Shapes\n\n| region | dims | shapes |\n| --- | --- | --- |\n";
  for (const auto& region : contract.shapes) {
    std::vector<std::string> tuples;
    for (const auto& tuple : region.tuples) {
      std::vector<std::string> extents;
      for (const auto& extent : tuple.extents) {
        std::vector<std::string_view> values;
        for (const auto& value : extent.values) values.push_back(value.value);
        extents.push_back(fmt::format("{} = {}", extent.dim.value, fmt::join(values, ", ")));
      }
      tuples.push_back(fmt::format("{}", fmt::join(extents, "; ")));
    }
    fmt::format_to(std::back_inserter(page), "| {} | {} | {} |\n", region.name.value,
                   cell(fmt::format("{}", fmt::join(tuples, " / "))),
                   region_extents(contract, region).size() / contract.dims.size());
  }
  return page + "\n";
}

}  // namespace

std::string documentation(const Contract& contract) {
  std::string page = fmt::format("<!-- Generated from {} by contractgen; edit that file instead. -->\n# {}\n\n{}\n\n",
                                 contract.file, contract.op.value, contract.summary);
  auto out = std::back_inserter(page);
  for (const auto& equation : contract.equations)
    fmt::format_to(out, "    {}: {}\n", equation.name.value, equation.formula);
  page += '\n';
  page += arguments(contract) + clauses(contract) + behaviour(contract) + gradients(contract) + shapes(contract) +
          obligations(contract);
  page += "## Sources\n\n";
  for (const std::string& source : contract.sources) fmt::format_to(out, "- {}\n", source);
  return page;
}

}  // namespace assay::contractgen
