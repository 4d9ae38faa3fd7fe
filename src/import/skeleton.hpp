// An unfinished contract: the known parts, and TODO for the rest.
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
  std::string op, source;  ///< name of the operation; source file, for the first line
  std::string code;        ///< beginning of ids: "SM" in SM-PRE-001
  std::string summary;
  std::vector<std::string> sources;
  Declared declared;
  std::vector<std::pair<std::string, std::string>> equations;  ///< name, formula
  std::vector<std::string> requirements, promises;             ///< wording of requires and ensures clauses
  std::vector<Obligation> obligations;

  /// Returns the YAML. Obligations have `by: TODO`, which the loader rejects. The engine's obligations that every
  /// contract needs follow.
  std::string text() const;
};

}  // namespace assay::import
