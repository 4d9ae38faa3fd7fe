// A published provable-contracts YAML (github.com/paiml/provable-contracts) as a skeleton of ours. Every value of the
// file is either carried over or listed with the reason why not; none is dropped silently.
#pragma once

#include <string>
#include <vector>

#include "import/clauses.hpp"
#include "import/skeleton.hpp"

namespace assay::import {

/// What became of one value.
struct Fate {
  Clause clause;
  bool carried = false;
  std::string note;  ///< where it is now, "falsify[3].claim"; or why it is nowhere
};

struct Imported {
  Skeleton skeleton;
  std::vector<Fate> fates;  ///< of every value, in the file's order
};

/// `op` names the operation. Throws InputError where the text is no YAML, or no contract of that format.
Imported import_published(const std::string& text, const std::string& label, const std::string& op);

/// "softmax-kernel-v1" -> "softmax": the name of a published file as one that contracts allow; empty where it cannot
/// be.
std::string op_from(const std::string& stem);

}  // namespace assay::import
