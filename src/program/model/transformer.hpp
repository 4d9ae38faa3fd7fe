// Blocks of transformers as programs: attention, feed-forward, decoder layer, decoder. Parameters have the names and
// layouts of Hugging Face checkpoints: a weight is [out, in]. Their order is that of the steps; a projection has its
// weight, then bias, lora_A.weight, lora_B.weight. An attention block has its norm, q, k, v, q_norm, k_norm, o; a
// feed-forward block its norm, gate, up, down; a model the table, the layers, the last norm, the head. Weights of q, k
// and v, or of gate and up, that one call multiplies when a model decodes come before the rest of their projections.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string_view>

#include "program/builder.hpp"

namespace assay::program {

enum class Projection { q, k, v, o, gate, up, down };
inline constexpr std::array kProjections{Projection::q,    Projection::k,  Projection::v,   Projection::o,
                                         Projection::gate, Projection::up, Projection::down};
/// "q_proj"
std::string_view name(Projection projection);

/// LoRA: a projection with an adapter gives alpha / rank (x Aᵀ) Bᵀ more, A [rank, in] and B [out, rank].
struct Adapters {
  std::set<Projection> on;
  Index rank = 8;
  double alpha = 16;
};

struct TransformerConfig {
  Index hidden = 0, intermediate = 0;
  Index heads = 0, kv_heads = 0;  ///< each key-value head serves heads / kv_heads query heads that are neighbours
  Index head_dim = 0;             ///< heads * head_dim need not be the hidden size
  Index layers = 1, vocabulary = 1;
  double theta = 10000;                 ///< base of the rotary embedding, in halves; 0 or less: no rotation
  double eps = 1e-6;                    ///< of every norm, as in Qwen2
  std::set<Projection> biases{};        ///< projections that have one: q, k and v in Qwen2
  bool q_norm = false, k_norm = false;  ///< RMS norm of each head of q or k; both in Qwen3
  bool causal = true;                   ///< false: an encoder
  bool tied_head = false;               ///< logits by the table of embeddings
  bool trains = true;                   ///< false: of the base only what `trained` names
  Adapters adapters{};                  ///< these train
  bool decodes = false;                 ///< nothing trains, and one row is multiplied by gemv, which has no gradients
  /// Of a device that the model decodes on: the table, the head and projections above it are in parts of whole rows.
  std::size_t largest_buffer = SIZE_MAX;
  /// Of projections and of a head that is not tied; all but f32 are frozen. In f16 or bf16 so are the table and what lies
  /// between steps: activations, their gradients and caches. Norms and biases stay in f32, as the contracts of rmsnorm and
  /// bias_add have them, and so do adapters and the head of a classifier.
  WeightFormat weights = WeightFormat::f32;
  /// Names of parameters that train in any case, with * for any characters: "*.bias", "*norm.weight". The head of a
  /// classifier is no part of the base.
  std::vector<std::string> trained{"classifier.*"};
};

/// A Llama of one layer for examples and tests: hidden 8, intermediate 16, 2 heads of 4 with keys and values of their
/// own, vocabulary 11.
TransformerConfig tiny();

/// Throws InputError with one sentence for the first field that no operation takes.
void check(const TransformerConfig& config);

/// Throws InputError for one of config.trained that names no parameter.
void check_trained(const TransformerConfig& config, const Program& program);

/// Inputs of every attention in a program, i32: of each sequence the keys that it has and its first query's place among
/// them, [batch], and the position of each row, [rows], by which queries and keys are rotated.
struct Sequences {
  Value lengths, starts, positions;
};
/// Throws InputError unless every sequence has as many rows. A model without rotation has no positions.
Sequences sequences(Builder& builder, const TransformerConfig& config, Index rows, Index batch = 1);

// Each function below appends steps and the parameters they read, under the scope in force, and checks the
// configuration first. x is [batch * s, hidden], one sequence after another; another shape is refused in one sentence.

/// One projection: x Wᵀ, with the bias and the adapter that the configuration asks for. x is [rows, in].
/// Source: Hu et al., LoRA, 2021, section 4.1.
Value projection(Builder& builder, const TransformerConfig& config, Projection which, Value x);

/// Keys, rotated, and values of a layer, [batch, capacity, kv_heads, head_dim]. A step that appends to them leaves the
/// later versions here.
struct Cache {
  Value keys, values;
};

/// o(attention(q, k, v)) of x: self_attn.{q,k,v,o}_proj, self_attn.{q,k}_norm. With a cache, keys and values are appended
/// to it behind those that it has, whose number is `starts`, and each row attends to all of them.
/// Source: Vaswani et al., 2017, section 3.2; Ainslie et al., GQA, 2023; Su et al., RoFormer, 2021.
Value self_attention(Builder& builder, const TransformerConfig& config, Value x, const Sequences& sequences,
                     Cache* cache = nullptr);

/// x + self_attention of the normed x: input_layernorm, and its parameters.
Value attention_block(Builder& builder, const TransformerConfig& config, Value x, const Sequences& sequences,
                      Cache* cache = nullptr);

/// x + down(silu(gate(n)) up(n)) of the normed x: post_attention_layernorm, mlp.{gate,up,down}_proj.
/// Source: Shazeer, GLU Variants Improve Transformer, 2020, equation 6.
Value feed_forward_block(Builder& builder, const TransformerConfig& config, Value x);

/// Both blocks.
Value decoder_layer(Builder& builder, const TransformerConfig& config, Value x, const Sequences& sequences,
                    Cache* cache = nullptr);

/// Rows of a part of a matrix that a model decodes with.
Index rows_of_part(const TransformerConfig& config, Index rows, Index bytes_of_row);
/// Rows of a part of the table of embeddings. If it is smaller than the vocabulary, `ids` below has a row for each
/// part: the id's row in the part, or where it has none, the row of zeros behind its last one.
Index rows_of_table_part(const TransformerConfig& config);

/// Hidden states behind the last norm, [batch * s, hidden]: model.embed_tokens, model.layers.N, model.norm.
Value hidden_states(Builder& builder, const TransformerConfig& config, Value ids, const Sequences& sequences,
                    std::span<Cache> caches = {});

/// Logits [batch, classes] of the mean of each sequence's hidden states: classifier.weight [hidden, classes],
/// classifier.bias. Both train.
Value classifier(Builder& builder, const TransformerConfig& config, Index classes, Value ids,
                 const Sequences& sequences);

/// Logits [batch * s, vocabulary] of ids, i32 [batch * s]: model.embed_tokens, model.layers.N, model.norm, lm_head
/// unless tied. Caches: of each layer, or none.
Value decoder(Builder& builder, const TransformerConfig& config, Value ids, const Sequences& sequences,
              std::span<Cache> caches = {});

/// A result of a forward pass, by the layer and its part: "model.layers.0.q".
struct Activation {
  std::string name;
  Value value;
};
/// Lists the values of each layer that training needs: its input, the normed input (attn_norm_out), q and k as
/// they are rotated, v, attn_output and logsumexp; behind the first residual the sum (middle), ffn_norm_out, gate, up
/// and silu_gate_output; of each norm its reciprocal rms, as "model.layers.0.input_layernorm.rrms".
std::vector<Activation> activations(const Program& forward);

}  // namespace assay::program
