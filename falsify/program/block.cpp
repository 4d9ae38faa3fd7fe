#include "falsify/program/block.hpp"

#include <cmath>

#include "core/half.hpp"
#include "falsify/program/step.hpp"
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
          .biases = {Projection::q, Projection::k, Projection::v},
          .q_norm = true,
          .k_norm = true,
          .adapters = {{kProjections.begin(), kProjections.end()}, 2, 8}};
}

Block::Block(const BlockCase& c) : recomputes(c.recomputes) {
  if (c.part == BlockPart::feed_forward) {
    x = builder.input("x", {c.rows(), c.config.hidden}, activation_dtype(c.config.weights));
    y = feed_forward_block(builder, c.config, x);
  } else if (c.part == BlockPart::loss || c.part == BlockPart::training) {
    const Sequences all = sequences(builder, c.config, c.rows(), c.batch);
    x = builder.input("ids", {c.rows()}, DType::i32);
    const Value logits = decoder(builder, c.config, x, all), targets = builder.input("targets", {c.rows()}, DType::i32);
    y = cross_entropy(builder, logits, targets, builder.input("class weights", {c.config.vocabulary}), 1).loss;
    if (c.part == BlockPart::training) activations = program::activations(builder.program());
  } else if (c.part == BlockPart::classifier) {
    const Sequences all = sequences(builder, c.config, c.rows(), c.batch);
    x = builder.input("ids", {c.rows()}, DType::i32);
    const Value logits = classifier(builder, c.config, c.classes, x, all),
                weights = builder.input("class weights", {c.classes});
    y = c.multi_label
            ? bce_with_logits(builder, logits, builder.input("targets", {c.batch, c.classes}), weights)
            : cross_entropy(builder, logits, builder.input("targets", {c.batch}, DType::i32), weights, 2).loss;
  } else if (c.part == BlockPart::decode) {
    DecodeProgram d = decode_program(c.config, c.batch, c.capacity, c.s);
    builder = Builder(std::move(d.program));
    x = d.ids;
    for (const Cache& cache : d.caches) caches.insert(caches.end(), {cache.keys, cache.values});
    y = d.logits ? d.logits : caches.back();
    return;
  } else if (c.part == BlockPart::step) {
    StepProgram whole = step_program(c);
    x = whole.of.ids, y = whole.of.loss;
    step = Differentiated{std::move(whole.program), {whole.of.upstream}, whole.of.leaf_gradients};
    builder = Builder(std::move(whole.of.forward));
    return;
  } else {
    const Sequences all = sequences(builder, c.config, c.rows(), c.batch);
    x = builder.input("x", {c.rows(), c.config.hidden}, activation_dtype(c.config.weights));
    y = c.part == BlockPart::layer ? decoder_layer(builder, c.config, x, all)
                                   : attention_block(builder, c.config, x, all);
  }
  builder.output(y);
}

std::vector<Value> Block::leaves() const {
  std::vector<Value> all;
  if (is_floating(builder.program().storage_of(x).dtype)) all.push_back(x);
  for (const Parameter& p : builder.program().parameters)
    if (p.trainable && caches.empty()) all.push_back(p.value);
  return all;
}

Differentiated Block::differentiated() const {
  if (!caches.empty()) return {builder.program(), {}, {}};
  if (step) return *step;
  const Kept kept = recomputes ? inputs_of_layers(builder.program()) : Kept{};
  Differentiated d = differentiate(builder.program(), std::vector{y}, leaves(), recomputes ? &kept : nullptr);
  if (!activations.empty()) d.program.storages = passes().forward.storages;
  return d;
}

Passes Block::passes() const {
  std::vector<Value> kept;
  for (const Activation& a : activations) kept.push_back(a.value);
  return split(differentiate(builder.program(), std::vector{y}, leaves()), builder.program().steps.size(), kept);
}

namespace {

/// Codes and scales of a packed weight: whatever bytes, of which those that hold a scale are near a constant.
double packed_number(Random& random, const Parameter& p, bool scale, std::size_t i) {
  constexpr std::size_t kSuperBlock = 144;
  const auto byte = static_cast<double>(random.below(256));
  if (scale) return 0.1 + byte / 2048;
  // The first halves of a super-block are d, about 2^-13, and dmin, about 2^-10.
  if (p.format == WeightFormat::q4_k && i % kSuperBlock == 1) return 0x08;
  if (p.format == WeightFormat::q4_k && i % kSuperBlock == 3) return 0x14;
  return byte;
}

}  // namespace

namespace {

/// Numbers of one name. `packed`: of a parameter that is, or null.
std::vector<double> drawn(const BlockCase& c, const std::string& name, const Storage& storage, std::size_t count,
                          const Parameter* packed, bool scale, int run) {
  const auto stream = static_cast<std::uint64_t>(storage.kind == Kind::parameter ? 99 : run);
  Random random(derive(c.seed + stream, name));
  std::vector<double> numbers(count);
  const bool weight = name.ends_with(".weight") || name.ends_with(".bias"), decodes = c.part == BlockPart::decode;
  const double deviation = weight && !name.ends_with("embed_tokens.weight") ? 0.05 : 1;
  const auto words = static_cast<std::uint64_t>(c.config.vocabulary);
  constexpr std::size_t kPeriod = 65521;  // prime, so that no two rows of a large weight are alike
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double& n = numbers[i];
    if (packed != nullptr) {
      n = static_cast<float>(packed_number(random, *packed, scale, i));
      continue;
    }
    if (i >= kPeriod && is_floating(storage.dtype)) {
      n = numbers[i - kPeriod];
      continue;
    }
    const auto row = static_cast<Index>(i);
    const auto held = [&](Index sequence) { return static_cast<double>(c.length_of(sequence) + run * c.s); };
    const auto in_chunk = static_cast<double>(row % c.s);
    // Named faults read some of these (decode_faults.cpp).
    if (decodes && name == "starts") n = held(row);
    else if (decodes && name == "lengths") n = held(row) + static_cast<double>(c.s);
    else if (decodes && name == "positions") n = held(row / c.s) + in_chunk;
    else if (decodes && name.starts_with("later positions")) n = held(row / c.s) + 7;
    else if (decodes && name == "next positions") n = held(row / c.s) + in_chunk + 1;
    else if (decodes && name == "next starts") n = held(row) + 1;
    else if (decodes && name.starts_with("places in ")) n = in_chunk;
    else if (decodes && name.starts_with("no starts")) n = 0;
    else if (decodes && name == "all places") n = static_cast<double>(c.capacity);
    else if (name == "lengths") n = static_cast<double>(c.length_of(row));
    else if (name.ends_with("positions"))  // every sequence begins at a place of its own, and leaves places out
      n = static_cast<double>(3 + 2 * (row % c.s) + 5 * (row / c.s) + (name == "later positions" ? 1 : 0));
    else if (name == "capacity") n = static_cast<double>(c.s);
    else if (name == "rows of all sequences") n = static_cast<double>(c.rows());
    else if (name == "places of the first sequence") n = static_cast<double>(3 + 2 * (row % c.s));
    else if (name == "places through the batch") n = static_cast<double>(3 + 2 * row);
    else if (name == "one") n = 1;
    else if (name == "starts") n = 0;
    else if (name == "targets" && c.part == BlockPart::classifier)
      n = static_cast<double>(random.below(c.multi_label ? 2 : static_cast<std::uint64_t>(c.classes)));
    else if (storage.dtype == DType::i32) n = static_cast<double>(random.below(words));
    else if (name.ends_with("norm.weight") || name == "class weights") n = 1 + 0.25 * random.gaussian();
    else n = deviation * random.gaussian();
    n = stored(storage.dtype, static_cast<float>(n));
  }
  return numbers;
}

}  // namespace

std::vector<double> numbers_of(const BlockCase& c, const Program& program, Value of, int run) {
  const ValueInfo& v = program[of];
  const Storage& storage = program.storage_of(of);
  const auto size = static_cast<std::size_t>(v.shape.size());
  if (c.part == BlockPart::decode && v.name == "ids") return taken(c, tokens_of(c, run));
  for (const Parameter& p : program.parameters) {
    const Parameter* const packed = is_packed(p.format) ? &p : nullptr;
    if (p.parts.empty()) {
      if (packed != nullptr && (p.value == of || p.scales == of))
        return drawn(c, v.name, storage, size, packed, p.scales == of, run);
      continue;
    }
    for (const PartOfRows& part : p.parts) {
      const bool scale = part.scales == of;
      if (!scale && program.base_of(part.value) != program.base_of(of)) continue;
      const auto columns = v.shape[1];
      const std::vector<double> all = drawn(c, p.name + (scale ? ".absmax" : ""), storage,
                                            static_cast<std::size_t>(part.end * columns), packed, scale, run);
      std::vector<double> rows(all.begin() + part.begin * columns, all.begin() + part.end * columns);
      rows.resize(size, 0);  // the row of zeros
      return rows;
    }
  }
  return drawn(c, v.name, storage, size, nullptr, false, run);
}

std::vector<double> tokens_of(const BlockCase& c, int run) {
  return drawn(c, "ids", {"ids", Kind::input, DType::i32}, static_cast<std::size_t>(c.rows()), nullptr, false, run);
}

std::vector<double> taken(const BlockCase& c, const std::vector<double>& tokens) {
  DecodeProgram d;
  d.vocabulary = c.config.vocabulary, d.part_rows = rows_of_table_part(c.config);
  std::vector<double> all(static_cast<std::size_t>(d.parts()) * tokens.size());
  for (std::size_t n = 0; n < tokens.size(); ++n)
    d.take(static_cast<std::int32_t>(tokens[n]), n, tokens.size(), std::span(all));
  return all;
}

std::map<std::string, std::vector<double>> whole_weights(const BlockCase& c, const Program& program) {
  std::map<std::string, std::vector<double>> all;
  for (const Parameter& p : program.parameters) {
    if (p.format == WeightFormat::f32 && p.parts.empty()) continue;
    const std::vector<PartOfRows> whole{{0, p.shape[0], p.value, p.scales}};
    for (const PartOfRows& part : p.parts.empty() ? whole : p.parts) {
      std::vector<double> rows = numbers_of(c, program, part.value);
      if (is_packed(p.format)) {
        Builder b;
        const Value codes = b.input("codes", program[part.value].shape, DType::u8),
                    scales = part.scales ? b.input("scales", program[part.scales].shape) : Value{},
                    weight =
                        scales ? nf4_dequantize(b, codes, scales, p.shape[1]) : q4_k_dequantize(b, codes, p.shape[1]);
        const Program dequantize = b.take();
        const Plan where = plan(dequantize);
        Execution<double> execution(dequantize, where, std::nan(""));
        write(execution[codes], rows);
        if (scales) write(execution[scales], numbers_of(c, program, part.scales));
        execution.run();
        rows = read(execution[weight]);
      }
      all[p.name].insert(all[p.name].end(), rows.begin(), rows.end());
    }
  }
  return all;
}

void for_each_set_by_host(const Program& program, const std::function<void(Value)>& f, int run) {
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    const Value v{static_cast<std::int32_t>(i)};
    const Kind kind = program.storage_of(v).kind;
    const bool cache =
        kind == Kind::state && run == 0 && program[v].name.starts_with("cache.") && program[v].version == 0;
    if (program.base_of(v) == v && (kind == Kind::input || kind == Kind::parameter || cache)) f(v);
  }
}

void set(Session& session, Value v, const std::vector<double>& numbers) {
  if (session.program().storage_of(v).dtype == DType::i32)
    session.set(v, std::vector<std::int32_t>(numbers.begin(), numbers.end()));
  else if (session.program().storage_of(v).dtype == DType::u8)
    session.set(v, std::vector<std::uint8_t>(numbers.begin(), numbers.end()));
  else session.set(v, std::vector<float>(numbers.begin(), numbers.end()));
}

void set_all(Session& session, const BlockCase& c, int run) {
  for_each_set_by_host(
      session.program(), [&](Value v) { set(session, v, numbers_of(c, session.program(), v, run)); }, run);
}

}  // namespace assay::falsify
