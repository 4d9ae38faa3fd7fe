#include "program/model/gguf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/errors.hpp"
#include "core/files.hpp"

namespace assay::program {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr char kMagic[] = {'G', 'G', 'U', 'F'};

/// A type of tensors, in blocks of so many values. Source: ggml/src/ggml.c, type_traits.
struct GgufType {
  std::uint32_t id;
  const char* name;
  std::uint64_t values, bytes;
};
constexpr GgufType kGgufTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},        {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},     {8, "Q8_0", 32, 34},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},  {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210},
    {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74}, {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110}, {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1},         {25, "I16", 1, 2},       {26, "I32", 1, 4},        {27, "I64", 1, 8},
    {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},  {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17}};

/// Tensors of a layer, and of the model, by their names in GGUF.
constexpr std::pair<std::string_view, std::string_view> kOfLayer[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_q_norm", "self_attn.q_norm"}, {"attn_k_norm", "self_attn.k_norm"},
    {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"}};
constexpr std::pair<std::string_view, std::string_view> kOfModel[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"}};

std::string checkpoint_name(std::string_view name) {
  for (const auto& [ours, theirs] : kOfModel)
    if (name == ours) return std::string(theirs);
  constexpr std::string_view block = "blk.";
  const std::size_t layer = name.find('.', block.size()), last = name.rfind('.');
  if (name.starts_with(block) && layer != std::string_view::npos && layer < last)
    for (const auto& [ours, theirs] : kOfLayer)
      if (name.substr(layer + 1, last - layer - 1) == ours)
        return fmt::format("model.layers.{}.{}{}", name.substr(block.size(), layer - block.size()), theirs,
                           name.substr(last));
  return std::string(name);
}

/// The header, which precedes the data. A list of the metadata is only its length: vocabularies are long.
struct Header {
  std::map<std::string, json> metadata;
  std::map<std::string, Weights::Entry, std::less<>> tensors;
};

class HeaderReader {
 public:
  explicit HeaderReader(const fs::path& file) : file_(file), in_(file, std::ios::binary) {
    files::expect_regular(file, "name a GGUF file");
    size_ = fs::file_size(file);
  }

  Header header() {
    char magic[sizeof kMagic];
    take(magic, sizeof magic);
    if (std::memcmp(magic, kMagic, sizeof magic) != 0) refuse("does not begin with GGUF");
    if (const auto version = number<std::uint32_t>(); version != 2 && version != 3)
      refuse(fmt::format("is of version {}", version), "convert it to version 3");
    const auto tensors = number<std::uint64_t>(), entries = number<std::uint64_t>();
    Header h;
    for (std::uint64_t i = 0; i < entries; ++i) {
      const std::string key = text();
      if (!h.metadata.emplace(key, value(number<std::uint32_t>())).second)
        refuse(fmt::format("has the key '{}' twice", key));
    }
    if (h.metadata.contains("split.count") && h.metadata["split.count"] != 1)
      refuse(fmt::format("is one of {} pieces", h.metadata["split.count"].dump()),
             "join them by llama-gguf-split --merge");
    for (std::uint64_t i = 0; i < tensors; ++i) tensor(h);
    place(h);
    return h;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& remedy = "write the file anew") const {
    throw InputError(file_.string(), what, remedy);
  }

  void take(char* to, std::uint64_t bytes) {
    if (bytes > size_ - at_ || !in_.read(to, static_cast<std::streamsize>(bytes)))
      refuse(fmt::format("ends within its header, at byte {}", size_));
    at_ += bytes;
  }
  template <class T>
  T number() {
    T value;
    take(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  std::string text() {
    const auto bytes = number<std::uint64_t>();
    if (bytes > size_ - at_) refuse(fmt::format("has a text of {} bytes, and ends before", bytes));
    std::string s(bytes, '\0');
    take(s.data(), bytes);
    return s;
  }

  json value(std::uint32_t type) {
    switch (type) {
      case 0: return number<std::uint8_t>();
      case 1: return number<std::int8_t>();
      case 2: return number<std::uint16_t>();
      case 3: return number<std::int16_t>();
      case 4: return number<std::uint32_t>();
      case 5: return number<std::int32_t>();
      case 6: return number<float>();
      case 7: return number<std::uint8_t>() != 0;
      case 8: return text();
      case 9: {
        const auto element = number<std::uint32_t>();
        const auto count = number<std::uint64_t>();
        if (element == 9) refuse("has a list of lists in its metadata");
        for (std::uint64_t i = 0; i < count; ++i) value(element);
        return {{"list", count}};
      }
      case 10: return number<std::uint64_t>();
      case 11: return number<std::int64_t>();
      case 12: return number<double>();
      default: refuse(fmt::format("has metadata of a type that is unknown: {}", type));
    }
  }

  void tensor(Header& h) {
    const std::string own = text(), name = checkpoint_name(own);
    Weights::Entry e{.file = file_, .dtype = {}, .shape = {}};
    const auto rank = number<std::uint32_t>();
    if (rank > 4) refuse(fmt::format("has {} with {} dims", own, rank));
    std::uint64_t values = 1;
    for (std::uint32_t axis = 0; axis < rank; ++axis) {
      const auto extent = number<std::uint64_t>();
      if (extent > std::numeric_limits<std::int32_t>::max() || __builtin_mul_overflow(values, extent, &values))
        refuse(fmt::format("has {} of too many elements", own));
      e.shape.insert(e.shape.begin(), static_cast<Index>(extent));  // the fastest axis comes first in the file
    }
    const auto id = number<std::uint32_t>();
    const auto* const type = std::ranges::find(kGgufTypes, id, &GgufType::id);
    if (type == std::end(kGgufTypes)) refuse(fmt::format("has {} of type {}, which is unknown", own, id));
    if (const auto row = e.shape.empty() ? 1 : static_cast<std::uint64_t>(e.shape.back()); row % type->values != 0)
      refuse(fmt::format("has {} with rows of {} in {}, whose blocks hold {}", own, row, type->name, type->values));
    e.dtype = type->name, e.bytes = values / type->values * type->bytes, e.begin = number<std::uint64_t>();
    if (e.bytes > size_) refuse(fmt::format("has {} of {} bytes in a file of {}", own, e.bytes, size_));
    if (!h.tensors.emplace(name, e).second) refuse(fmt::format("has the tensor {} twice", own));
  }

  /// Offsets are from where the data begins.
  void place(Header& h) {
    std::uint64_t alignment = 32;
    if (const auto given = h.metadata.find("general.alignment"); given != h.metadata.end()) {
      if (!given->second.is_number_unsigned() || given->second == 0)
        refuse(fmt::format("has {} as general.alignment", given->second.dump()));
      alignment = given->second;
    }
    const std::uint64_t data = (at_ + alignment - 1) / alignment * alignment;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> stretches;
    for (auto& [name, e] : h.tensors) {
      if (e.begin % alignment != 0)
        refuse(fmt::format("has {} at {}, which is not aligned to {}", name, e.begin, alignment));
      if (data > size_ || e.begin > size_ - data || e.bytes > size_ - data - e.begin)
        refuse(fmt::format("ends before {} does", name), "copy it again: it is cut off");
      e.begin += data;
      stretches.emplace_back(e.begin, e.begin + e.bytes);
    }
    std::ranges::sort(stretches);
    for (std::size_t i = 1; i < stretches.size(); ++i)
      if (stretches[i].first < stretches[i - 1].second)
        refuse(fmt::format("has tensors that overlap at byte {}", stretches[i].first));
  }

  fs::path file_;
  std::ifstream in_;
  std::uint64_t size_ = 0, at_ = 0;
};

/// Metadata by key.
class Metadata {
 public:
  Metadata(std::string file, std::map<std::string, json> all) : file_(std::move(file)), all_(std::move(all)) {
    architecture_ = text("general.architecture");
    constexpr std::array known{"llama", "qwen2", "qwen3"};
    if (std::ranges::find(known, architecture_) == known.end())
      refuse("general.architecture", fmt::format("is {}", architecture_), "take a llama, qwen2 or qwen3 model");
  }

  const std::string& architecture() const { return architecture_; }
  /// Of the architecture: "llama.block_count".
  std::string key(const char* rest) const { return fmt::format("{}.{}", architecture_, rest); }
  const json* find(const std::string& key) const {
    const auto found = all_.find(key);
    return found == all_.end() ? nullptr : &found->second;
  }
  Index count(const char* rest, Index absent = 0) const {
    const json* const value = find(key(rest));
    if (value == nullptr && absent > 0) return absent;
    if (value == nullptr) refuse(key(rest), "is missing");
    if (!value->is_number_integer() || value->get<std::int64_t>() < 1 ||
        value->get<std::int64_t>() > std::numeric_limits<std::int32_t>::max())
      refuse(key(rest), fmt::format("is {}", value->dump()));
    return value->get<Index>();
  }
  double number(const char* rest, double absent) const {
    const json* const value = find(key(rest));
    if (value == nullptr) return absent;
    if (!value->is_number()) refuse(key(rest), fmt::format("is {}", value->dump()));
    return value->get<double>();
  }
  std::string text(const std::string& key) const {
    const json* const value = find(key);
    if (value == nullptr || !value->is_string()) refuse(key, value == nullptr ? "is missing" : "is no text");
    return value->get<std::string>();
  }
  /// Refuses a key whose value is not `neutral`.
  void expect(const char* rest, const json& neutral, const std::string& remedy) const {
    if (const json* const value = find(key(rest)); value != nullptr && *value != neutral)
      refuse(key(rest), fmt::format("is {}", value->dump()), remedy);
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& problem,
                           const std::string& remedy = "convert the model anew") const {
    throw InputError(fmt::format("{}: {}", file_, key), problem, remedy);
  }

 private:
  std::string file_;
  std::map<std::string, json> all_;
  std::string architecture_;
};

Index heads_of(const Metadata& m, bool keys) {
  const Index heads = m.count("attention.head_count");
  return keys ? m.count("attention.head_count_kv", heads) : heads;
}

}  // namespace

bool is_gguf(const fs::path& path) {
  char magic[sizeof kMagic] = {};
  if (!fs::is_regular_file(path)) return false;
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return std::memcmp(magic, kMagic, sizeof magic) == 0;
}

std::map<std::string, Weights::Entry, std::less<>> gguf_tensors(const fs::path& file) {
  Header header = HeaderReader(file).header();
  const Metadata m(file.string(), std::move(header.metadata));
  for (auto& [name, e] : header.tensors) {
    const bool q = name.find(".self_attn.q_proj.") != std::string::npos,
               k = name.find(".self_attn.k_proj.") != std::string::npos;
    // Converters of llama store the rows of a head pair by pair, for a rotation of neighbours.
    if (m.architecture() == "llama" && (q || k)) e.interleaved_heads = heads_of(m, k);
    if (e.interleaved_heads > 0 && (e.shape.empty() || e.shape[0] % (2 * e.interleaved_heads) != 0))
      throw InputError(fmt::format("{}: {}", file.string(), name),
                       fmt::format("its rows are no pairs of {} heads", e.interleaved_heads), "convert the model anew");
  }
  return std::move(header.tensors);
}

TransformerConfig gguf_configuration(const fs::path& file) {
  Header header = HeaderReader(file).header();
  const Metadata m(file.string(), std::move(header.metadata));
  const auto& tensors = header.tensors;
  const auto has = [&](std::string_view name) { return tensors.contains(name); };
  TransformerConfig t;
  t.hidden = m.count("embedding_length"), t.intermediate = m.count("feed_forward_length");
  t.heads = heads_of(m, false), t.kv_heads = heads_of(m, true), t.layers = m.count("block_count");
  t.head_dim = m.count("attention.key_length", t.hidden / t.heads);
  t.theta = m.number("rope.freq_base", 10000), t.eps = m.number("attention.layer_norm_rms_epsilon", 1e-6);
  m.expect("attention.value_length", t.head_dim, "take a model whose keys and values are of one length");
  m.expect("rope.dimension_count", t.head_dim, "take a model that rotates whole heads");
  m.expect("rope.scaling.type", "none", "take a model whose rotation is plain");
  m.expect("rope.scale_linear", 1.0, "take a model whose rotation is plain");
  m.expect("expert_count", 0, "take a model without experts");
  m.expect("attention.sliding_window", 0, "take a model that sees its whole context");
  if (has("rope_freqs.weight"))
    m.refuse("rope_freqs.weight", "scales the rotation", "take a model whose rotation is plain");
  constexpr std::string_view table = "model.embed_tokens.weight", layer = "model.layers.0.";
  if (!has(table)) m.refuse("token_embd.weight", "is missing");
  t.vocabulary = tensors.find(table)->second.shape.front();
  t.tied_head = !has("lm_head.weight");
  t.q_norm = has(fmt::format("{}self_attn.q_norm.weight", layer));
  t.k_norm = has(fmt::format("{}self_attn.k_norm.weight", layer));
  bool packed = true;
  for (const Projection p : kProjections) {
    const bool feed_forward = p == Projection::gate || p == Projection::up || p == Projection::down;
    const std::string own = fmt::format("{}{}.{}", layer, feed_forward ? "mlp" : "self_attn", name(p));
    if (has(own + ".bias")) t.biases.insert(p);
    const std::string weight = fmt::format(".{}.weight", name(p));
    for (const auto& [tensor, e] : tensors)
      if (tensor.starts_with("model.layers.") && tensor.ends_with(weight)) packed = packed && e.dtype == "Q4_K";
  }
  if (!t.tied_head) packed = packed && tensors.find("lm_head.weight")->second.dtype == "Q4_K";
  if (packed) t.weights = WeightFormat::q4_k, t.trains = false;
  check(t);
  return t;
}

}  // namespace assay::program
