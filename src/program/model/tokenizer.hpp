// Byte-level BPE as a Hugging Face tokenizer.json describes it, with the pre-tokenizer of Qwen2 or Llama 3.
// Source: Sennrich et al., Neural Machine Translation of Rare Words with Subword Units, 2016; huggingface/tokenizers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/shape.hpp"

namespace assay::program {

class Tokenizer {
 public:
  /// Reads a tokenizer.json. Throws InputError for what is not built, by its name: other models, pre-tokenizers,
  /// normalizers, post-processors, and added tokens that strip spaces.
  explicit Tokenizer(const std::filesystem::path& file);

  /// The ids of a text of valid UTF-8, with the tokens that the post-processor puts around it. Throws InputError for a
  /// text that the tokenizer would normalize: only text in form C is taken. O(bytes), and the square of each word's.
  std::vector<std::int32_t> encode(std::string_view text) const;
  Index vocabulary() const { return vocabulary_; }  ///< ids are below it

 private:
  struct Merge {
    std::size_t rank;
    std::int32_t id;
  };
  void append_stretch(std::string_view text, std::vector<std::int32_t>& ids) const;
  void append_word(std::string_view word, std::vector<std::int32_t>& ids) const;

  std::unordered_map<std::string, std::int32_t> ids_;        ///< of sequences of bytes
  std::unordered_map<std::uint64_t, Merge> merges_;          ///< of pairs of ids
  std::vector<std::pair<std::string, std::int32_t>> added_;  ///< tokens that text is split at first, longest first
  std::vector<std::int32_t> before_, behind_;                ///< put around a text
  std::size_t digits_ = 1;                                   ///< numbers are split into so many at most
  bool whole_words_ = false;                                 ///< a word of the vocabulary needs no merges
  bool nfc_ = false;
  Index vocabulary_ = 0;
};

}  // namespace assay::program
