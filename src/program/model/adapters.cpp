#include "program/model/adapters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "program/model/parameters.hpp"
#include "program/operations.hpp"

namespace assay::program {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "base_model.model.", kClassifier = "classifier.weight";

bool is_adapter(std::string_view name) { return name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight"); }

bool is_bias_of_projection(std::string_view name) { return name.ends_with("_proj.bias"); }
/// Parameters that peft counts among the modules to save.
bool is_saved_module(const Parameter& p) {
  return p.trainable && !is_adapter(p.name) && !is_bias_of_projection(p.name);
}

bool has(const Program& program, const std::string& name) {
  return std::ranges::find(program.parameters, name, &Parameter::name) != program.parameters.end();
}

/// The name of a parameter in peft's files: what an adapter wraps is its base_layer.
std::string stored_name(const Program& program, const std::string& name) {
  const std::string layer = name.substr(0, name.rfind('.'));
  const bool wrapped = is_bias_of_projection(name) && has(program, layer + ".lora_A.weight");
  return fmt::format("{}{}{}", kPrefix, layer + (wrapped ? ".base_layer" : ""), name.substr(layer.size()));
}

std::vector<float> transposed(std::span<const float> x, Index rows, Index columns) {
  std::vector<float> y;
  for (Index c = 0; c < columns; ++c)
    for (Index r = 0; r < rows; ++r) y.push_back(x[static_cast<std::size_t>(r * columns + c)]);
  return y;
}

/// The elements of a packed parameter, as its codes and scales give them to every product.
std::vector<float> dequantized(Session& session, const Parameter& p) {
  std::vector<float> all;
  const PartOfRows whole[] = {{0, p.shape[0], p.value, p.scales}};
  for (const PartOfRows& part : p.parts.empty() ? std::span(whole) : std::span(p.parts)) {
    Builder b;
    const Value codes = b.input("codes", session.program()[part.value].shape, DType::u8),
                scales = part.scales ? b.input("scales", session.program()[part.scales].shape) : Value{},
                weight = scales ? nf4_dequantize(b, codes, scales, p.shape[1]) : q4_k_dequantize(b, codes, p.shape[1]);
    b.output(weight);
    Session unpacking(b.take(), assay::device(Backend::cpu));
    unpacking.set(codes, session.get<std::uint8_t>(part.value));
    if (scales) unpacking.set(scales, session.get<float>(part.scales));
    unpacking.run();
    const std::vector<float> rows = unpacking.get<float>(weight);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

/// Throws unless the tensor has the parameter's shape.
void expect_shape(const Weights::Entry& entry, const std::string& name, const std::vector<Index>& wanted) {
  if (entry.shape == wanted) return;
  const auto text = [](const std::vector<Index>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); };
  throw InputError(fmt::format("{}: {}", entry.file.string(), name),
                   fmt::format("has the shape {} where the model has {}", text(entry.shape), text(wanted)),
                   "check the model's configuration");
}

}  // namespace

std::vector<std::string> set_base(Session& session, const Weights* weights, std::uint64_t seed) {
  std::set<std::string, std::less<>> unused;
  if (weights != nullptr)
    for (const auto& [name, entry] : weights->entries()) unused.insert(name);
  for (const Parameter& p : session.program().parameters) {
    const bool made = is_adapter(p.name) || p.name.starts_with("classifier.");
    if (weights == nullptr || (made && !weights->entries().contains(p.name))) continue;
    expect_tensor(session.program(), *weights, p);
    expect_shape(weights->entry(p.name), p.name, extents(p.shape));
    unused.erase(p.name);
  }
  const std::vector<std::string> left(unused.begin(), unused.end());
  expect_whole_layers(session.program(), left);
  expect_no_more_layers(session.program(), left);
  for (const Parameter& p : session.program().parameters) {
    if (weights != nullptr && weights->entries().contains(p.name)) set_parameter(session, p, *weights);
    else set_parameter(session, p.name, p.shape, initial_values(p.name, p.shape, seed));
  }
  return left;
}

void set_base(Session& session, Session& from, std::uint64_t seed) {
  const Program &program = session.program(), &base = from.program();
  for (const Parameter& p : program.parameters) {
    if (is_adapter(p.name) && !has(base, p.name)) continue;
    const Parameter& its = parameter(base, p.name);
    if (!(its.shape == p.shape))
      throw InputError(p.name, fmt::format("it is {}, and the base has {}", to_string(p.shape), to_string(its.shape)),
                       "take a base of the same configuration");
  }
  for (const Parameter& p : base.parameters)
    if (!has(program, p.name))
      throw InputError(p.name, "the base has it, and the model has not", "take a base of the same configuration");
  for (const Parameter& p : program.parameters)
    set_parameter(
        session, p.name, p.shape,
        has(base, p.name) ? get_parameter(from, parameter(base, p.name)) : initial_values(p.name, p.shape, seed));
}

std::vector<std::string> adapter_names(const Program& program) {
  std::vector<std::string> names;
  for (const Parameter& p : program.parameters)
    if (is_adapter(p.name)) names.push_back(p.name);
  return names;
}

bool has_frozen_bases(const Program& program) {
  return std::ranges::none_of(program.parameters, [&](const Parameter& p) {
    return p.trainable && p.name.ends_with("_proj.weight") &&
           has(program, p.name.substr(0, p.name.rfind('.')) + ".lora_A.weight");
  });
}

void save_adapters(Session& session, const Adapters& adapters, const fs::path& folder, const std::string& base) {
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> tensors;
  std::set<std::string> modules;
  const Program& program = session.program();
  if (!has_frozen_bases(program))
    throw InputError("adapters", "a weight trains beside its adapter", "save the merged model");
  const bool biases = std::ranges::any_of(
      program.parameters, [](const Parameter& p) { return p.trainable && is_bias_of_projection(p.name); });
  for (const Parameter& p : program.parameters) {
    const bool bias = biases && is_bias_of_projection(p.name);
    if (!is_adapter(p.name) && !is_saved_module(p) && !bias) continue;
    std::vector<Index> shape = extents(p.shape);
    values.push_back(session.get<float>(p.value));
    if (p.name == kClassifier) {
      values.back() = transposed(values.back(), shape[0], shape[1]);
      std::swap(shape[0], shape[1]);
    }
    tensors.push_back({stored_name(program, p.name), shape, {}});
    if (is_adapter(p.name) || bias) continue;
    const std::string module = p.name.substr(0, p.name.rfind('.'));
    modules.insert(module.substr(module.rfind('.') + 1));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].elements = values[i];
  json targets = json::array();
  for (const Projection p : adapters.on) targets.push_back(name(p));
  const json config{{"peft_type", "LORA"},
                    {"task_type", nullptr},
                    {"base_model_name_or_path", base},
                    {"r", adapters.rank},
                    {"lora_alpha", adapters.alpha},
                    {"lora_dropout", 0.0},
                    {"target_modules", targets},
                    {"modules_to_save", modules.empty() ? json() : json(modules)},
                    {"bias", biases ? "all" : "none"},
                    {"fan_in_fan_out", false},
                    {"inference_mode", true},
                    {"init_lora_weights", true},
                    {"use_dora", false},
                    {"use_rslora", false},
                    {"rank_pattern", json::object()},
                    {"alpha_pattern", json::object()}};
  save(folder / "adapter_model.safetensors", tensors);
  files::write(folder / "adapter_config.json", config.dump(2) + "\n");
}

Adapters read_adapters(const fs::path& folder) {
  const fs::path file = folder / "adapter_config.json";
  const json c = json::parse(files::read(file, "name a folder that peft wrote"), nullptr, false);
  const auto refuse = [&](const std::string& problem, const std::string& remedy = "take a plain LoRA adapter") {
    throw InputError(file.string(), problem, remedy);
  };
  if (!c.is_object() || c.value("peft_type", json()) != "LORA") refuse("is no configuration of a LoRA adapter");
  for (const char* flag : {"use_dora", "use_rslora", "fan_in_fan_out", "lora_bias"})
    if (c.contains(flag) && c[flag] != false && !c[flag].is_null()) refuse(fmt::format("has {}", flag));
  for (const char* pattern : {"rank_pattern", "alpha_pattern", "layers_to_transform", "layer_replication"})
    if (c.contains(pattern) && !c[pattern].empty()) refuse(fmt::format("has a {}", pattern));
  if (c.contains("bias") && c["bias"] != "none" && c["bias"] != "all")  // peft saves no biases as "lora_only"
    refuse(fmt::format("has the bias {}", c["bias"].dump()));
  if (!c.contains("r") || !c["r"].is_number_unsigned()) refuse("has no rank");
  if (!c.contains("lora_alpha") || !c["lora_alpha"].is_number()) refuse("has no lora_alpha");
  if (!c.contains("target_modules") || !c["target_modules"].is_array() || c["target_modules"].empty())
    refuse("has no list of target_modules", "name projections, such as q_proj");
  Adapters adapters{{}, c["r"].get<Index>(), c["lora_alpha"].get<double>()};
  for (const json& target : c["target_modules"]) {
    const auto at = std::ranges::find_if(kProjections, [&](Projection p) { return target == name(p); });
    if (at == kProjections.end())
      refuse(fmt::format("has the target {}", target.dump()), "take projections alone, such as q_proj");
    adapters.on.insert(*at);
  }
  return adapters;
}

void load_adapters(Session& session, const fs::path& folder) {
  const Weights weights(folder / "adapter_model.safetensors");
  std::set<std::string, std::less<>> unused;
  for (const auto& [name, entry] : weights.entries())  // beside all biases peft saves a module's own again
    if (name.find(".modules_to_save.") == name.npos && name.find(".original_module.") == name.npos) unused.insert(name);
  std::vector<std::pair<const Parameter*, std::vector<float>>> values;
  for (const Parameter& p : session.program().parameters) {
    const std::string name = stored_name(session.program(), p.name);
    if (!is_adapter(p.name) && !weights.entries().contains(name)) continue;
    std::vector<Index> shape = extents(p.shape);
    if (p.name == kClassifier) std::swap(shape[0], shape[1]);
    expect_shape(weights.entry(name), name, shape);
    values.emplace_back(&p, weights.read_finite(name));
    if (p.name == kClassifier) values.back().second = transposed(values.back().second, shape[0], shape[1]);
    unused.erase(name);
  }
  if (!unused.empty())
    throw InputError((folder / "adapter_model.safetensors").string(),
                     fmt::format("has {}, which the model has not", *unused.begin()), "take an adapter of this model");
  for (const auto& [p, elements] : values) set_parameter(session, p->name, p->shape, elements);
}

void save_merged(Session& session, const Adapters& adapters, const fs::path& file) {
  const Program& program = session.program();
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> tensors;
  for (const Parameter& p : program.parameters) {
    if (is_adapter(p.name)) continue;
    std::vector<float> w = is_packed(p.format) ? dequantized(session, p) : get_parameter(session, p);
    const std::string layer = p.name.substr(0, p.name.rfind('.'));
    const auto a = std::ranges::find(program.parameters, layer + ".lora_A.weight", &Parameter::name);
    if (p.name.ends_with("_proj.weight") && a != program.parameters.end()) {
      const Parameter& b = parameter(program, layer + ".lora_B.weight");
      Builder builder;
      const Value weight = builder.input("weight", p.shape), down = builder.input("a", a->shape),
                  up = builder.input("b", b.shape), merged = lora_merge(builder, weight, down, up, adapters.alpha);
      builder.output(merged);
      Session merging(builder.take(), assay::device(Backend::cpu));
      merging.set(weight, w), merging.set(down, session.get<float>(a->value));
      merging.set(up, session.get<float>(b.value));
      merging.run();
      w = merging.get<float>(merged);
    }
    values.push_back(std::move(w));
    tensors.push_back({p.name, extents(p.shape), {}});
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].elements = values[i];
  save(file, tensors);
}

}  // namespace assay::program
