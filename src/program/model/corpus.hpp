// Corpora of labelled text in JSON Lines, as samples of a classifier.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "program/model/training.hpp"

namespace assay::program {

/// One token a byte: the vocabulary is 256.
inline constexpr Index kBytes = 256;
std::vector<std::int32_t> byte_tokens(std::string_view text);

struct CorpusOptions {
  std::vector<std::string> classes;  ///< their names, in the model's order
  bool multi_label = false;
  Index length = 128;  ///< tokens of a sample at most; a longer one is cut
  Index vocabulary = kBytes;
  std::function<std::vector<std::int32_t>(std::string_view)> tokenize = byte_tokens;
};

struct Corpus {
  std::vector<Sample> samples;
  std::vector<Index> lines;        ///< of each sample, from 1
  Index cut = 0, tokens_lost = 0;  ///< samples that were too long, and their tokens that are left out
};

/// Reads one sample a line: {"text": "Guten Tag", "label": "de"}. "input" may stand for "text", and "tokens": [ids] takes
/// the place of either. A label is a class's name or its number from 0. Where several labels may hold, "labels" lists
/// the names of those that do, or has a 0 or 1 for each class; a single "label" is one of them. Throws InputError, with
/// file and line, for a line that is anything else, and for a file without lines. O(bytes).
Corpus read_corpus(const std::filesystem::path& file, const CorpusOptions& options);

/// Holds out a share of the samples, at least one, drawn by the seed. Throws InputError if none would be left to train.
std::pair<Corpus, Corpus> split(Corpus all, double held_out, std::uint64_t seed);

/// The order of an epoch's samples: a permutation that depends on count, seed and epoch alone, on every platform.
/// Source: Fisher & Yates, in Durstenfeld's form, CACM 7 (1964), algorithm 235.
std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed, std::uint64_t epoch);

}  // namespace assay::program
