// A YAML document as a flat list: every value with the path of keys that leads to it.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "contract/reader.hpp"

namespace assay::import {

/// One step of a path: the key of a map's entry, or the index of a list's item.
struct Key {
  std::string name;
  bool item = false;

  friend bool operator==(const Key& key, std::string_view name) { return !key.item && key.name == name; }
  friend bool operator==(const Key&, const Key&) = default;
  friend auto operator<=>(const Key&, const Key&) = default;
};

/// One value: a scalar, or a map or list without entries.
/// Values are counted, not keys, and an alias once for each path to it: what is carried over and what is not add up.
struct Clause {
  std::vector<Key> keys;  ///< outermost first: equations, softmax, invariants, 0
  contract::model::FilePosition at;
  std::string text;    ///< scalar on one line: runs of blanks and line breaks become one blank
  bool empty = false;  ///< null, blank, or without entries

  /// Returns the path, such as "equations.softmax.invariants[0]".
  std::string path() const;
};

/// Returns all clauses in the file's order; the target of an alias is repeated at each use. Throws InputError for
/// repeated keys, and for documents with unbounded nesting or expansion.
std::vector<Clause> clauses(const contract::Node& document);

}  // namespace assay::import
