#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "contractgen/emit.hpp"

namespace assay::contractgen {
namespace {

using contract::model::Dim;
using contract::model::Param;
using contract::model::Tensor;

/// No tensor that the operation reads has this dim as an extent of its own.
bool is_free(const Contract& contract, const Dim& dim) {
  return std::ranges::none_of(contract.tensors, [&](const Tensor& tensor) {
    return tensor.role != Role::out &&
           std::ranges::any_of(tensor.shape, [&](const auto& axis) { return axis.value == dim.name.value; });
  });
}

void builder_function(Source& out, const Contract& contract) {
  std::vector<std::string> parameters{"Builder& builder"}, reads, numbers, dims, written;
  for (const Tensor& tensor : contract.tensors) {
    if (tensor.role != Role::out)
      parameters.push_back("Value " + tensor.name.value), reads.push_back(tensor.name.value);
    if (tensor.role != Role::in) written.push_back(tensor.name.value);
  }
  for (const Param& param : contract.params) {
    parameters.push_back("double " + param.name.value);
    numbers.push_back(fmt::format("{{{}, {}}}", string_literal(param.name.value), param.name.value));
  }
  for (const Dim& dim : contract.dims) {
    if (!is_free(contract, dim)) continue;
    parameters.push_back("Index " + dim.name.value);
    dims.push_back(fmt::format("{{{}, {}}}", string_literal(dim.name.value), dim.name.value));
  }
  const std::string& op = contract.op.value;
  const std::string result = written.size() == 1 ? "Value" : pascal_case(op) + "Values";
  if (written.size() != 1) {
    out.line("/// Results of {}.", op);
    out.line("struct {} {{", result);
    out.line("  Value {};", fmt::join(written, ", "));
    out.line("}};");
  }
  out.line("/// {}", contract.summary);
  out.line("inline {} {}({}) {{", result, op, fmt::join(parameters, ", "));
  const auto array = [&](std::string_view type, std::string_view name, const std::vector<std::string>& elements) {
    if (!elements.empty()) out.line("  const {} {}[] = {{{}}};", type, name, fmt::join(elements, ", "));
    return elements.empty() ? "{}" : name;
  };
  const auto reads_name = array("Value", "reads_", reads), numbers_name = array("NamedNumber", "params_", numbers),
             dims_name = array("NamedDim", "dims_", dims);
  out.line("  const std::vector<Value> written_ = builder.call({}, {}, {}, {});", string_literal(op), reads_name,
           numbers_name, dims_name);
  if (written.size() == 1) {
    out.line("  return written_[0];");
  } else {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < written.size(); ++i) values.push_back(fmt::format("written_[{}]", i));
    out.line("  return {{{}}};", fmt::join(values, ", "));
  }
  out.line("}}");
  out.blank();
}

}  // namespace

Source builder_functions(std::span<const Contract> contracts) {
  Source out("program/operations.hpp", "contracts/*.yaml");
  out.line("#pragma once");
  out.blank();
  out.line("#include \"program/builder.hpp\"");
  out.blank();
  out.line("namespace assay::program {{");
  out.blank();
  for (const Contract& contract : contracts) builder_function(out, contract);
  out.line("}}  // namespace assay::program");
  return out;
}

}  // namespace assay::contractgen
