// contracts/numerics.yaml as a table.
#include "contract/reader.hpp"
#include "contractgen/emit.hpp"
#include "core/accuracy.hpp"

namespace assay::contractgen {
namespace {

constexpr FunctionLibrary kLibraries[] = {FunctionLibrary::c_library, FunctionLibrary::highway, FunctionLibrary::cuda,
                                          FunctionLibrary::cuda_exp2, FunctionLibrary::vulkan,  FunctionLibrary::octant,
                                          FunctionLibrary::numpy};
constexpr Function kFunctions[] = {Function::divide, Function::sqrt,  Function::reciprocal_sqrt,
                                   Function::exp,    Function::expm1, Function::log,
                                   Function::log1p,  Function::sin,   Function::cos,
                                   Function::tanh,   Function::pow};

std::string row(const contract::Node& node) {
  const contract::Fields fields(node, {"ulp", "ulp_per_x", "absolute", "from", "to", "of_value", "exact_at_zero"});
  const auto number = [&](std::string_view key) {
    const contract::Node* field = fields.find(key);
    const double value = field == nullptr ? 0 : field->number();
    if (value < 0) field->fail(fmt::format("'{}' is negative", key), "errors are magnitudes");
    return value;
  };
  fields.require("ulp");
  const auto flag = [&](std::string_view key) {
    const contract::Node* field = fields.find(key);
    return field != nullptr && field->boolean();
  };
  return fmt::format("{{{}, {}, {}, {}, {}, {}, {}}}", number("ulp"), number("ulp_per_x"), number("absolute"),
                     number("from"), number("to"), flag("of_value"), flag("exact_at_zero"));
}

}  // namespace

Source numerics(const std::string& path, const std::string& label) {
  const contract::Node root = contract::Node::load(path, label);
  const contract::Fields top(root, {"c_library", "highway", "cuda", "cuda_exp2", "vulkan", "octant", "numpy"});
  Source out("numerics.cpp", label);
  out.line("#include \"core/accuracy.hpp\"");
  out.blank();
  out.line("namespace assay::detail {{");
  out.line("namespace {{");
  out.line("constexpr std::optional<Accuracy> kTable[{}][{}] = {{", std::size(kLibraries), std::size(kFunctions));
  for (const FunctionLibrary library : kLibraries) {
    const contract::Fields fields(top.require(name(library)), {"source", "divide", "sqrt", "reciprocal_sqrt", "exp",
                                                               "expm1", "log", "log1p", "sin", "cos", "tanh", "pow"});
    fields.require("source").text();
    out.line("    {{  // {}", name(library));
    for (const Function function : kFunctions) {
      const contract::Node* promised = fields.find(name(function));
      out.line("        {},  // {}", promised == nullptr ? "std::nullopt" : "Accuracy" + row(*promised),
               name(function));
    }
    out.line("    }},");
  }
  out.line("}};");
  out.line("}}  // namespace");
  out.line("const Accuracy* find_accuracy(FunctionLibrary library, Function function) {{");
  out.line("  const auto& entry = kTable[static_cast<int>(library)][static_cast<int>(function)];");
  out.line("  return entry ? &*entry : nullptr;");
  out.line("}}");
  out.line("}}  // namespace assay::detail");
  return out;
}

}  // namespace assay::contractgen
