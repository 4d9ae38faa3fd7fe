#include "program/model/configuration.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "program/model/gguf.hpp"

namespace assay::program {
namespace {

using nlohmann::json;

class Reader {
 public:
  Reader(std::string where, json all) : where_(std::move(where)), all_(std::move(all)) {}

  Index count(const char* key) const {
    const json& value = given(key);
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1) refuse(key, fmt::format("is {}", value.dump()));
    return value.get<Index>();
  }
  Index count(const char* key, Index absent) const { return has(key) ? count(key) : absent; }
  double number(const char* key, double absent) const {
    if (!has(key)) return absent;
    if (!all_[key].is_number()) refuse(key, fmt::format("is {}", all_[key].dump()));
    return all_[key].get<double>();
  }
  bool flag(const char* key, bool absent) const {
    if (!has(key)) return absent;
    if (!all_[key].is_boolean()) refuse(key, fmt::format("is {}", all_[key].dump()));
    return all_[key].get<bool>();
  }
  std::string text(const char* key) const {
    const json& value = given(key);
    if (!value.is_string()) refuse(key, fmt::format("is {}", value.dump()));
    return value.get<std::string>();
  }
  bool has(const char* key) const { return all_.contains(key) && !all_[key].is_null(); }
  const json& operator[](const char* key) const { return all_[key]; }

  [[noreturn]] void refuse(const char* key, const std::string& problem,
                           const std::string& remedy = "see the model's documentation for its value") const {
    throw InputError(fmt::format("{}: {}", where_, key), problem, remedy);
  }

 private:
  const json& given(const char* key) const {
    if (!has(key)) refuse(key, "is missing");
    return all_[key];
  }

  std::string where_;
  json all_;
};

/// The base of the rotation; it may stand in `rope_parameters`, beside a scaling.
double theta_of(const Reader& c) {
  double theta = c.number("rope_theta", 10000);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!c.has(key)) continue;
    const json& rope = c[key];
    for (const char* type : {"rope_type", "type"})
      if (rope.is_object() && rope.contains(type) && rope[type] != "default")
        c.refuse(key, fmt::format("scales the rotation ({})", rope[type].dump()),
                 "take a model whose rotation is plain");
    if (rope.is_object() && rope.contains("rope_theta") && rope["rope_theta"].is_number()) theta = rope["rope_theta"];
  }
  return theta;
}

}  // namespace

TransformerConfig read_configuration(const std::filesystem::path& path) {
  if (is_gguf(path)) return gguf_configuration(path);
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / "config.json" : path;
  json parsed = json::parse(files::read(file, "name a model's folder, or its config.json"), nullptr, false);
  if (!parsed.is_object()) throw InputError(file.string(), "is no JSON object", "name a model's config.json");
  const Reader c(file.string(), std::move(parsed));
  const std::string type = c.text("model_type");
  if (type != "llama" && type != "qwen2" && type != "qwen3")
    c.refuse("model_type", fmt::format("is {}", type), "take a llama, qwen2 or qwen3 model");
  if (c.has("hidden_act") && c.text("hidden_act") != "silu")
    c.refuse("hidden_act", fmt::format("is {}", c.text("hidden_act")), "take a model with silu");
  if (c.flag("use_sliding_window", false))
    c.refuse("use_sliding_window", "is true", "take a model that sees its whole context");
  TransformerConfig t;
  t.hidden = c.count("hidden_size"), t.intermediate = c.count("intermediate_size");
  t.heads = c.count("num_attention_heads"), t.kv_heads = c.count("num_key_value_heads", t.heads);
  t.head_dim = c.count("head_dim", type == "qwen3" ? 128 : t.hidden / t.heads), t.layers = c.count("num_hidden_layers");
  t.vocabulary = c.count("vocab_size"), t.theta = theta_of(c), t.eps = c.number("rms_norm_eps", 1e-6);
  t.tied_head = c.flag("tie_word_embeddings", false), t.q_norm = t.k_norm = type == "qwen3";
  // Qwen2's classes read none of these flags, and Qwen3's only the first.
  if (type == "qwen2" || c.flag("attention_bias", false)) t.biases = {Projection::q, Projection::k, Projection::v};
  if (type != "qwen2" && c.flag("attention_bias", false)) t.biases.insert(Projection::o);
  if (type == "llama" && c.flag("mlp_bias", false))
    t.biases.insert({Projection::gate, Projection::up, Projection::down});
  check(t);
  return t;
}

}  // namespace assay::program
