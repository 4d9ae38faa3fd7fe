// Blocks that the tests build.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "falsify/program/block.hpp"
#include "program/operations.hpp"

namespace assay::program {

using falsify::Block;
using falsify::BlockCase;
using falsify::for_each_set_by_host;
using falsify::full;
using falsify::llama;
using falsify::numbers_of;
using Part = falsify::BlockPart;
using falsify::read;
using falsify::set_all;
using falsify::write;

inline std::vector<BlockCase> block_cases() {
  const TransformerConfig qwen2{.hidden = 6,
                                .intermediate = 7,
                                .heads = 4,
                                .kv_heads = 2,
                                .head_dim = 2,
                                .theta = 1e6,
                                .biases = {Projection::q, Projection::k, Projection::v}};
  TransformerConfig qwen3{.hidden = 5,
                          .intermediate = 7,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 6,
                          .eps = 1e-5,
                          .q_norm = true,
                          .k_norm = true};
  const TransformerConfig encoder{.hidden = 4,
                                  .intermediate = 5,
                                  .heads = 2,
                                  .kv_heads = 1,
                                  .head_dim = 3,
                                  .theta = 0,
                                  .biases = {Projection::q, Projection::k, Projection::v},
                                  .causal = false};
  TransformerConfig one_head = qwen3;  // multi-query
  one_head.kv_heads = 1, one_head.biases = qwen2.biases, one_head.adapters = {{Projection::k, Projection::o}, 1, 2};
  TransformerConfig q_and_v = qwen2;
  q_and_v.adapters = {{Projection::q, Projection::v}, 3, 8};
  TransformerConfig model = full();
  model.layers = 2, model.tied_head = true;
  TransformerConfig untied = llama();
  untied.vocabulary = 5;
  const auto biases = [](std::set<Projection> biased) {
    TransformerConfig c = llama();
    c.biases = std::move(biased);
    return c;
  };
  TransformerConfig named = full();
  named.trains = false, named.adapters.on = {Projection::q, Projection::down}, named.trained = {"*.bias", "*q_norm*"};
  named.biases.insert(Projection::gate);
  const auto norms = [](bool of_queries, bool of_keys) {
    TransformerConfig c = llama();
    c.q_norm = of_queries, c.k_norm = of_keys;
    return c;
  };
  TransformerConfig pooled = encoder;
  pooled.vocabulary = 5, pooled.theta = 10000, pooled.head_dim = 2;
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
          {"batch_loss", untied, Part::loss, 2, 2, 2},
          {"each_bias_alone", biases({Projection::k, Projection::down}), Part::layer, 3, 2},
          {"trained_by_name", named, Part::layer, 3, 2},
          {"bias_of_o", biases({Projection::o}), Part::attention},
          {"norm_of_queries", norms(true, false), Part::attention},
          {"norm_of_keys", norms(false, true), Part::attention},
          {"classifier", model, Part::classifier, 4, 3, 2, 0, 0, 3},
          {"multi_label_encoder", pooled, Part::classifier, 3, 3, 2, 0, 0, 2, true},
          {"recomputed_loss", model, Part::loss, 4, 3, 1, 0, 0, 0, false, true}};
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
  return c.config.theta <= 0 && !c.config.k_norm && of("k_proj.bias");
}

}  // namespace assay::program
