#include <fmt/format.h>
#include <fmt/ranges.h>

#include "contractgen/emit.hpp"

namespace assay::contractgen {
namespace {

using contract::model::Tensor;

std::string_view element_type(DType dtype) {
  return dtype == DType::i32 ? "std::int32_t" : dtype == DType::u8 ? "std::uint8_t" : "float";
}

std::string view_type(const Tensor& tensor) {
  if (tensor.storage) return "StorageView";
  return fmt::format("View<{}{}>", tensor.role == Role::in ? "const " : "", element_type(tensor.dtype));
}

std::string_view layout(const Tensor& tensor) {
  return tensor.strided ? "any strides that do not overlap" : "inner stride 1, any leading dimension >= width";
}

std::string_view role_text(Role role) { return role == Role::in ? "in" : role == Role::out ? "out" : "in and out"; }

void docstring(Source& out, const Contract& contract) {
  out.line("/// {}", contract.summary);
  out.line("///");
  for (const auto& equation : contract.equations) out.line("///     {}", equation.formula);
  out.line("///");
  for (const Tensor& tensor : contract.tensors)
    out.line("/// {} {} {} {}, {}: {}.", tensor.name.value, shape_text(tensor), role_text(tensor.role),
             dtype_text(tensor), layout(tensor), tensor.says);
  out.line("///");
  for (const auto& clause : contract.clauses)
    out.line("/// {} {}: {}", clause.kind == ClauseKind::requires_clause ? "requires" : "ensures", clause.id.value,
             clause.says);
  out.line("///");
  out.line("/// Throws ContractViolation where a clause is false: requires at level pre and full, ensures at full.");
  if (contract.copies) out.line("/// Elements are copied bit for bit.");
  else
    out.line(
        "/// Error: every element within the bound that Bounded derives from the reference and the kernel's "
        "declared arithmetic.");
  for (const std::string& source : contract.sources) out.line("/// Source: {}.", source);
}

void unpack(Source& out, const Contract& contract, const std::string& args) {
  std::vector<std::string> members;
  for (std::size_t i = 0; i < contract.dims.size(); ++i) members.push_back(fmt::format("call.dims[{}]", i));
  for (std::size_t i = 0; i < contract.params.size(); ++i) members.push_back(fmt::format("call.params[{}]", i));
  for (std::size_t i = 0; i < contract.tensors.size(); ++i)
    members.push_back(contract.tensors[i].storage
                          ? fmt::format("call.tensors[{}].storage()", i)
                          : fmt::format("call.tensors[{}].expect<{}>(\"{}\")", i,
                                        element_type(contract.tensors[i].dtype), contract.tensors[i].name.value));
  out.line("  /// Throws InputError where the call does not hold what the contract names.");
  out.line("  static {} unpack(const Call& call) {{", args);
  out.line("    if (call.dims.size() != {} || call.params.size() != {} || call.tensors.size() != {})",
           contract.dims.size(), contract.params.size(), contract.tensors.size());
  out.line("      throw InputError(\"call of {}\", \"it does not hold {} dims, {} parameters and {} tensors\",",
           contract.op.value, contract.dims.size(), contract.params.size(), contract.tensors.size());
  out.line("                       \"give those of {} in its order\");", contract.file);
  out.line("    return {{{}}};", fmt::join(members, ",\n            "));
  out.line("  }}");
}

}  // namespace

std::string_view dtype_text(const Tensor& tensor) { return tensor.storage ? "f32, f16 or bf16" : name(tensor.dtype); }

std::string shape_text(const Tensor& tensor) {
  std::vector<std::string_view> axes;
  for (const auto& axis : tensor.shape) axes.push_back(axis.value);
  return fmt::format("[{}]", fmt::join(axes, ", "));
}

Source ops_header(const Contract& contract) {
  const std::string& op = contract.op.value;
  const std::string args = pascal_case(op) + "Args";
  Source out("ops/" + op + ".hpp", contract.file);
  out.line("#pragma once");
  out.blank();
  out.line("#include \"core/errors.hpp\"");
  out.line("#include \"core/view.hpp\"");
  out.line("#include \"runtime/call.hpp\"");
  out.blank();
  out.line("namespace assay {{");
  out.line("struct Automatic;");
  out.line("struct Dispatched;");
  out.line("struct Kernel;");
  out.line("class Device;");
  out.line("}}  // namespace assay");
  out.blank();
  out.line("namespace assay::ops {{");
  out.blank();
  out.line("/// Arguments of {} in contract order.", op);
  out.line("struct {} {{", args);
  for (const auto& dim : contract.dims) out.line("  Index {} = 0;  ///< {}", dim.name.value, dim.says);
  for (const auto& param : contract.params)
    out.line("  double {} = {};  ///< {}", param.name.value, param.typical, param.says);
  for (const Tensor& tensor : contract.tensors)
    out.line("  {} {};  ///< {} {}", view_type(tensor), tensor.name.value, shape_text(tensor), tensor.says);
  out.blank();
  unpack(out, contract, args);
  out.line("  Call pack() const;");
  out.line("}};");
  out.blank();
  docstring(out, contract);
  out.line("void {}(const {}& args, const Kernel& kernel, Device& device);", op, args);
  out.line("/// The same on host tensors, by the preferred CPU kernel that takes the call.");
  out.line("void {}(const {}& args);", op, args);
  out.line(
      "/// The same by the back end that automatic dispatch chooses (serve/dispatch.hpp): CUDA, Vulkan, then the CPU;");
  out.line("/// tensors may lie in host memory, or all in one device's. Returns what served the call.");
  out.line("Dispatched {}(const {}& args, Automatic);", op, args);
  out.blank();
  out.line("}}  // namespace assay::ops");
  return out;
}

}  // namespace assay::contractgen
