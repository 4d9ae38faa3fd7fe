#include "program/model/transformer.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"
#include "program/operations.hpp"

namespace assay::program {
namespace {

using Scope = Builder::Scope;

[[noreturn]] void refuse(std::string_view field, const std::string& problem, const std::string& remedy) {
  throw InputError(fmt::format("transformer: {}", field), problem, remedy);
}

/// Throws unless the operation takes this number as that dim or parameter.
void expect_taken(std::string_view field, double number, std::string_view op, std::string_view as) {
  const OpDescriptor& descriptor = operation(op);
  double least = 0, most = 0;
  for (const DimInfo& d : descriptor.dims)
    if (d.name == as) least = static_cast<double>(d.min), most = static_cast<double>(d.max);
  for (const ParamInfo& p : descriptor.params)
    if (p.name == as) least = p.min, most = p.max;
  if (!(least <= number && number <= most))
    refuse(field, fmt::format("it is {}, and {} takes {} to {}", number, op, least, most), "choose one in that range");
}

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}
/// Returns whether a parameter of this name trains, under the scope in force.
bool trains(const Builder& b, const TransformerConfig& c, std::string_view name) {
  if (c.decodes) return false;
  const std::string full = b.full_name(name);
  return (c.trains && !full.starts_with("classifier.")) ||
         std::ranges::any_of(c.trained, [&](const std::string& pattern) { return matches(pattern, full); });
}
Value parameter(Builder& b, const TransformerConfig& c, std::string_view name, const Shape& shape) {
  return b.parameter(std::string(name), shape, trains(b, c, name));
}

[[noreturn]] void refuse_trained(const Builder& b, const TransformerConfig& c) {
  refuse("trained", fmt::format("{} is in {}, which does not train", b.full_name("weight"), name(c.weights)),
         "name other parameters, or have weights in f32");
}

/// A weight that is not packed has the format of what is computed.
Value weight(Builder& b, const TransformerConfig& c, const Shape& shape) {
  const bool trained = trains(b, c, "weight");
  const DType dtype = activation_dtype(c.weights);
  if (trained && dtype != DType::f32) refuse_trained(b, c);
  return b.parameter("weight", shape, trained, dtype);
}

bool rotates(const TransformerConfig& c) { return !(c.theta <= 0); }

/// x Wᵀ of a matrix of one row by a vector's product.
Value of_one_row(Builder& b, Value x, Value weight, Value (*product)(Builder&, Value, Value)) {
  const Value y = product(b, weight, b.reshape(x, {b.shape(x)[1]}));
  return b.reshape(y, {1, b.shape(y)[0]});
}

/// x Wᵀ of a frozen weight, by the operation for its format and for the number of rows, part by part.
Value frozen_product(Builder& b, const TransformerConfig& c, Value x, const Parameter& weight) {
  const Index rows = b.shape(x)[0];
  std::vector<Value> parts;
  for (const PartOfRows& part : weight.parts) switch (weight.format) {
      case WeightFormat::f32:
      case WeightFormat::f16:
      case WeightFormat::bf16:
        parts.push_back(rows == 1 && c.decodes ? of_one_row(b, x, part.value, &gemv) : matmul_nt(b, x, part.value));
        break;
      case WeightFormat::q4_k:
        parts.push_back(rows == 1 ? of_one_row(b, x, part.value, &q4_k_gemv) : q4_k_matmul_nt(b, x, part.value));
        break;
      case WeightFormat::nf4: parts.push_back(nf4_matmul_nt(b, x, part.value, part.scales)); break;
    }
  return b.join(parts);
}
Value frozen_product(Builder& b, const TransformerConfig& c, Value x, Index out) {
  const Index in = b.shape(x)[1];
  return frozen_product(
      b, c, x, b.frozen_parameter("weight", {out, in}, c.weights, rows_of_part(c, out, row_bytes(c.weights, in))));
}

/// Of a projection's weight, [out, in].
std::pair<Index, Index> weight_extents(const TransformerConfig& c, Projection which) {
  const Index width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  switch (which) {
    case Projection::q: return {width, c.hidden};
    case Projection::k:
    case Projection::v: return {kv_width, c.hidden};
    case Projection::o: return {c.hidden, width};
    case Projection::gate:
    case Projection::up: return {c.intermediate, c.hidden};
    case Projection::down: return {c.hidden, c.intermediate};
  }
  return {};
}

/// Products of one x with several weights.
struct Products {
  std::vector<Value> each;  ///< [rows, out]; none where a projection multiplies by itself
  Value all{};              ///< of one row, side by side
};
/// x Wᵀ of projections whose weights a model decodes with: they lie in one storage, whose rows one call multiplies by an
/// x of one row.
Products products_together(Builder& b, const TransformerConfig& c, std::string_view label,
                           std::span<const Projection> projections, Value x) {
  const Index in = b.shape(x)[1];
  std::vector<std::string> names;
  Index rows = 0;
  bool adapted = false;
  for (const Projection p : projections) {
    names.push_back(fmt::format("{}.weight", name(p)));
    rows += weight_extents(c, p).first;
    adapted = adapted || c.adapters.on.contains(p);
  }
  Products of{std::vector<Value>(projections.size())};
  if (!c.decodes || c.weights == WeightFormat::nf4 || (adapted && !is_packed(c.weights)) ||
      rows_of_part(c, rows, row_bytes(c.weights, in)) < rows)
    return of;
  std::vector<NamedDim> matrices;
  for (std::size_t i = 0; i < names.size(); ++i)
    matrices.push_back({names[i], weight_extents(c, projections[i]).first});
  const Value weights = b.frozen_stack(matrices, in, c.weights);
  const auto product = [&](std::string_view scope, Index begin, Index end) {
    const Scope scoped(b, scope);
    Parameter own;
    own.format = c.weights, own.parts = {{begin, end, b.rows(weights, begin, end)}};
    return frozen_product(b, c, x, own);
  };
  if (b.shape(x)[0] == 1) of.all = product(label, 0, rows);
  Index begin = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Index out = matrices[i].extent, end = begin + out;
    of.each[i] = of.all ? b.reshape(b.rows(b.reshape(of.all, {rows}), begin, end), {1, out})
                        : product(name(projections[i]), begin, end);
    begin = end;
  }
  return of;
}

/// x Wᵀ, with the bias and the adapter that the configuration asks for. `product`: x Wᵀ alone, or none.
Value project(Builder& b, const TransformerConfig& c, Projection which, Value x, Value product = {}) {
  const Scope scope(b, name(which));
  const auto [out, in] = weight_extents(c, which);
  const Index rank = c.adapters.rank;
  const bool has_bias = c.biases.contains(which), adapted = c.adapters.on.contains(which),
             packed = is_packed(c.weights);
  if (packed && trains(b, c, "weight")) refuse_trained(b, c);
  const auto bias = [&] { return parameter(b, c, "bias", {out}); };
  if (!packed && (adapted || !c.decodes)) {
    const Value w = weight(b, c, {out, in});
    // Beside 16 bits a bias is in f32 in every program of a model: the bias_add behind a gemv takes no other.
    const DType dtype = activation_dtype(c.weights);
    const bool apart = has_bias && dtype != DType::f32;
    const Value own = has_bias ? bias() : Value{};
    Value row = has_bias && !apart ? b.reshape(own, {1, out}) : Value{}, y;
    if (adapted) {
      if (!row) row = b.zeros({0, out}, dtype);
      const Value a = b.parameter("lora_A.weight", {rank, in}), up = b.parameter("lora_B.weight", {out, rank});
      y = lora_linear(b, x, w, row, a, up, c.adapters.alpha).y;
    } else {
      y = row ? linear(b, x, w, row) : matmul_nt(b, x, w);
    }
    return apart ? bias_add(b, y, own) : y;
  }
  Value y = product ? product : frozen_product(b, c, x, out);
  if (has_bias) y = bias_add(b, y, bias());
  if (!adapted) return y;
  const Value a = b.parameter("lora_A.weight", {rank, in}), up = b.parameter("lora_B.weight", {out, rank});
  return residual_add(b, y, matmul_nt(b, matmul_nt(b, x, a), up), c.adapters.alpha / static_cast<double>(rank));
}

/// Throws unless x is what a layer reads: rows of `columns` elements in the format around the weights.
void expect_rows(const Builder& b, const TransformerConfig& c, Value x, Index columns) {
  const Shape shape = b.shape(x);
  if (shape.rank() != 2 || shape[1] != columns || shape[0] < 1)
    refuse("x", fmt::format("it is {}, and a row has {} elements", to_string(shape), columns),
           fmt::format("give [batch * s, {}] of one row or more", columns));
  if (const DType dtype = activation_dtype(c.weights); b.dtype(x) != dtype)
    refuse("x", fmt::format("it is in {}, and weights in {} meet {}", name(b.dtype(x)), name(c.weights), name(dtype)),
           "cast it, or choose other weights");
}
void expect_rows(const Builder& b, const TransformerConfig& c, Value x, const Sequences& sequences) {
  expect_rows(b, c, x, c.hidden);
  const Index rows = b.shape(x)[0], batch = b.shape(sequences.lengths).size();
  if (batch < 1 || rows % batch != 0)
    refuse("x", fmt::format("its {} rows are no {} sequences of one length", rows, batch), "pad the shorter ones");
  if (rotates(c) && (!sequences.positions || b.shape(sequences.positions).size() != rows))
    refuse("positions", fmt::format("there are {} for {} rows", sequences.positions ? "others" : "none", rows),
           "make them by sequences() of these rows and this configuration");
}

/// RMS norm of the rows of a matrix.
Value norm(Builder& b, const TransformerConfig& c, std::string_view layer, Value x) {
  const Scope scope(b, layer);
  return rmsnorm(b, x, parameter(b, c, "weight", {b.shape(x)[1]}), c.eps).y;
}

/// Heads of queries or keys, [batch * s, heads * head_dim], as attention takes them.
Value prepare_heads(Builder& b, const TransformerConfig& c, std::string_view norm_layer, bool normed, Value x,
                    Index heads, const Sequences& sequences) {
  const Index rows = b.shape(x)[0], batch = b.shape(sequences.lengths)[0], d = c.head_dim;
  if (normed) x = norm(b, c, norm_layer, b.reshape(x, {rows * heads, d}));
  if (rotates(c)) x = rope(b, b.reshape(x, {rows, heads, d}), sequences.positions, c.theta, 0, 0);
  return b.reshape(x, {batch, rows / batch, heads, d});
}

}  // namespace

std::string_view name(Projection projection) {
  switch (projection) {
    case Projection::q: return "q_proj";
    case Projection::k: return "k_proj";
    case Projection::v: return "v_proj";
    case Projection::o: return "o_proj";
    case Projection::gate: return "gate_proj";
    case Projection::up: return "up_proj";
    case Projection::down: return "down_proj";
  }
  return "?";
}

TransformerConfig tiny() {
  return {.hidden = 8, .intermediate = 16, .heads = 2, .kv_heads = 2, .head_dim = 4, .vocabulary = 11};
}

void check(const TransformerConfig& c) {
  const auto number = [](Index i) { return static_cast<double>(i); };
  expect_taken("hidden", number(c.hidden), "rmsnorm", "n");
  expect_taken("intermediate", number(c.intermediate), "silu_mul", "n");
  expect_taken("heads", number(c.heads), "attention", "heads");
  expect_taken("kv_heads", number(c.kv_heads), "attention", "kv_heads");
  expect_taken("head_dim", number(c.head_dim), "attention", "d");
  if (c.heads % c.kv_heads != 0)
    refuse("heads", fmt::format("{} heads cannot share {} key-value heads evenly", c.heads, c.kv_heads),
           "make heads a multiple of kv_heads");
  if (rotates(c)) {
    expect_taken("theta", c.theta, "rope", "theta");
    expect_taken("heads", number(c.heads), "rope", "heads");
    expect_taken("head_dim", number(c.head_dim), "rope", "d");
    if (c.head_dim % 2 != 0)
      refuse("head_dim", fmt::format("{} elements of a head are no pairs to rotate", c.head_dim),
             "make head_dim even, or theta 0");
  }
  expect_taken("vocabulary", number(c.vocabulary), "embedding", "v");
  // Ten times as deep as any that was published (DeepNet, 2022): more are a mistake, and would be built for hours.
  if (constexpr Index kMostLayers = 10000; c.layers < 1 || c.layers > kMostLayers)
    refuse("layers", fmt::format("it is {}", c.layers), fmt::format("have 1 to {}", kMostLayers));
  expect_taken("eps", c.eps, "rmsnorm", "eps");
  if (c.trains && c.weights != WeightFormat::f32)
    refuse("weights", fmt::format("{} does not train", name(c.weights)), "set trains to false");
  if (c.adapters.on.empty()) return;
  expect_taken("adapters.rank", number(c.adapters.rank), "lora_linear", "r");
  expect_taken("adapters.alpha", c.adapters.alpha, "lora_linear", "alpha");
  if (is_packed(c.weights))  // which are multiplied apart from their adapters
    expect_taken("adapters.alpha / rank", c.adapters.alpha / number(c.adapters.rank), "residual_add", "alpha");
}

void check_trained(const TransformerConfig& c, const Program& program) {
  for (const std::string& pattern : c.trained)
    if (std::ranges::none_of(program.parameters, [&](const Parameter& p) { return matches(pattern, p.name); }))
      refuse("trained", fmt::format("'{}' names no parameter of the model", pattern),
             "name parameters as checkpoints do, with * for any characters");
}

Index rows_of_part(const TransformerConfig& c, Index rows, Index bytes_of_row) {
  const std::size_t fit = c.largest_buffer / static_cast<std::size_t>(std::max<Index>(1, bytes_of_row));
  return c.decodes && fit < static_cast<std::size_t>(rows) ? std::max<Index>(1, static_cast<Index>(fit)) : rows;
}

namespace {
/// A table of embeddings is never packed.
WeightFormat table_format(const TransformerConfig& c) { return is_packed(c.weights) ? WeightFormat::f32 : c.weights; }
}  // namespace

Index rows_of_table_part(const TransformerConfig& c) {
  const Index bytes = row_bytes(table_format(c), c.hidden), fit = rows_of_part(c, c.vocabulary, bytes);
  return fit < c.vocabulary ? std::max<Index>(1, fit - 1) : fit;  // a row of zeros follows
}

Sequences sequences(Builder& b, const TransformerConfig& c, Index rows, Index batch) {
  if (batch < 1 || rows % batch != 0)
    refuse("batch", fmt::format("{} rows are no {} sequences of one length", rows, batch), "pad the shorter ones");
  return {b.input("lengths", {batch}, DType::i32), b.input("starts", {batch}, DType::i32),
          rotates(c) ? b.input("positions", {rows}, DType::i32) : Value{}};
}

Value projection(Builder& b, const TransformerConfig& c, Projection which, Value x) {
  check(c);
  expect_rows(b, c, x, weight_extents(c, which).second);
  return project(b, c, which, x);
}

namespace {
/// Returns whether one call of rope rotates the heads of q and k, which lie side by side.
bool turn_together(const TransformerConfig& c) {
  const auto more = [&](Projection p) { return c.biases.contains(p) || c.adapters.on.contains(p); };
  constexpr Index kMostHeads = 256;  // of rope
  return rotates(c) && !c.q_norm && !c.k_norm && !more(Projection::q) && !more(Projection::k) &&
         c.heads + c.kv_heads <= kMostHeads;
}

/// Attention and its projections, under the scope in force.
Value attend(Builder& b, const TransformerConfig& c, Value x, const Sequences& sequences, Cache* cache) {
  const Index rows = b.shape(x)[0], batch = b.shape(sequences.lengths)[0], d = c.head_dim;
  static constexpr Projection kRead[] = {Projection::q, Projection::k, Projection::v};
  const Products of = products_together(b, c, "qkv_proj", kRead, x);
  Value q = project(b, c, Projection::q, x, of.each[0]), k = project(b, c, Projection::k, x, of.each[1]);
  Value v = b.reshape(project(b, c, Projection::v, x, of.each[2]), {batch, rows / batch, c.kv_heads, d});
  if (of.all && turn_together(c)) {
    const Index both = c.heads + c.kv_heads;
    const Value heads = b.rows(b.reshape(of.all, {both + c.kv_heads, d}), 0, both);
    const Value turned = rope(b, b.reshape(heads, {1, both, d}), sequences.positions, c.theta, 0, 0);
    q = b.reshape(b.rows(b.reshape(turned, {both, d}), 0, c.heads), {1, 1, c.heads, d});
    k = b.reshape(b.rows(b.reshape(turned, {both, d}), c.heads, both), {1, 1, c.kv_heads, d});
  } else {
    q = prepare_heads(b, c, "q_norm", c.q_norm, q, c.heads, sequences);
    k = prepare_heads(b, c, "k_norm", c.k_norm, k, c.kv_heads, sequences);
  }
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  Value y;
  if (cache != nullptr && rows == batch) {
    const auto each = [&](Value heads, Index count) { return b.reshape(heads, {batch, count, d}); };
    const AttentionDecodeValues after = attention_decode(b, each(q, c.heads), each(k, c.kv_heads), each(v, c.kv_heads),
                                                         sequences.starts, cache->keys, cache->values, scale);
    *cache = {after.k_cache, after.v_cache}, y = after.y;
  } else {
    if (cache != nullptr) {
      const Index spare = b.shape(cache->keys)[1] - rows / batch;
      k = cache->keys = cache_append(b, k, sequences.starts, cache->keys, spare);
      v = cache->values = cache_append(b, v, sequences.starts, cache->values, spare);
    }
    y = attention(b, q, k, v, sequences.lengths, sequences.starts, scale, c.causal).y;
  }
  return project(b, c, Projection::o, b.reshape(y, {rows, c.heads * d}));
}
}  // namespace

Value self_attention(Builder& b, const TransformerConfig& c, Value x, const Sequences& sequences, Cache* cache) {
  check(c);
  expect_rows(b, c, x, sequences);
  const Scope scope(b, "self_attn");
  return attend(b, c, x, sequences, cache);
}

Value attention_block(Builder& b, const TransformerConfig& c, Value x, const Sequences& sequences, Cache* cache) {
  check(c);
  expect_rows(b, c, x, sequences);
  const Value n = norm(b, c, "input_layernorm", x);
  const Scope scope(b, "self_attn");
  return residual_add(b, x, attend(b, c, n, sequences, cache), 1);
}

Value feed_forward_block(Builder& b, const TransformerConfig& c, Value x) {
  check(c);
  expect_rows(b, c, x, c.hidden);
  const Value n = norm(b, c, "post_attention_layernorm", x);
  const Scope scope(b, "mlp");
  static constexpr Projection kRead[] = {Projection::gate, Projection::up};
  const Products of = products_together(b, c, "gate_up_proj", kRead, n);
  const Value gate = project(b, c, Projection::gate, n, of.each[0]), up = project(b, c, Projection::up, n, of.each[1]);
  return residual_add(b, x, project(b, c, Projection::down, silu_mul(b, gate, up)), 1);
}

Value decoder_layer(Builder& b, const TransformerConfig& c, Value x, const Sequences& sequences, Cache* cache) {
  return feed_forward_block(b, c, attention_block(b, c, x, sequences, cache));
}

namespace {

/// The table of embeddings, and the hidden states behind the last norm.
std::pair<Parameter, Value> model(Builder& b, const TransformerConfig& c, Value ids, const Sequences& sequences,
                                  std::span<Cache> caches) {
  check(c);
  const Scope model(b, "model");
  Parameter table;
  Value x;
  {
    const Scope scope(b, "embed_tokens");
    const Index rows = rows_of_table_part(c);
    if (rows >= c.vocabulary) {
      const Value all = weight(b, c, {c.vocabulary, c.hidden});
      table.parts = {{0, c.vocabulary, all}};
      x = embedding(b, ids, all);
    } else {
      table = b.frozen_parameter("weight", {c.vocabulary, c.hidden}, table_format(c), rows, true);
      const Index tokens = b.shape(ids)[0] / std::ssize(table.parts);
      for (Index p = 0; p < std::ssize(table.parts); ++p) {
        const Value of_part = b.program().base_of(table.parts[static_cast<std::size_t>(p)].value),
                    row = embedding(b, b.rows(ids, p * tokens, (p + 1) * tokens), of_part);
        x = p == 0 ? row : residual_add(b, x, row, 1);
      }
    }
  }
  for (Index layer = 0; layer < c.layers; ++layer) {
    const Scope scope(b, fmt::format("layers.{}", layer));
    x = decoder_layer(b, c, x, sequences, caches.empty() ? nullptr : &caches[static_cast<std::size_t>(layer)]);
  }
  return {table, norm(b, c, "norm", x)};
}

}  // namespace

Value hidden_states(Builder& b, const TransformerConfig& c, Value ids, const Sequences& sequences,
                    std::span<Cache> caches) {
  return model(b, c, ids, sequences, caches).second;
}

Value classifier(Builder& b, const TransformerConfig& c, Index classes, Value ids, const Sequences& sequences) {
  const Value x = hidden_states(b, c, ids, sequences);
  const Scope scope(b, "classifier");
  const Index batch = b.shape(sequences.lengths)[0];
  const Value pooled = mean_pool(b, b.reshape(x, {batch, b.shape(x)[0] / batch, c.hidden}), sequences.lengths),
              wide = b.cast(pooled, DType::f32);
  const Value head = parameter(b, c, "weight", {c.hidden, classes});
  return bias_add(b, matmul(b, wide, head), parameter(b, c, "bias", {classes}));
}

std::vector<Activation> activations(const Program& forward) {
  struct Part {
    std::string_view step, tensor, name;
  };
  static constexpr Part kParts[] = {{"input_layernorm.rmsnorm", "x", "input"},
                                    {"input_layernorm.rmsnorm", "y", "attn_norm_out"},
                                    {"self_attn.attention", "q", "q"},
                                    {"self_attn.attention", "k", "k"},
                                    {"self_attn.attention", "v", "v"},
                                    {"self_attn.attention", "y", "attn_output"},
                                    {"self_attn.attention", "logsumexp", "logsumexp"},
                                    {"post_attention_layernorm.rmsnorm", "x", "middle"},
                                    {"post_attention_layernorm.rmsnorm", "y", "ffn_norm_out"},
                                    {"mlp.silu_mul", "gate", "gate"},
                                    {"mlp.silu_mul", "up", "up"},
                                    {"mlp.silu_mul", "y", "silu_gate_output"}};
  std::vector<Activation> all;
  for (const Step& step : forward.steps) {
    const std::string_view label = step.label;
    const auto tensor = [&](std::string_view name) {
      const auto at = std::ranges::find(step.op->tensors, name, &TensorInfo::name) - step.op->tensors.begin();
      return step.tensors[static_cast<std::size_t>(at)];
    };
    for (const Part& part : kParts)
      if (label.ends_with(part.step))
        all.push_back(
            {fmt::format("{}{}", label.substr(0, label.size() - part.step.size()), part.name), tensor(part.tensor)});
    if (step.op->name == "rmsnorm")
      all.push_back({fmt::format("{}.rrms", label.substr(0, label.rfind('.'))), tensor("rrms")});
  }
  return all;
}

Value decoder(Builder& b, const TransformerConfig& c, Value ids, const Sequences& sequences, std::span<Cache> caches) {
  const auto [table, x] = model(b, c, ids, sequences, caches);
  const Scope scope(b, "lm_head");
  if (c.tied_head) return frozen_product(b, c, x, table);
  if (!trains(b, c, "weight")) return frozen_product(b, c, x, c.vocabulary);
  return matmul_nt(b, x, weight(b, c, {c.vocabulary, c.hidden}));
}

}  // namespace assay::program
