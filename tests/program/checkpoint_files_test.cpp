// Checkpoints as transformers saves them (tests/golden/checkpoints): configurations by their numbers, and weights by
// their names, in one file or in shards, in every type.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <nlohmann/json.hpp>

#include "blocks.hpp"
#include "core/files.hpp"
#include "core/half.hpp"
#include "program/model/configuration.hpp"
#include "program/model/parameters.hpp"
#include "program/model/safetensors.hpp"
#include "refusal.hpp"

namespace assay::program::checkpoint_files_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kFolder = ASSAY_GOLDEN "/checkpoints";
using P = Projection;

class CheckpointFiles : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::temp_directory_path() /
                     (std::string("assay-") + testing::UnitTest::GetInstance()->current_test_info()->name());

  /// The configuration of a golden checkpoint, changed.
  TransformerConfig read(const char* of, const std::function<void(json&)>& change) {
    json config = json::parse(files::read(kFolder / of / "config.json", ""));
    change(config);
    files::write(folder_ / "config.json", config.dump());
    return read_configuration(folder_);
  }
};

/// "theta 1e6, eps 3e-5" and so on: every field that a config.json decides.
std::string numbers(const TransformerConfig& c) {
  std::string biases;
  for (const P p : c.biases) biases += fmt::format("{} ", name(p));
  return fmt::format("H {} I {} heads {}/{} D {} L {} V {} theta {} eps {} tied {} causal {} norms {}{} biases {}",
                     c.hidden, c.intermediate, c.heads, c.kv_heads, c.head_dim, c.layers, c.vocabulary, c.theta, c.eps,
                     c.tied_head, c.causal, c.q_norm, c.k_norm, biases);
}
constexpr const char* kQwen2 =
    "H 8 I 6 heads 4/2 D 2 L 2 V 11 theta 1000000 eps 3e-05 tied true causal true norms falsefalse "
    "biases q_proj k_proj v_proj ";
constexpr const char* kQwen3 =
    "H 10 I 6 heads 4/1 D 6 L 2 V 11 theta 5000000 eps 3e-05 tied false causal true norms truetrue biases ";
constexpr const char* kLlama =
    "H 8 I 6 heads 4/4 D 2 L 2 V 11 theta 500000 eps 3e-05 tied false causal true norms falsefalse "
    "biases q_proj k_proj v_proj o_proj gate_proj up_proj down_proj ";

TEST_F(CheckpointFiles, ConfigurationsHaveTheirNumbers) {
  for (const char* file : {"config.json", "config.5.json"}) {  // of transformers 4 and 5: rope_theta, rope_parameters
    SCOPED_TRACE(file);
    EXPECT_EQ(numbers(read_configuration(kFolder / "qwen2" / file)), kQwen2);
    EXPECT_EQ(numbers(read_configuration(kFolder / "qwen3" / file)), kQwen3);
    EXPECT_EQ(numbers(read_configuration(kFolder / "llama" / file)), kLlama);
  }
}

TEST_F(CheckpointFiles, AbsentKeysHaveTheDefaultsOfTransformers) {
  const auto without = [&](const char* of, const char* key) { return read(of, [&](json& c) { c.erase(key); }); };
  EXPECT_EQ(without("llama", "rope_theta").theta, 10000);
  EXPECT_EQ(without("llama", "rms_norm_eps").eps, 1e-6);
  EXPECT_EQ(without("llama", "tie_word_embeddings").tied_head, false);
  EXPECT_EQ(without("llama", "num_key_value_heads").kv_heads, 4);
  EXPECT_EQ(without("llama", "head_dim").head_dim, 2) << "hidden / heads";
  EXPECT_EQ(without("qwen3", "head_dim").head_dim, 128) << "of Qwen3 it is no quotient";
  EXPECT_EQ(without("llama", "attention_bias").biases, (std::set{P::gate, P::up, P::down}));
  EXPECT_EQ(without("llama", "mlp_bias").biases, (std::set{P::q, P::k, P::v, P::o}));
  EXPECT_EQ(read("qwen2", [](json& c) { c["head_dim"] = nullptr; }).head_dim, 2);
  EXPECT_EQ(read("qwen3", [](json& c) { c["attention_bias"] = true; }).biases, (std::set{P::q, P::k, P::v, P::o}));
  const auto both = [](json& c) { c["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 700}}; };
  EXPECT_EQ(read("llama", both).theta, 700) << "transformers reads rope_theta only where there are no rope_parameters";
}

/// The i-th element of a tensor, as checkpoints.py says.
float element(std::string_view name, std::size_t i) {
  std::uint32_t crc = ~0U;
  for (const char c : name) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0);
  }
  return (static_cast<float>((~crc + 37 * i) % 255) - 127) / 64;
}

Program model(const TransformerConfig& c) { return Block({"", c, Part::loss, 2, 2}).builder.program(); }

TEST_F(CheckpointFiles, FillWholeModels) {
  const std::map<std::string, std::size_t> parameters{{"qwen2", 26}, {"qwen3", 25}, {"llama", 35}};
  for (const auto& [family, count] : parameters) {
    SCOPED_TRACE(family);
    Session session(model(read_configuration(kFolder / family)), device(Backend::cpu));
    EXPECT_TRUE(load(session, Weights(kFolder / family)).empty());
    EXPECT_EQ(session.program().parameters.size(), count);
    for (const Parameter& p : session.program().parameters) {
      const std::vector<float> got = get_parameter(session, p);
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], element(p.name, i)) << p.name << " " << i;
    }
  }
}

/// FALSIFY-A1 of a checkpoint: one tensor is transposed, or where that is its own shape, too long.
TEST_F(CheckpointFiles, EveryTensorOfAnotherShapeIsRefusedByName) {
  Session session(model(full()), device(Backend::cpu));
  initialize(session, 3);
  const std::vector<Parameter>& parameters = session.program().parameters;
  const std::vector<float> elements(1000, 1);
  const auto text = [](const std::vector<Index>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); };
  for (const Parameter& wrong : parameters) {
    SCOPED_TRACE(wrong.name);
    std::vector<NamedTensor> tensors;
    std::vector<Index> other = extents(wrong.shape);
    const bool transposed = other.size() == 2 && other[0] != other[1];
    if (transposed) std::swap(other[0], other[1]);
    else ++other[0];
    for (const Parameter& p : parameters) {
      const std::vector<Index> shape = p.name == wrong.name ? other : extents(p.shape);
      std::size_t count = 1;
      for (const Index extent : shape) count *= static_cast<std::size_t>(extent);
      tensors.push_back({p.name, shape, std::span(elements).first(count)});
    }
    save(folder_ / "wrong.safetensors", tensors);
    const std::string said = refusal([&] { load(session, Weights(folder_ / "wrong.safetensors")); }),
                      words = fmt::format("{}: has the shape {} where the model has {}{}", wrong.name, text(other),
                                          text(extents(wrong.shape)), transposed ? ": it is transposed;" : "; check");
    EXPECT_NE(said.find(words), said.npos) << said << "\nwithout: " << words;
    for (const Parameter& p : parameters)
      ASSERT_EQ(get_parameter(session, p), initial_values(p.name, p.shape, 3)) << p.name << " has changed";
  }
}

/// A bias or a norm alone is built and loaded; a layer that lacks one of its checkpoint is refused.
TEST_F(CheckpointFiles, EachOptionalTensorMayStandAlone) {
  const TransformerConfig plain{
      .hidden = 6, .intermediate = 5, .heads = 4, .kv_heads = 2, .head_dim = 2, .vocabulary = 3};
  std::vector<std::pair<std::string, TransformerConfig>> all;
  for (const P p : kProjections) {
    all.emplace_back(fmt::format("{}.{}.bias", p < P::gate ? "self_attn" : "mlp", name(p)), plain);
    all.back().second.biases = {p};
  }
  all.emplace_back("self_attn.q_norm.weight", plain), all.back().second.q_norm = true;
  all.emplace_back("self_attn.k_norm.weight", plain), all.back().second.k_norm = true;
  Session without(model(plain), device(Backend::cpu));
  initialize(without, 3);
  save(without, folder_ / "plain.safetensors");
  for (const auto& [optional, config] : all) {
    SCOPED_TRACE(optional);
    const std::string full = "model.layers.0." + optional;
    Session session(model(config), device(Backend::cpu)), again(model(config), device(Backend::cpu));
    EXPECT_EQ(session.program().parameters.size(), without.program().parameters.size() + 1);
    initialize(session, 5);
    const Parameter& p = parameter(session.program(), full);
    std::vector<float> values(static_cast<std::size_t>(p.shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(full, i);
    set_parameter(session, full, p.shape, values);
    save(session, folder_ / "one.safetensors");
    EXPECT_TRUE(load(again, Weights(folder_ / "one.safetensors")).empty());
    EXPECT_EQ(get_parameter(again, parameter(again.program(), full)), values);
    EXPECT_EQ(refusal([&] { load(without, Weights(folder_ / "one.safetensors")); }),
              full +
                  ": is in the weights, and the model's layer has none; check the model's configuration: biases, "
                  "q_norm, k_norm");
    EXPECT_EQ(get_parameter(without, without.program().parameters[0]),
              initial_values("model.embed_tokens.weight", {3, 6}, 3))
        << "nothing has changed";
    EXPECT_NE(refusal([&] { load(again, Weights(folder_ / "plain.safetensors")); }).find("has no tensor " + full),
              std::string::npos);
  }
}

TEST_F(CheckpointFiles, HoldEveryParameterThatWasSaved) {
  TransformerConfig c = full();
  c.tied_head = true, c.layers = 2, c.biases.insert(P::o);
  for (const bool tied : {false, true})
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      c.tied_head = tied;
      Session saved(model(c), device(Backend::cpu)), loaded(model(c), device(Backend::cpu));
      set_all(saved, {"", c, Part::loss, 2, 2});
      save(saved, folder_ / "all.safetensors", dtype);
      EXPECT_TRUE(load(loaded, Weights(folder_ / "all.safetensors")).empty());
      EXPECT_EQ(Weights(folder_ / "all.safetensors").entries().contains("lm_head.weight"), !tied);
      for (const Parameter& p : saved.program().parameters) {
        const std::vector<float> want = get_parameter(saved, p), got = get_parameter(loaded, p);
        ASSERT_EQ(want.size(), got.size());
        EXPECT_TRUE(std::ranges::any_of(want, [](float x) { return x != 0; })) << p.name;
        for (std::size_t i = 0; i < want.size(); ++i)
          EXPECT_EQ(std::bit_cast<std::uint32_t>(got[i]),
                    std::bit_cast<std::uint32_t>(dtype == DType::f32 ? want[i] : stored(dtype, want[i])))
              << p.name << " " << i;
      }
    }
}

}  // namespace
}  // namespace assay::program::checkpoint_files_test
