// Which files a source reaches by #include, found in the text alone: no revision needs to be built to be hashed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/gate/tree.hpp"

namespace assay::falsify {

/// What one file leads to.
struct Edges {
  std::set<std::string> files;
  /// "kernels/cpu/a.cpp:3: #include WHAT": an include that text cannot follow, or of a file of the repository that is
  /// not there.
  std::vector<std::string> unknown;
};

/// The include graph of a tree. Conservative: conditions are not evaluated, so that every branch counts. Besides what a
/// file includes it leads to
/// - the source that defines what a header declares: the one of the same name, or one of the same folder that includes
/// the
///   header and registers no kernel;
/// - for a header that contractgen makes, the contract;
/// - for an embedded shader, its source, and the .cmake file that says how it is compiled.
class Includes {
 public:
  explicit Includes(const Tree& tree);

  const Edges& of(const std::string& path);

 private:
  Edges find(const std::string& path, const std::string& text) const;
  void follow(const std::string& from, std::string_view target, bool quoted, const std::string& where,
              Edges& edges) const;
  bool shader(std::string_view name, Edges& edges) const;
  /// Whether a target that is no file here can only have been one of the repository.
  bool ours(std::string_view target) const;

  const Tree& tree_;
  std::map<std::string, std::set<std::string>> definers_;  ///< by header
  std::map<std::string, Edges> known_;
};

}  // namespace assay::falsify
