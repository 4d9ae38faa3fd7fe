// Strict reading of YAML: every node knows its place, every unexpected thing is one InputError.
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
  /// Parses the file at `path`; messages call it `label`.
  static Node load(const std::string& path, const std::string& label);
  /// Parses text that stood in a file; messages call the file `label` and its whole `name`, such as "the contract".
  static Node parse(const std::string& text, const std::string& label, const std::string& name);

  const std::string& name() const { return name_; }  ///< the key it stands under, as messages name it
  model::Place at() const { return at_; }
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const;

  /// A scalar that is not empty. Here and in items() and entries(), `TODO` is an error of its own: what `assay import` makes
  /// is no contract before it is filled in.
  model::Text text() const;
  /// A scalar as it stands; empty for null, lists and maps.
  const std::string& scalar() const;
  /// `true` or `false`.
  bool boolean() const;
  /// An integer within [low, high].
  Index integer(Index low, Index high) const;
  /// A finite number.
  double number() const;
  /// The scalar as one of the allowed words.
  model::Text one_of(std::initializer_list<std::string_view> words) const;

  bool is_map() const { return yaml_.IsMap(); }
  bool is_list() const { return yaml_.IsSequence(); }
  bool empty() const { return yaml_.size() == 0; }  ///< of a map or list
  /// Items of a list that is not empty.
  std::vector<Node> items() const;
  /// Entries of a map that is not empty, in the file's order; a key given twice is an error.
  std::vector<std::pair<model::Text, Node>> entries() const;

 private:
  friend class Fields;
  Node(YAML::Node yaml, std::shared_ptr<const std::string> label, std::string name, model::Place fallback);
  void expect_finished() const;
  Node child(const YAML::Node& yaml, const std::string& name, model::Place fallback) const;

  YAML::Node yaml_;
  std::shared_ptr<const std::string> label_;
  std::string name_;
  model::Place at_;
};

/// A map whose keys are known beforehand; any other key is an error that suggests the nearest known one.
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

/// The text of a file. Throws InputError, which calls it `label` and asks for the path of `what`, where it cannot be read.
std::string read_file(const std::string& path, const std::string& label, const std::string& what = "a contract");

/// Throws InputError at a place of a file.
[[noreturn]] void fail_at(const std::string& file, model::Place at, const std::string& problem,
                          const std::string& remedy);

/// The candidate with the fewest edits from `word`, as "did you mean 'x'?", where few letters differ; otherwise the list of candidates.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace assay::contract
