#include "contract/reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "core/errors.hpp"
#include "core/files.hpp"

namespace assay::contract {
namespace {

constexpr std::size_t kLongestText = 1000;

model::FilePosition place(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

/// Returns the Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string read_file(const std::string& path, const std::string& label, const std::string& what) {
  try {
    return files::read(path, "give the path of " + what);
  } catch (const InputError& e) {
    throw InputError(label, e.problem, e.remedy);
  }
}

void fail_at(const std::string& file, model::FilePosition at, const std::string& problem, const std::string& remedy) {
  std::string sentence = problem;  // a problem that quotes the file must stay on one line
  std::ranges::replace_if(
      sentence, [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  throw InputError(fmt::format("{}:{}:{}", file, at.line, at.column), sentence, remedy);
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates) {
  const auto nearest =
      std::ranges::min_element(candidates, {}, [&](std::string_view candidate) { return distance(word, candidate); });
  // At most a third of the letters may differ: otherwise most names of one or two letters would match.
  if (nearest != candidates.end() && 3 * distance(word, *nearest) <= std::max(word.size(), nearest->size()))
    return fmt::format("did you mean '{}'?", *nearest);
  return fmt::format("use one of: {}", fmt::join(candidates, ", "));
}

Node::Node(YAML::Node yaml, std::shared_ptr<const std::string> label, std::string name, model::FilePosition fallback)
    : yaml_(std::move(yaml)), label_(std::move(label)), name_(std::move(name)), at_(fallback) {
  if (yaml_.IsDefined() && !yaml_.IsNull()) at_ = place(yaml_.Mark());
}

Node Node::child(const YAML::Node& yaml, const std::string& name, model::FilePosition fallback) const {
  return Node(yaml, label_, name, fallback);
}

Node Node::load(const std::string& path, const std::string& label) {
  return parse(read_file(path, label), label, "the contract");
}

Node Node::parse(const std::string& text, const std::string& label, const std::string& name) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1)
      fail_at(label, place(documents[1].Mark()), fmt::format("this begins another of {} documents", documents.size()),
              "keep one in each file");
    return Node(documents.empty() ? YAML::Node() : documents[0], std::make_shared<const std::string>(label), name,
                {1, 1});
  } catch (const YAML::Exception& e) {
    const model::FilePosition at = e.mark.is_null() ? model::FilePosition{1, 1} : place(e.mark);
    fail_at(label, at, "this is not YAML: " + e.msg, "check quotes, brackets and indentation");
  }
}

void Node::fail(const std::string& problem, const std::string& remedy) const { fail_at(*label_, at_, problem, remedy); }

void Node::expect_finished() const {
  if (scalar() == "TODO")
    fail(fmt::format("'{}' is still TODO", name_),
         "fill in every TODO as contracts/SCHEMA.md says: a skeleton is no contract");
}

const std::string& Node::scalar() const {
  static const std::string none;
  return yaml_.IsScalar() ? yaml_.Scalar() : none;
}

model::Text Node::text() const {
  expect_finished();
  if (!yaml_.IsScalar() || yaml_.Scalar().find_first_not_of(" \t\r\n") == std::string::npos)
    fail(fmt::format("'{}' must be text", name_), "write a value that is not empty");
  if (std::ranges::any_of(yaml_.Scalar(), [](char c) { return static_cast<unsigned char>(c) < ' '; }))
    fail(fmt::format("'{}' holds a line break or another control character", name_), "write it on one line");
  if (yaml_.Scalar().size() > kLongestText)
    fail(fmt::format("'{}' has {} characters", name_, yaml_.Scalar().size()),
         fmt::format("write at most {}", kLongestText));
  return {yaml_.Scalar(), at_};
}

bool Node::boolean() const { return one_of({"true", "false"}).value == "true"; }

Index Node::integer(Index low, Index high) const {
  const std::string digits = text().value;
  Index value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < low || value > high)
    fail(fmt::format("'{}' is {}", name_, digits), fmt::format("write an integer from {} to {}", low, high));
  return value;
}

double Node::number() const {
  const std::string digits = text().value;
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (end != digits.c_str() + digits.size() || !std::isfinite(value))
    fail(fmt::format("'{}' is {}", name_, digits), "write a finite number");
  return value;
}

model::Text Node::one_of(std::initializer_list<std::string_view> words) const {
  model::Text word = text();
  if (std::ranges::find(words, word.value) == words.end())
    fail(fmt::format("'{}' cannot be '{}'", name_, word.value), suggestion(word.value, words));
  return word;
}

std::vector<Node> Node::items() const {
  expect_finished();
  if (!yaml_.IsSequence() || yaml_.size() == 0)
    fail(fmt::format("'{}' must be a list", name_), "write '- ...' lines or [..., ...] with at least one item");
  std::vector<Node> list;
  for (const auto& item : yaml_) list.push_back(child(item, "an entry of " + name_, at_));
  return list;
}

std::vector<std::pair<model::Text, Node>> Node::entries() const {
  expect_finished();
  if (!yaml_.IsMap() || yaml_.size() == 0)
    fail(fmt::format("'{}' must be a map", name_), "write 'key: value' lines, at least one");
  std::vector<std::pair<model::Text, Node>> list;
  for (const auto& entry : yaml_) {
    const model::Text key = child(entry.first, "a key of " + name_, at_).text();
    for (const auto& [earlier, node] : list)
      if (earlier.value == key.value)
        fail_at(*label_, key.at, fmt::format("key '{}' is given twice", key.value),
                fmt::format("remove one (the first is on line {})", earlier.at.line));
    list.emplace_back(key, child(entry.second, key.value, key.at));
  }
  return list;
}

Fields::Fields(const Node& map, std::initializer_list<std::string_view> known) : map_(map), entries_(map.entries()) {
  for (const auto& [key, node] : entries_)
    if (std::ranges::find(known, key.value) == known.end())
      fail_at(*map.label_, key.at, fmt::format("unknown key '{}' in {}", key.value, map.name()),
              suggestion(key.value, known));
}

const Node* Fields::find(std::string_view key) const {
  for (const auto& [name, node] : entries_)
    if (name.value == key) return &node;
  return nullptr;
}

const Node& Fields::require(std::string_view key) const {
  if (const Node* node = find(key)) return *node;
  map_.fail(fmt::format("{} lacks '{}'", map_.name(), key), fmt::format("add '{}: ...'", key));
}

std::string Fields::text_or(std::string_view key, std::string otherwise) const {
  const Node* node = find(key);
  return node ? node->text().value : std::move(otherwise);
}

}  // namespace assay::contract
