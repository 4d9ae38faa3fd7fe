#include "program/model/corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "program/model/parameters.hpp"

namespace assay::program {
namespace {

using nlohmann::json;

/// One line of a corpus.
class Line {
 public:
  Line(std::string where, std::string_view text, const CorpusOptions& options)
      : where_(std::move(where)), options_(options) {
    std::vector<std::string> seen;
    const auto see = [&](int depth, json::parse_event_t event, json& parsed) {
      if (event != json::parse_event_t::key || depth != 1) return true;
      seen.push_back(parsed.get<std::string>());
      return true;
    };
    try {
      all_ = json::parse(text, see);
    } catch (const json::exception& e) {
      refuse(fmt::format("is no JSON: {}", e.what()), "write one JSON object on each line, in UTF-8");
    }
    if (!all_.is_object()) refuse("is no JSON object", R"(write {"text": "...", "label": "..."})");
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (std::find(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(i), seen[i]) !=
          seen.begin() + static_cast<std::ptrdiff_t>(i))
        refuse(fmt::format("has the key '{}' twice", seen[i]), "keep one");
      if (!known(seen[i])) refuse(fmt::format("has the key '{}'", seen[i]), "use text or tokens, and label or labels");
    }
  }

  Sample sample() const {
    Sample s;
    s.tokens = tokens();
    if (s.tokens.empty()) refuse("has no tokens", "leave the line out, or give it text");
    if (all_.contains("label") == all_.contains("labels"))
      refuse(all_.contains("label") ? "has label and labels" : "has no label", "give one of the two");
    if (!options_.multi_label) {
      if (!all_.contains("label")) refuse("has several labels", "give one label, or say multi_label: true");
      s.label = class_of(all_["label"]);
      return s;
    }
    s.labels.assign(options_.classes.size(), 0);
    if (all_.contains("label")) s.labels[static_cast<std::size_t>(class_of(all_["label"]))] = 1;
    else set_labels(s.labels, all_["labels"]);
    return s;
  }

 private:
  static bool known(std::string_view key) {
    for (const std::string_view k : {"text", "input", "tokens", "label", "labels"})
      if (k == key) return true;
    return false;
  }

  std::vector<std::int32_t> tokens() const {
    const int given = all_.contains("text") + all_.contains("input") + all_.contains("tokens");
    if (given != 1) refuse(given == 0 ? "has no text" : "has several texts", "give one of text, input and tokens");
    if (!all_.contains("tokens")) {
      const json& text = all_.contains("text") ? all_["text"] : all_["input"];
      if (!text.is_string()) refuse(fmt::format("has {} as its text", text.dump()), "give a string");
      std::vector<std::int32_t> ids = tokenized(text.get_ref<const std::string&>());
      for (const std::int32_t id : ids)
        if (id >= options_.vocabulary)
          refuse(fmt::format("has the token {}, and the model has {}", id, options_.vocabulary),
                 "take the model's own tokenizer, or a model with a larger vocabulary");
      return ids;
    }
    if (!all_["tokens"].is_array()) refuse("has no list as its tokens", "give [ids]");
    std::vector<std::int32_t> ids;
    for (const json& id : all_["tokens"]) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= static_cast<std::uint64_t>(options_.vocabulary))
        refuse(fmt::format("has the token {}", id.dump()),
               fmt::format("give ids from 0 to {}", options_.vocabulary - 1));
      ids.push_back(id.get<std::int32_t>());
    }
    return ids;
  }

  std::vector<std::int32_t> tokenized(const std::string& text) const {
    try {
      return options_.tokenize(text);
    } catch (const InputError& e) {
      refuse(e.problem, e.remedy);
    }
  }

  std::int32_t class_of(const json& label) const {
    const std::vector<std::string>& names = options_.classes;
    if (label.is_number_unsigned() && label.get<std::uint64_t>() < names.size()) return label.get<std::int32_t>();
    const auto at = label.is_string() ? std::ranges::find(names, label.get_ref<const std::string&>()) : names.end();
    if (at == names.end())
      refuse(fmt::format("has the label {}", label.dump()),
             fmt::format("use one of the {} classes: {}", names.size(), fmt::join(names, ", ")));
    return static_cast<std::int32_t>(at - names.begin());
  }

  void set_labels(std::vector<float>& labels, const json& given) const {
    if (!given.is_array()) refuse(fmt::format("has {} as its labels", given.dump()), "give a list");
    const bool by_name = given.empty() || given[0].is_string();
    if (!by_name && given.size() != labels.size())
      refuse(fmt::format("has {} labels for {} classes", given.size(), labels.size()),
             "give a 0 or 1 for each class, or names of classes");
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (by_name && given[i].is_string()) {
        labels[static_cast<std::size_t>(class_of(given[i]))] = 1;
      } else if (!by_name && given[i].is_number_unsigned() && given[i].get<std::uint64_t>() <= 1) {
        labels[i] = given[i].get<float>();
      } else {
        refuse(fmt::format("has {} among its labels", given[i].dump()),
               "give a 0 or 1 for each class, or names of classes");
      }
    }
  }

  [[noreturn]] void refuse(const std::string& problem, const std::string& remedy) const {
    throw InputError(where_, problem, remedy);
  }

  std::string where_;
  const CorpusOptions& options_;
  json all_;
};

}  // namespace

std::vector<std::int32_t> byte_tokens(std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

Corpus read_corpus(const std::filesystem::path& file, const CorpusOptions& options) {
  const std::string text = files::read(file, "name a corpus in JSON Lines");
  Corpus corpus;
  for (std::size_t at = 0, line = 1; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view row = std::string_view(text).substr(at, end - at);
    Sample s = Line(fmt::format("{}:{}", file.string(), line), row, options).sample();
    const auto longest = static_cast<std::size_t>(options.length);
    if (s.tokens.size() > longest) {
      ++corpus.cut, corpus.tokens_lost += static_cast<Index>(s.tokens.size() - longest);
      s.tokens.resize(longest);
    }
    corpus.samples.push_back(std::move(s)), corpus.lines.push_back(static_cast<Index>(line));
    at = end + 1;
  }
  if (corpus.samples.empty()) throw InputError(file.string(), "has no lines", "name a corpus in JSON Lines");
  return corpus;
}

std::pair<Corpus, Corpus> split(Corpus all, double held_out, std::uint64_t seed) {
  const std::size_t n = all.samples.size();
  const auto out = std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(held_out * static_cast<double>(n))));
  if (out >= n)
    throw InputError("held_out", fmt::format("{} of {} samples leaves none to train", held_out, n),
                     "hold out fewer, or give more samples");
  std::vector<bool> is_out(n);
  const std::vector<std::size_t> order = shuffled(n, seed, 0);
  for (std::size_t i = 0; i < out; ++i) is_out[order[i]] = true;
  std::pair<Corpus, Corpus> parts;
  parts.first.cut = all.cut, parts.first.tokens_lost = all.tokens_lost;
  for (std::size_t i = 0; i < n; ++i) {
    Corpus& part = is_out[i] ? parts.second : parts.first;
    part.samples.push_back(std::move(all.samples[i])), part.lines.push_back(all.lines[i]);
  }
  return parts;
}

std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint64_t state = scramble(scramble(seed) ^ epoch);
  for (std::size_t left = count; left > 1; --left) {
    state = scramble(state);
    std::swap(order[left - 1], order[state % left]);
  }
  return order;
}

}  // namespace assay::program
