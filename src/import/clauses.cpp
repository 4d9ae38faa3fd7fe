#include "import/clauses.hpp"

#include <fmt/format.h>

#include <sstream>

namespace assay::import {
namespace {

using contract::Node;

constexpr std::size_t kDeepest = 32, kMost = 100'000;

std::string on_one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

void walk(const Node& node, std::vector<Key>& keys, std::vector<Clause>& found) {
  if (keys.size() > kDeepest)
    node.fail(fmt::format("this nests deeper than {} levels", kDeepest), "remove aliases that contain themselves");
  const auto descend = [&](Key key, const Node& child) {
    keys.push_back(std::move(key));
    walk(child, keys, found);
    keys.pop_back();
  };
  if (node.is_map() && !node.empty()) {
    for (const auto& [key, value] : node.entries()) descend({key.value}, value);
  } else if (node.is_list() && !node.empty()) {
    std::size_t i = 0;
    for (const Node& item : node.items()) descend({std::to_string(i++), true}, item);
  } else {
    const std::string text = on_one_line(node.scalar());
    found.push_back({keys, node.at(), text, text.empty()});
  }
  if (found.size() > kMost)
    node.fail(fmt::format("the document has more than {} values", kMost), "remove aliases that repeat each other");
}

}  // namespace

std::string Clause::path() const {
  std::string text;
  for (const Key& key : keys) text += key.item ? "[" + key.name + "]" : (text.empty() ? "" : ".") + key.name;
  return text;
}

std::vector<Clause> clauses(const Node& document) {
  std::vector<Key> keys;
  std::vector<Clause> found;
  for (const auto& [key, value] : document.entries()) {  // the document must be a map
    keys.assign(1, {key.value});
    walk(value, keys, found);
  }
  return found;
}

}  // namespace assay::import
