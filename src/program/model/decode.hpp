// Decoding on a device: a model's parameters and caches, and the programs that take one token, or a chunk of tokens, of
// each sequence through every layer.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "program/model/transformer.hpp"
#include "program/session.hpp"

namespace assay::program {

/// A program that appends `rows` tokens of each sequence to its caches. The one input `starts`, i32 [batch], is both the
/// number of tokens that a cache holds and the position of the first new one.
struct DecodeProgram {
  Program program;
  Value ids;                  ///< i32 [batch * rows]; of a table in parts, so many for each of them (take())
  Value starts;               ///< i32 [batch]
  Value lengths, positions;   ///< of several rows: starts + rows, [batch], and starts + 0, 1, ..., [batch * rows]
  Value logits;               ///< [batch, vocabulary]; of several rows none: their caches are all that counts
  std::vector<Cache> caches;  ///< of each layer, before the run
  Index vocabulary = 0, part_rows = 0;  ///< of the table, and of a part of it

  Index parts() const { return (vocabulary + part_rows - 1) / part_rows; }
  /// Writes token n of `count` as the program takes it.
  template <class T>
  void take(std::int32_t id, std::size_t n, std::size_t count, std::span<T> taken) const {
    for (Index p = 0; p < parts(); ++p) {
      const Index begin = p * part_rows, rows = std::min(vocabulary, begin + part_rows) - begin, row = id - begin;
      taken[static_cast<std::size_t>(p) * count + n] = static_cast<T>(0 <= row && row < rows ? row : rows);
    }
  }
};
DecodeProgram decode_program(const TransformerConfig& config, Index batch, Index capacity, Index rows = 1);

struct DecoderOptions {
  Index batch = 1;
  Index capacity = 2048;  ///< tokens of each sequence
  Index chunk = 0;        ///< tokens of a prompt that are taken at once; 0: one by one
};

/// Sequences that grow token by token. Their caches are states of the session, a pair for each layer.
class Decoder {
 public:
  /// Reserves weights, caches and temporaries, and nothing later. Throws what a Session throws. `config.trains` is taken
  /// as false.
  Decoder(TransformerConfig config, const DecoderOptions& options, Device& device, const SessionOptions& session = {});

  /// Its parameters are set by initialize(), load() and set_parameter().
  Session& session() { return *step_; }
  /// Takes chunks of prompts; null without them.
  const Session* chunk_session() const { return chunk_.get(); }
  Index length(Index sequence) const;

  static constexpr std::int32_t kNone = -1;
  /// Appends a token to each sequence, or none where the id is kNone, in one submission. Returns the logits that follow,
  /// [batch, vocabulary], until the next call; those of a sequence without a token mean nothing. Throws InputError for
  /// an id beyond the vocabulary and for a sequence whose cache is full, before anything changes.
  std::span<const float> step(std::span<const std::int32_t> ids);
  /// Appends a prompt to one sequence, chunk by chunk, and returns the logits behind its last token, [vocabulary].
  std::span<const float> prompt(Index sequence, std::span<const std::int32_t> ids);
  /// The sequence begins again; what its cache holds is not read any more.
  void reset(Index sequence);

 private:
  void expect_fit(Index sequence, std::span<const std::int32_t> ids) const;
  void run_chunk(Index sequence, std::span<const std::int32_t> ids);

  TransformerConfig config_;
  DecoderOptions options_;
  std::optional<DecodeProgram> one_, many_;
  std::unique_ptr<Session> step_, chunk_;
  std::vector<std::int32_t> lengths_, ids_, chunk_ids_, chunk_lengths_, positions_;
  std::vector<float> logits_;
};

}  // namespace assay::program
