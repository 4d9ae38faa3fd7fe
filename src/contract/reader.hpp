// Strict reading of YAML: every node knows its position, and every unexpected construct is an InputError.
#pragma once

#include <yaml-cpp/yaml.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contract/model.hpp"

namespace assay::contract {

/// One node of a YAML file.
class Node {
 public:
  /// Parses the file at `path`; messages name it `label`.
  static Node load(const std::string& path, const std::string& label);
  /// Parses text from a file; messages name the file `label` and the whole text `name`, such as "the contract".
  static Node parse(const std::string& text, const std::string& label, const std::string& name);

  const std::string& name() const { return name_; }  ///< key of the node, as in messages
  model::FilePosition at() const { return at_; }
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const;

  /// Returns a scalar that is not empty. Here and in items() and entries(), `TODO` is a separate error: the output of
  /// `assay import` is not a contract until it is filled in.
  model::Text text() const;
  /// Returns a scalar unchanged; empty for null, lists and maps.
  const std::string& scalar() const;
  /// Returns `true` or `false`.
  bool boolean() const;
  /// Returns an integer within [low, high].
  Index integer(Index low, Index high) const;
  /// Returns a finite number.
  double number() const;
  /// Returns the scalar, which must be one of the allowed words.
  model::Text one_of(std::initializer_list<std::string_view> words) const;

  bool is_map() const { return yaml_.IsMap(); }
  bool is_list() const { return yaml_.IsSequence(); }
  bool empty() const { return yaml_.size() == 0; }  ///< for a map or list
  /// Returns the items of a non-empty list.
  std::vector<Node> items() const;
  /// Returns the entries of a non-empty map, in the file's order; a repeated key is an error.
  std::vector<std::pair<model::Text, Node>> entries() const;

 private:
  friend class Fields;
  Node(YAML::Node yaml, std::shared_ptr<const std::string> label, std::string name, model::FilePosition fallback);
  void expect_finished() const;
  Node child(const YAML::Node& yaml, const std::string& name, model::FilePosition fallback) const;

  YAML::Node yaml_;
  std::shared_ptr<const std::string> label_;
  std::string name_;
  model::FilePosition at_;
};

/// A map with a fixed set of keys; any other key is an error that suggests the nearest known key.
class Fields {
 public:
  Fields(const Node& map, std::initializer_list<std::string_view> known);

  /// Throws InputError if the key is absent.
  const Node& require(std::string_view key) const;
  const Node* find(std::string_view key) const;
  std::string text_or(std::string_view key, std::string otherwise) const;

 private:
  Node map_;
  std::vector<std::pair<model::Text, Node>> entries_;
};

/// Returns the text of a file. If the file cannot be read, throws InputError, which names it `label` and asks for the
/// path of `what`.
std::string read_file(const std::string& path, const std::string& label, const std::string& what = "a contract");

/// Throws InputError at a position of a file.
[[noreturn]] void fail_at(const std::string& file, model::FilePosition at, const std::string& problem,
                          const std::string& remedy);

/// Returns the candidate with the fewest edits from `word`, as "did you mean 'x'?", if few letters differ; otherwise
/// the list of candidates.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace assay::contract
