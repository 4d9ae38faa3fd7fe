// Blocks that the tests build, and the numbers that they run on.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "falsify/engine/random.hpp"
#include "falsify/program/execute.hpp"
#include "program/differentiate.hpp"
#include "program/model/transformer.hpp"
#include "program/operations.hpp"

namespace assay::program {

enum class Part { attention, feed_forward, layer, loss };

struct BlockCase {
  std::string name;
  TransformerConfig config;
  Part part = Part::layer;
  Index s = 3;
  Index length = 3;  ///< keys of the first sequence that are no padding; each further sequence has one less
  Index batch = 1;

  friend std::ostream& operator<<(std::ostream& out, const BlockCase& c) { return out << c.name; }
};

inline const std::set<Projection> kEveryProjection(kProjections.begin(), kProjections.end());

/// As llama: several heads, their width not the hidden size.
inline TransformerConfig llama() { return {.hidden = 6, .intermediate = 10, .heads = 2, .kv_heads = 2, .head_dim = 4}; }

/// Everything at once: groups of heads, biases, norms of heads, an adapter on every projection.
inline TransformerConfig full() {
  return {.hidden = 6,
          .intermediate = 10,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 4,
          .vocabulary = 7,
          .qkv_bias = true,
          .qk_norm = true,
          .adapters = {kEveryProjection, 2, 8}};
}

inline std::vector<BlockCase> block_cases() {
  const TransformerConfig qwen2{
      .hidden = 6, .intermediate = 7, .heads = 4, .kv_heads = 2, .head_dim = 2, .theta = 1e6, .qkv_bias = true};
  TransformerConfig qwen3{
      .hidden = 5, .intermediate = 7, .heads = 4, .kv_heads = 2, .head_dim = 6, .eps = 1e-5, .qk_norm = true};
  const TransformerConfig encoder{.hidden = 4,
                                  .intermediate = 5,
                                  .heads = 2,
                                  .kv_heads = 1,
                                  .head_dim = 3,
                                  .theta = 0,
                                  .qkv_bias = true,
                                  .causal = false};
  TransformerConfig one_head = qwen3;  // multi-query
  one_head.kv_heads = 1, one_head.qkv_bias = true, one_head.adapters = {{Projection::k, Projection::o}, 1, 2};
  TransformerConfig q_and_v = qwen2;
  q_and_v.adapters = {{Projection::q, Projection::v}, 3, 8};
  TransformerConfig model = full();
  model.layers = 2, model.tied_head = true;
  TransformerConfig untied = llama();
  untied.vocabulary = 5;
  return {{"llama", llama()},
          {"llama_attention", llama(), Part::attention},
          {"feed_forward", llama(), Part::feed_forward},
          {"one_row", llama(), Part::layer, 1, 1},
          {"qwen2", qwen2},
          {"qwen3", qwen3},
          {"multi_query", one_head},
          {"encoder", encoder, Part::layer, 4, 3},
          {"lora_on_q_and_v", q_and_v},
          {"lora_on_all_attention", full(), Part::attention},
          {"lora_on_all", full()},
          {"tied_loss", model, Part::loss, 4, 3},
          {"untied_loss", untied, Part::loss},
          {"batch", full(), Part::layer, 3, 3, 2},
          {"batch_loss", untied, Part::loss, 2, 2, 2}};
}

inline BlockCase block_case(std::string_view name) {
  for (BlockCase& c : block_cases())
    if (c.name == name) return c;
  throw std::out_of_range(std::string(name));
}

/// Returns whether the gradient of a leaf is zero by the equations: the leaf moves every score of a row alike.
inline bool vanishes(const BlockCase& c, std::string_view leaf) {
  const auto of = [&](std::string_view name) { return leaf.find(name) != leaf.npos; };
  if (c.s == 1) return of("self_attn.q_") || of("self_attn.k_");
  return c.config.theta <= 0 && !c.config.qk_norm && of("k_proj.bias");
}

struct Block {
  Builder builder;
  Value x, y;  ///< x: of a loss, its ids

  explicit Block(const BlockCase& c) {
    const Index rows = c.batch * c.s;
    if (c.part == Part::feed_forward) {
      x = builder.input("x", {rows, c.config.hidden});
      y = feed_forward_block(builder, c.config, x);
    } else if (c.part == Part::loss) {
      const Sequences all = sequences(builder, c.config, rows, c.batch);
      x = builder.input("ids", {rows}, DType::i32);
      const Value logits = decoder(builder, c.config, x, all), targets = builder.input("targets", {rows}, DType::i32);
      y = cross_entropy(builder, logits, targets, builder.input("class weights", {c.config.vocabulary}), 1).loss;
    } else {
      const Sequences all = sequences(builder, c.config, rows, c.batch);
      x = builder.input("x", {rows, c.config.hidden});
      y = c.part == Part::layer ? decoder_layer(builder, c.config, x, all) : attention_block(builder, c.config, x, all);
    }
    builder.output(y);
  }

  /// Every parameter, and x where it is real.
  std::vector<Value> leaves() const {
    std::vector<Value> all;
    if (is_floating(builder.program().storage_of(x).dtype)) all.push_back(x);
    for (const Parameter& p : builder.program().parameters) all.push_back(p.value);
    return all;
  }
  Differentiated differentiated() const { return differentiate(builder.program(), std::vector{y}, leaves()); }
};

/// Makes float32 numbers for an input, which differ from run to run, or for a parameter. Weights are small against the
/// residual, and so bounds of whole blocks stay small.
inline std::vector<double> numbers_of(const BlockCase& c, const Program& program, Value of, int run = 0) {
  const ValueInfo& v = program[of];
  const Storage& storage = program.storage_of(of);
  const auto seed = static_cast<std::uint64_t>(storage.kind == Kind::parameter ? 99 : run);
  falsify::Random random(falsify::derive(seed, v.name));
  std::vector<double> numbers(static_cast<std::size_t>(v.shape.size()));
  const bool weight = v.name.ends_with(".weight") || v.name.ends_with(".bias");
  const double deviation = weight && !v.name.ends_with("embed_tokens.weight") ? 0.05 : 1;
  const auto words = static_cast<std::uint64_t>(c.config.vocabulary);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double& n = numbers[i];
    const auto row = static_cast<Index>(i);
    if (v.name == "lengths") n = static_cast<double>(c.length - row);
    else if (v.name.ends_with("positions"))  // every sequence begins at a place of its own, and leaves places out
      n = static_cast<double>(3 + 2 * (row % c.s) + 5 * (row / c.s) + (v.name == "later positions" ? 1 : 0));
    else if (v.name == "capacity") n = static_cast<double>(c.s);
    else if (v.name == "starts") n = 0;
    else if (storage.dtype == DType::i32) n = static_cast<double>(random.below(words));
    else if (v.name.ends_with("norm.weight") || v.name == "class weights") n = 1 + 0.25 * random.gaussian();
    else n = deviation * random.gaussian();
    n = static_cast<float>(n);
  }
  return numbers;
}

/// Calls f(value) for every input and parameter.
inline void for_each_set_by_host(const Program& program, const std::function<void(Value)>& f) {
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    const Value v{static_cast<std::int32_t>(i)};
    const Kind kind = program.storage_of(v).kind;
    if (program.base_of(v) == v && (kind == Kind::input || kind == Kind::parameter)) f(v);
  }
}

template <class T>
void write(View<T> view, const std::vector<double>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) view.data()[i] = T(numbers[i]);
}

template <class T>
std::vector<T> read(View<T> view) {
  return {view.data(), view.data() + view.size()};
}

template <class T>
void set_all(falsify::Execution<T>& execution, const Program& program, const BlockCase& c, int run = 0) {
  for_each_set_by_host(program, [&](Value v) { write(execution[v], numbers_of(c, program, v, run)); });
}

}  // namespace assay::program
