#include "program/model/decode.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"

namespace assay::program {
namespace {

/// Removes the steps behind the last one that appends to a cache.
void drop_behind_last_append(Program& program) {
  const auto appends = [&](const Step& step) {
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
      if (step.op->tensors[t].role == Role::inout && program.storage_of(step.tensors[t]).kind == Kind::state)
        return true;
    return false;
  };
  while (!appends(program.steps.back())) program.steps.pop_back();
}

}  // namespace

DecodeProgram decode_program(const TransformerConfig& config, Index batch, Index capacity, Index rows) {
  TransformerConfig frozen = config;
  frozen.trains = false, frozen.decodes = true;
  check(frozen);
  if (!frozen.causal)
    throw InputError("transformer: causal", "an encoder's tokens see those behind them", "decode with a causal model");
  if (batch < 1 || rows < 1 || capacity < rows)
    throw InputError("decoder",
                     fmt::format("{} sequences of {} places cannot take {} tokens each", batch, capacity, rows),
                     "have at least one sequence, one token, and room for it");
  Builder b;
  DecodeProgram d;
  for (Index layer = 0; layer < frozen.layers; ++layer) {
    const Builder::Scope scope(b, fmt::format("cache.{}", layer));
    const Shape shape{batch, capacity, frozen.kv_heads, frozen.head_dim};
    const DType dtype = activation_dtype(frozen.weights);
    d.caches.push_back({b.state("keys", shape, dtype), b.state("values", shape, dtype)});
  }
  d.vocabulary = frozen.vocabulary, d.part_rows = rows_of_table_part(frozen);
  d.ids = b.input("ids", {d.parts() * batch * rows}, DType::i32);
  d.starts = b.input("starts", {batch}, DType::i32);
  d.lengths = d.positions = d.starts;
  if (rows > 1) {
    d.lengths = b.input("lengths", {batch}, DType::i32);
    d.positions = frozen.theta > 0 ? b.input("positions", {batch * rows}, DType::i32) : Value{};
  }
  std::vector<Cache> later = d.caches;
  const Value logits = decoder(b, frozen, d.ids, {d.lengths, d.starts, d.positions}, later);
  if (rows == 1) {
    d.logits = logits;
    b.output(logits);
  }
  d.program = b.take();
  if (rows > 1) drop_behind_last_append(d.program);
  return d;
}

Decoder::Decoder(TransformerConfig config, const DecoderOptions& options, Device& device, const SessionOptions& session)
    : config_(std::move(config)), options_(options) {
  const auto refuse = [](const char* field, Index value, Index least) {
    constexpr Index kMost = 1048575;  // the largest position of a token
    if (value < least || value > kMost)
      throw InputError(fmt::format("decoder: {}", field), fmt::format("it is {}", value),
                       fmt::format("give {} to {}", least, kMost));
  };
  refuse("batch", options.batch, 1), refuse("capacity", options.capacity, 1), refuse("chunk", options.chunk, 0);
  // Behind the capacity there is room for what sequences without a token write.
  const Index places = options.capacity + std::max<Index>(options.chunk, 1);
  config_.largest_buffer = std::min(config_.largest_buffer, device.largest_buffer());
  one_ = decode_program(config_, options.batch, places);
  if (options.chunk > 1) many_ = decode_program(config_, options.batch, places, options.chunk);
  std::vector<const Program*> programs{&one_->program};
  if (many_) programs.push_back(&many_->program);
  expect_room(device, programs, session);
  step_ = std::make_unique<Session>(one_->program, device, session);
  if (many_) {
    SessionOptions shared = session;
    shared.shares = step_.get();
    chunk_ = std::make_unique<Session>(many_->program, device, shared);
  }
  const auto batch = static_cast<std::size_t>(options.batch), rows = batch * static_cast<std::size_t>(options.chunk);
  const auto parts = static_cast<std::size_t>(one_->parts());
  lengths_.resize(batch), ids_.resize(parts * batch), chunk_lengths_.resize(batch);
  chunk_ids_.resize(parts * rows), positions_.resize(rows);
  logits_.resize(batch * static_cast<std::size_t>(config_.vocabulary));
}

Index Decoder::length(Index sequence) const {
  if (sequence < 0 || sequence >= options_.batch)
    throw InputError(fmt::format("sequence {}", sequence), fmt::format("there are {}", options_.batch), "count from 0");
  return lengths_[static_cast<std::size_t>(sequence)];
}

void Decoder::expect_fit(Index sequence, std::span<const std::int32_t> ids) const {
  const Index held = length(sequence), tokens = std::ssize(ids);
  if (held + tokens > options_.capacity)
    throw InputError(
        fmt::format("sequence {}", sequence),
        fmt::format("its cache holds {} of {} tokens, and {} more do not fit", held, options_.capacity, tokens),
        "reset it, or give the decoder more capacity");
  for (const std::int32_t id : ids)
    if (id < 0 || id >= config_.vocabulary)
      throw InputError(fmt::format("token {}", id), fmt::format("the vocabulary has {}", config_.vocabulary),
                       "tokenize with the model's own tokenizer");
}

std::span<const float> Decoder::step(std::span<const std::int32_t> ids) {
  if (ids.size() != lengths_.size())
    throw InputError("ids", fmt::format("{} for {} sequences", ids.size(), lengths_.size()),
                     "give one for each, or kNone");
  for (std::size_t b = 0; b < ids.size(); ++b)
    if (ids[b] != kNone) expect_fit(static_cast<Index>(b), ids.subspan(b, 1));
  // A sequence without a token writes behind its last one, where nothing is read before its own next token is written.
  for (std::size_t b = 0; b < ids.size(); ++b) one_->take(std::max(ids[b], 0), b, ids.size(), std::span(ids_));
  step_->set(one_->ids, std::as_bytes(std::span(ids_)));
  step_->set(one_->starts, std::as_bytes(std::span(lengths_)));
  step_->run();
  step_->get(one_->logits, std::span(logits_));
  for (std::size_t b = 0; b < ids.size(); ++b) lengths_[b] += ids[b] != kNone;
  return logits_;
}

void Decoder::run_chunk(Index sequence, std::span<const std::int32_t> ids) {
  const auto rows = static_cast<std::size_t>(options_.chunk);
  for (std::size_t b = 0; b < lengths_.size(); ++b) {
    chunk_lengths_[b] = lengths_[b] + static_cast<std::int32_t>(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      many_->take(b == static_cast<std::size_t>(sequence) ? ids[i] : 0, b * rows + i, lengths_.size() * rows,
                  std::span(chunk_ids_));
      positions_[b * rows + i] = lengths_[b] + static_cast<std::int32_t>(i);
    }
  }
  chunk_->set(many_->ids, std::as_bytes(std::span(chunk_ids_)));
  chunk_->set(many_->starts, std::as_bytes(std::span(lengths_)));
  chunk_->set(many_->lengths, std::as_bytes(std::span(chunk_lengths_)));
  if (many_->positions) chunk_->set(many_->positions, std::as_bytes(std::span(positions_)));
  chunk_->run();
  lengths_[static_cast<std::size_t>(sequence)] += static_cast<std::int32_t>(rows);
}

std::span<const float> Decoder::prompt(Index sequence, std::span<const std::int32_t> ids) {
  expect_fit(sequence, ids);
  if (ids.empty()) throw InputError("prompt", "it has no token", "give one or more");
  std::size_t at = 0;
  for (const auto rows = static_cast<std::size_t>(options_.chunk); chunk_ && ids.size() - at > rows; at += rows)
    run_chunk(sequence, ids.subspan(at, rows));
  std::vector<std::int32_t> one(lengths_.size(), kNone);
  for (; at < ids.size(); ++at) {
    one[static_cast<std::size_t>(sequence)] = ids[at];
    step(one);
  }
  const auto words = static_cast<std::size_t>(config_.vocabulary);
  return std::span(logits_).subspan(static_cast<std::size_t>(sequence) * words, words);
}

void Decoder::reset(Index sequence) {
  length(sequence);
  lengths_[static_cast<std::size_t>(sequence)] = 0;
}

}  // namespace assay::program
