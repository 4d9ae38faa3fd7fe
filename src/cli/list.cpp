// `assay list` and `assay explain OP`: the contracts and kernels of this build.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/selection.hpp"
#include "cli/systems.hpp"
#include "contract/descriptor.hpp"
#include "falsify/program/system.hpp"
#include "plugin/declaration.hpp"
#include "runtime/registry.hpp"

namespace assay::cli {
namespace {

int list(bool as_json) {
  nlohmann::json ops = nlohmann::json::array();
  for (const OpDescriptor* op : operations()) {
    nlohmann::json list = nlohmann::json::array();
    for (const Kernel* k : kernels_of(op->name))
      list.push_back({{"id", k->id},
                      {"backend", name(k->backend)},
                      {"summary", k->summary},
                      {"source", k->source},
                      {"arithmetic", to_string(k->arithmetic)},
                      {"deterministic", k->deterministic},
                      {"batch_invariant", k->batch_invariant},
                      {"peer", k->role == KernelRole::peer}});
    ops.push_back({{"op", op->name},
                   {"summary", op->summary},
                   {"contract", op->file},
                   {"obligations", op->obligations.size()},
                   {"kernels", list}});
  }
  nlohmann::json systems = nlohmann::json::array();
  for (const falsify::System& system : falsify::systems())
    systems.push_back(
        {{"system", system.op.name}, {"summary", system.op.summary}, {"obligations", system.op.obligations.size()}});
  if (as_json) {
    fmt::print("{}\n", nlohmann::json{{"schema", "assay-list/1"}, {"operations", ops}, {"systems", systems}}.dump(2));
    return kNothingFalsified;
  }
  for (const auto& op : ops) {
    fmt::print("{}: {} ({}, {} obligations)\n", op["op"].get<std::string>(), op["summary"].get<std::string>(),
               op["contract"].get<std::string>(), op["obligations"].get<int>());
    for (const auto& k : op["kernels"])
      fmt::print("  {:<34} {}\n", k["id"].get<std::string>(), k["summary"].get<std::string>());
  }
  for (const auto& system : systems)
    fmt::print("{}: {} (a system, {} obligations)\n", system["system"].get<std::string>(),
               system["summary"].get<std::string>(), system["obligations"].get<int>());
  return kNothingFalsified;
}

nlohmann::json describe(const OpDescriptor& op) {
  nlohmann::json j{{"schema", "assay-explain/1"}, {"op", op.name}, {"summary", op.summary}, {"contract", op.file}};
  for (auto e : op.equations) j["equations"].push_back(e);
  for (auto s : op.sources) j["sources"].push_back(s);
  for (const DimInfo& d : op.dims)
    j["dims"].push_back({{"name", d.name}, {"min", d.min}, {"max", d.max}, {"says", d.says}});
  for (const ParamInfo& p : op.params) {
    nlohmann::json& row = j["params"].emplace_back(
        nlohmann::json{{"name", p.name}, {"typical", p.typical}, {"integer", p.integer}, {"says", p.says}});
    if (!p.choices.empty()) row["choices"] = std::vector<double>(p.choices.begin(), p.choices.end());
    else row["min"] = p.min, row["max"] = p.max;
  }
  for (const plugin::DeclarationKey& key : plugin::declaration_keys())
    j["declare"].push_back({{"key", key.name}, {"values", key.values}, {"says", key.says}, {"usual", key.usual}});
  for (const TensorInfo& t : op.tensors)
    j["tensors"].push_back({{"name", t.name},
                            {"role", t.role == Role::in    ? "in"
                                     : t.role == Role::out ? "out"
                                                           : "inout"},
                            {"dtype", t.storage ? "storage" : name(t.dtype)},
                            {"saved", t.saved},
                            {"shape", t.shape_text},
                            {"says", t.says}});
  for (const ClauseInfo& c : op.clauses)
    j["clauses"].push_back({{"id", c.id},
                            {"kind", c.kind == ClauseKind::requires_clause  ? "requires"
                                     : c.kind == ClauseKind::ensures_clause ? "ensures"
                                                                            : "certificate"},
                            {"says", c.says},
                            {"line", c.line}});
  for (const PinInfo& p : op.pins)
    j["pins"].push_back({{"name", p.name}, {"says", p.says}, {"tested_by", p.tested_by}});
  for (const ObligationInfo& o : op.obligations)
    j["obligations"].push_back({{"id", o.id}, {"claim", o.claim}, {"by", o.by}, {"if_fails", o.if_fails}});
  for (const GradientInfo& g : op.gradients)
    j["gradients"].push_back({{"id", g.id},
                              {"input", op.tensors[static_cast<std::size_t>(g.input)].name},
                              {"equation", g.equation},
                              {"by", g.by}});
  return j;
}

int explain(const std::string& which, bool as_json) {
  if (falsify::find_system(which) != nullptr) {
    const nlohmann::json explained = explain_system(which);
    fmt::print("{}", as_json ? explained.dump(2) + "\n" : explanation_text(explained));
    return kNothingFalsified;
  }
  const nlohmann::json j = describe(operation_named(which));
  if (as_json) {
    fmt::print("{}\n", j.dump(2));
    return kNothingFalsified;
  }
  const auto text = [](const nlohmann::json& x, const char* key) { return x[key].get<std::string>(); };
  fmt::print("{}: {}\n", text(j, "op"), text(j, "summary"));
  for (const auto& e : j["equations"]) fmt::print("  {}\n", e.get<std::string>());
  fmt::print("\nTensors\n");
  for (const auto& t : j["tensors"])
    fmt::print("  {:<4} {} {} {}  {}\n", text(t, "role"), text(t, "name"), text(t, "shape"), text(t, "dtype"),
               text(t, "says"));
  fmt::print("\nDims\n");
  for (const auto& d : j["dims"])
    fmt::print("  {} from {} to {}: {}\n", text(d, "name"), d["min"].dump(), d["max"].dump(), text(d, "says"));
  if (j.contains("params")) fmt::print("\nParams\n");
  for (const auto& p : j.value("params", nlohmann::json::array()))
    fmt::print("  {} {}: {}\n", text(p, "name"),
               p.contains("choices") ? "one of " + p["choices"].dump()
                                     : fmt::format("from {} to {}", p["min"].dump(), p["max"].dump()),
               text(p, "says"));
  fmt::print("\nThe contract\n");
  for (const auto& c : j["clauses"])
    fmt::print("  {:<12} {:<11} {}\n", text(c, "id"), text(c, "kind"), text(c, "says"));
  fmt::print("\nFalsified by\n");
  for (const auto& o : j["obligations"])
    fmt::print("  {:<18} {} (if it fails, suspect: {})\n", text(o, "id"), text(o, "claim"), text(o, "if_fails"));
  if (j.contains("pins")) fmt::print("\nPinned, where correct-looking kernels differ\n");
  for (const auto& p : j.value("pins", nlohmann::json::array()))
    fmt::print("  {:<18} {} ({})\n", text(p, "name"), text(p, "says"), text(p, "tested_by"));
  if (j.contains("gradients")) fmt::print("\nGradients\n");
  for (const auto& g : j.value("gradients", nlohmann::json::array()))
    fmt::print("  {:<12} {}: {}{}\n", text(g, "id"), text(g, "input"), text(g, "equation"),
               text(g, "by").empty() ? "" : " = " + text(g, "by"));
  fmt::print("\nKernels\n");
  for (const Kernel* k : kernels_of(text(j, "op")))
    fmt::print("  {:<34} {}\n  {:<34} {}{}{}\n", k->id, k->summary, "", to_string(k->arithmetic),
               k->deterministic ? "" : ", other bits from run to run",
               k->batch_invariant ? "" : ", other bits in other batches");
  fmt::print("\nWhat a kernel of yours may declare (--declare key=value,...)\n");
  for (const auto& d : j["declare"]) fmt::print("  {}={}  {}\n", text(d, "key"), text(d, "values"), text(d, "says"));
  if (std::ranges::any_of(operation(which).tensors, &TensorInfo::storage))
    fmt::print(
        "\nWith storage=bf16 or f16\n  A result is rounded once to the nearest number that is stored. Of two that are equally near either is right (ties to even, or away from "
        "zero); truncation is not.\n");
  fmt::print("\nSources\n");
  for (const auto& s : j["sources"]) fmt::print("  {}\n", s.get<std::string>());
  return kNothingFalsified;
}

}  // namespace

Command add_list(Parser& parser) {
  auto output = std::make_shared<Output>();
  auto command = parser.command("list", "Operations and their kernels, and systems", *output);
  return {command, [output] { return list(output->json); }};
}

Command add_explain(Parser& parser) {
  auto output = std::make_shared<Output>();
  auto command = parser.command("explain", "One contract in words", *output);
  auto which = std::make_shared<std::string>();
  command.option("OP", *which, "The operation, or a system").required();
  return {command, [which, output] { return explain(*which, output->json); }};
}

}  // namespace assay::cli
