#include "program/model/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "program/model/unicode.hpp"

namespace assay::program {
namespace {

using nlohmann::json;

// The two models' expressions, but for the digits of a number between them.
constexpr std::string_view kWords = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)",
                           kOthers = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string words_with(std::string_view numbers) { return fmt::format("{}{}{}", kWords, numbers, kOthers); }

/// The characters that a vocabulary has in place of bytes: itself for each that prints, the others from U+0100.
/// Source: GPT-2's encoder.py, bytes_to_unicode.
std::map<char32_t, char> bytes_of_characters() {
  std::map<char32_t, char> bytes;
  char32_t next = 0x100;
  for (char32_t b = 0; b < 256; ++b) {
    const bool prints = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
    bytes[prints ? b : next++] = static_cast<char>(b);
  }
  return bytes;
}

std::uint64_t pair_of(std::int32_t a, std::int32_t b) {
  return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b);
}

bool is_newline(char32_t c) { return c == '\r' || c == '\n'; }

/// Bytes of a character in UTF-8.
std::size_t bytes_in(char32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

/// Length of the contraction that begins at an apostrophe, in any case; 0: none. U+017F is an s in any case.
std::size_t contraction(std::u32string_view t) {
  const auto lower = [](char32_t c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c == 0x17f ? char32_t{'s'} : c; };
  if (t.size() < 2 || t[0] != '\'') return 0;
  const char32_t a = lower(t[1]), b = t.size() > 2 ? lower(t[2]) : 0;
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  return ((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/// Length of the first word of a text, by the first alternative of the expression that matches.
std::size_t word(std::u32string_view t, std::size_t digits) {
  const auto run = [&](std::size_t from, auto holds) {
    while (from < t.size() && holds(t[from])) ++from;
    return from;
  };
  const auto other = [](char32_t c) { return !is_space(c) && !is_letter(c) && !is_number(c); };
  if (const std::size_t n = contraction(t)) return n;
  const std::size_t skipped = !is_newline(t[0]) && !is_letter(t[0]) && !is_number(t[0]);
  if (const std::size_t n = run(skipped, is_letter); n > skipped) return n;
  if (is_number(t[0])) return std::min(run(0, is_number), digits);
  const std::size_t space = t[0] == ' ';
  if (const std::size_t n = run(space, other); n > space) return run(n, is_newline);
  const std::size_t spaces = run(0, is_space);
  for (std::size_t n = spaces; n > 0; --n)
    if (is_newline(t[n - 1])) return n;
  return spaces < t.size() && spaces > 1 ? spaces - 1 : spaces;
}

class File {
 public:
  explicit File(const std::filesystem::path& file)
      : where_(file.string()), all_(json::parse(files::read(file, "name a tokenizer.json"), nullptr, false)) {
    if (!all_.is_object() || !all_.contains("model")) refuse("is no tokenizer.json");
  }
  const json& at(const char* key) const {
    static const json none;
    return all_.contains(key) ? all_[key] : none;
  }
  [[noreturn]] void refuse(const std::string& problem) const {
    throw InputError(where_, problem, "take the tokenizer of a Qwen2 or a Llama 3 model");
  }
  std::string type(const json& part) const { return part.is_object() ? part.value("type", "?") : part.dump(); }

 private:
  std::string where_;
  json all_;
};

/// The digits of a number that stay together; the steps of the pre-tokenizer are those of one of the two models.
std::size_t digits_of(const File& file) {
  const json& pre = file.at("pre_tokenizer");
  if (file.type(pre) != "Sequence") file.refuse(fmt::format("has the pre-tokenizer {}", file.type(pre)));
  const json steps = pre.value("pretokenizers", json::array());
  if (steps.size() != 2 || file.type(steps[0]) != "Split" || file.type(steps[1]) != "ByteLevel")
    file.refuse("has a pre-tokenizer that is not Split and ByteLevel");
  const json pattern = steps[0].value("pattern", json::object()).value("Regex", json());
  if (steps[0].value("behavior", "") != "Isolated" || steps[0].value("invert", false) ||
      steps[1].value("add_prefix_space", true) || steps[1].value("use_regex", true))
    file.refuse("splits in another way");
  if (pattern == words_with(R"(\p{N})")) return 1;
  if (pattern == words_with(R"(\p{N}{1,3})")) return 3;
  file.refuse(fmt::format("splits by the expression {}", pattern.dump()));
}

/// The tokens that a post-processor puts around a text: the names before it, and those behind.
std::pair<std::vector<std::string>, std::vector<std::string>> around(const File& file, const json& post) {
  std::pair<std::vector<std::string>, std::vector<std::string>> all;
  if (post.is_null() || file.type(post) == "ByteLevel") return all;
  if (file.type(post) == "Sequence") {
    for (const json& step : post["processors"]) {
      auto more = around(file, step);
      all.first.insert(all.first.begin(), more.first.begin(), more.first.end());
      all.second.insert(all.second.end(), more.second.begin(), more.second.end());
    }
    return all;
  }
  if (file.type(post) != "TemplateProcessing") file.refuse(fmt::format("has the post-processor {}", file.type(post)));
  bool behind = false;
  for (const json& step : post["single"]) {
    if (step.contains("Sequence")) behind = true;
    else (behind ? all.second : all.first).push_back(step["SpecialToken"]["id"]);
  }
  return all;
}

}  // namespace

Tokenizer::Tokenizer(const std::filesystem::path& path) try {
  const File file(path);
  const json& model = file.at("model");
  if (model.value("type", "BPE") != "BPE") file.refuse(fmt::format("has the model {}", file.type(model)));
  for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
    if (model.contains(key) && !model[key].is_null() && model[key] != "") file.refuse(fmt::format("has {}", key));
  if (model.value("byte_fallback", false)) file.refuse("has byte_fallback");
  const json& normalizer = file.at("normalizer");
  nfc_ = !normalizer.is_null();
  if (nfc_ && file.type(normalizer) != "NFC") file.refuse(fmt::format("has the normalizer {}", file.type(normalizer)));
  digits_ = digits_of(file);
  whole_words_ = model.value("ignore_merges", false);
  const std::map<char32_t, char> bytes = bytes_of_characters();
  const auto sequence = [&](const std::string& name) {
    std::string text;
    for (const char32_t c : characters(name)) {
      const auto at = bytes.find(c);
      if (at == bytes.end()) return std::string();  // an added token, which no merge makes
      text += at->second;
    }
    return text;
  };
  std::map<std::string, std::int32_t> by_name;
  for (const auto& [name, id] : model.at("vocab").items()) {
    by_name[name] = id.get<std::int32_t>();
    if (const std::string text = sequence(name); !text.empty()) ids_[text] = by_name[name];
  }
  for (int b = 0; b < 256; ++b)
    if (!ids_.contains(std::string(1, static_cast<char>(b))))
      file.refuse(fmt::format("has no token for the byte {}", b));
  std::size_t rank = 0;
  for (const json& merge : model.at("merges")) {
    std::string a, b;
    if (merge.is_array() && merge.size() == 2) {
      a = merge[0], b = merge[1];
    } else if (merge.is_string()) {
      const auto text = merge.get<std::string>();
      a = text.substr(0, text.find(' ')), b = text.substr(std::min(text.size(), text.find(' ') + 1));
    }
    if (!by_name.contains(a) || !by_name.contains(b) || !by_name.contains(a + b))
      file.refuse(fmt::format("has the merge {} of tokens that it has not", merge.dump()));
    merges_.emplace(pair_of(by_name[a], by_name[b]), Merge{rank++, by_name[a + b]});
  }
  for (const json& token : file.at("added_tokens")) {
    const auto name = token.at("content").get<std::string>();
    for (const char* flag : {"lstrip", "rstrip", "single_word"})
      if (token.value(flag, false)) file.refuse(fmt::format("has the added token {} with {}", name, flag));
    by_name[name] = token.at("id");
    added_.emplace_back(name, by_name[name]);
  }
  std::ranges::sort(added_, std::greater<>(), [](const auto& token) { return token.first.size(); });
  for (const auto& [name, id] : by_name) vocabulary_ = std::max<Index>(vocabulary_, id + 1);
  const auto [before, behind] = around(file, file.at("post_processor"));
  for (const auto& [names, ids] : {std::pair{&before, &before_}, std::pair{&behind, &behind_}})
    for (const std::string& name : *names) {
      if (!by_name.contains(name)) file.refuse(fmt::format("puts {} around a text, which is no token of it", name));
      ids->push_back(by_name[name]);
    }
} catch (const json::exception& e) {
  throw InputError(path.string(), fmt::format("is malformed: {}", e.what()), "take the file as its model has it");
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids = before_;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto added = std::ranges::find_if(
        added_, [&](const auto& token) { return !token.first.empty() && text.substr(at).starts_with(token.first); });
    if (added == added_.end()) {
      ++at;
      continue;
    }
    append_stretch(text.substr(begin, at - begin), ids);
    ids.push_back(added->second);
    begin = at += added->first.size();
  }
  append_stretch(text.substr(begin), ids);
  ids.insert(ids.end(), behind_.begin(), behind_.end());
  return ids;
}

void Tokenizer::append_stretch(std::string_view text, std::vector<std::int32_t>& ids) const {
  const std::u32string all = characters(text);
  if (const auto unstable = nfc_ ? unstable_in_nfc(all) : std::nullopt)
    throw InputError("text", fmt::format("has U+{:04X} where normalization may change it", std::uint32_t{*unstable}),
                     "bring the text into Unicode's form C");
  for (std::u32string_view left = all; !left.empty();) {
    const std::size_t n = word(left, digits_);
    std::size_t bytes = 0;
    for (const char32_t c : left.substr(0, n)) bytes += bytes_in(c);
    append_word(text.substr(0, bytes), ids);
    left.remove_prefix(n), text.remove_prefix(bytes);
  }
}

void Tokenizer::append_word(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (const auto whole = ids_.find(std::string(word)); whole_words_ && whole != ids_.end()) {
    ids.push_back(whole->second);
    return;
  }
  std::vector<std::int32_t> parts;
  for (const char c : word) parts.push_back(ids_.at(std::string(1, c)));
  for (;;) {  // the first merge of the lowest rank
    const Merge* best = nullptr;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto merge = merges_.find(pair_of(parts[i], parts[i + 1]));
          merge != merges_.end() && (best == nullptr || merge->second.rank < best->rank))
        best = &merge->second, place = i;
    if (best == nullptr) break;
    parts[place] = best->id;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  ids.insert(ids.end(), parts.begin(), parts.end());
}

}  // namespace assay::program
