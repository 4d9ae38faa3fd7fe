// Converts a published provable-contracts YAML (github.com/paiml/provable-contracts) to a skeleton. Every value of the
// file is either carried over or listed with the reason why not; none is dropped silently.
#pragma once

#include <string>
#include <vector>

#include "import/clauses.hpp"
#include "import/skeleton.hpp"

namespace assay::import {

/// Result for one value.
struct Fate {
  Clause clause;
  bool carried = false;
  std::string note;  ///< new path, "falsify[3].claim", or the reason why there is none
};

struct Imported {
  Skeleton skeleton;
  std::vector<Fate> fates;  ///< results for all values, in the file's order
};

/// `op` names the operation. Throws InputError if the text is not YAML or not a contract of that format.
Imported import_published(const std::string& text, const std::string& label, const std::string& op);

/// Converts the name of a published file to an operation's name, "softmax-kernel-v1" to "softmax"; empty if impossible.
std::string op_from(const std::string& stem);

}  // namespace assay::import
