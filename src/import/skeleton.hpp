// A contract that is not finished: what is known of it, and TODO for the rest.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "import/domain.hpp"

namespace assay::import {

struct Skeleton {
  struct Obligation {
    std::string id, claim, prediction, if_fails;  ///< empty: not known
  };
  std::string op, source;  ///< name of the operation; the file that it comes from, for the first line
  std::string code;        ///< of ids: "SM" in SM-PRE-001
  std::string summary;
  std::vector<std::string> sources;
  Declared declared;
  std::vector<std::pair<std::string, std::string>> equations;  ///< name, formula
  std::vector<std::string> requirements, promises;             ///< in words, of requires and ensures clauses
  std::vector<Obligation> obligations;

  /// The YAML. Obligations have `by: TODO`, which the loader rejects; those of the engine that every contract needs
  /// follow.
  std::string text() const;
};

}  // namespace assay::import
