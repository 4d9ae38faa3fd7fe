#include "falsify/program/block.hpp"

#include <cmath>

#include "program/operations.hpp"

namespace assay::falsify {

using namespace program;

TransformerConfig full() {
  return {.hidden = 6,
          .intermediate = 10,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 4,
          .vocabulary = 7,
          .qkv_bias = true,
          .qk_norm = true,
          .adapters = {{kProjections.begin(), kProjections.end()}, 2, 8}};
}

Block::Block(const BlockCase& c) {
  if (c.part == BlockPart::feed_forward) {
    x = builder.input("x", {c.rows(), c.config.hidden});
    y = feed_forward_block(builder, c.config, x);
  } else if (c.part == BlockPart::loss) {
    const Sequences all = sequences(builder, c.config, c.rows(), c.batch);
    x = builder.input("ids", {c.rows()}, DType::i32);
    const Value logits = decoder(builder, c.config, x, all), targets = builder.input("targets", {c.rows()}, DType::i32);
    y = cross_entropy(builder, logits, targets, builder.input("class weights", {c.config.vocabulary}), 1).loss;
  } else {
    const Sequences all = sequences(builder, c.config, c.rows(), c.batch);
    x = builder.input("x", {c.rows(), c.config.hidden});
    y = c.part == BlockPart::layer ? decoder_layer(builder, c.config, x, all)
                                   : attention_block(builder, c.config, x, all);
  }
  builder.output(y);
}

std::vector<Value> Block::leaves() const {
  std::vector<Value> all;
  if (is_floating(builder.program().storage_of(x).dtype)) all.push_back(x);
  for (const Parameter& p : builder.program().parameters)
    if (p.trainable) all.push_back(p.value);
  return all;
}

Differentiated Block::differentiated() const { return differentiate(builder.program(), std::vector{y}, leaves()); }

std::vector<double> numbers_of(const BlockCase& c, const Program& program, Value of, int run) {
  const ValueInfo& v = program[of];
  const Storage& storage = program.storage_of(of);
  const auto stream = static_cast<std::uint64_t>(storage.kind == Kind::parameter ? 99 : run);
  Random random(derive(c.seed + stream, v.name));
  std::vector<double> numbers(static_cast<std::size_t>(v.shape.size()));
  const bool weight = v.name.ends_with(".weight") || v.name.ends_with(".bias");
  const double deviation = weight && !v.name.ends_with("embed_tokens.weight") ? 0.05 : 1;
  const auto words = static_cast<std::uint64_t>(c.config.vocabulary);
  constexpr std::size_t kPeriod = 65521;  // prime, so that no two rows of a large weight are alike
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double& n = numbers[i];
    if (i >= kPeriod && is_floating(storage.dtype)) {
      n = numbers[i - kPeriod];
      continue;
    }
    const auto row = static_cast<Index>(i);
    if (v.name == "lengths") n = static_cast<double>(c.length_of(row));
    else if (v.name.ends_with("positions"))  // every sequence begins at a place of its own, and leaves places out
      n = static_cast<double>(3 + 2 * (row % c.s) + 5 * (row / c.s) + (v.name == "later positions" ? 1 : 0));
    else if (v.name == "capacity") n = static_cast<double>(c.s);
    else if (v.name == "one") n = 1;
    else if (v.name == "starts") n = 0;
    else if (storage.dtype == DType::i32) n = static_cast<double>(random.below(words));
    else if (v.name.ends_with("norm.weight") || v.name == "class weights") n = 1 + 0.25 * random.gaussian();
    else n = deviation * random.gaussian();
    n = static_cast<float>(n);
  }
  return numbers;
}

void for_each_set_by_host(const Program& program, const std::function<void(Value)>& f) {
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    const Value v{static_cast<std::int32_t>(i)};
    const Kind kind = program.storage_of(v).kind;
    if (program.base_of(v) == v && (kind == Kind::input || kind == Kind::parameter)) f(v);
  }
}

void set(Session& session, Value v, const std::vector<double>& numbers) {
  if (session.program().storage_of(v).dtype == DType::i32)
    session.set(v, std::vector<std::int32_t>(numbers.begin(), numbers.end()));
  else session.set(v, std::vector<float>(numbers.begin(), numbers.end()));
}

void set_all(Session& session, const BlockCase& c, int run) {
  for_each_set_by_host(session.program(), [&](Value v) { set(session, v, numbers_of(c, session.program(), v, run)); });
}

}  // namespace assay::falsify
