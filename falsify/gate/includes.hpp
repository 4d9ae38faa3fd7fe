// What a source says and which files it reaches, found in its tokens alone: no revision needs to be built to be hashed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/gate/tokens.hpp"
#include "falsify/gate/tree.hpp"

namespace assay::falsify {

/// What one file leads to.
struct Edges {
  std::set<std::string> files;
  std::set<std::string> included;  ///< those of them that #include names
  /// "kernels/cpu/a.cpp:3: #include WHAT": what text cannot follow: an include that is computed or of a file of the
  /// repository that is not there, a file that an assembler or a module brings in, words that stand for a place in the
  /// text or a day, characters that compilers read in several ways.
  std::vector<std::string> unknown;
};

/// The include graph of a tree. Conservative: conditions are not evaluated, so that every branch counts. Besides what a
/// file includes it leads to
/// - files that its string literals name by their path from the top;
/// - the source that defines what a header declares: one of the same name; one of the same folder that includes the
///   header and registers no kernel; one whose first include it is, where no header has that source's name;
/// - for a header that contractgen makes, the contract;
/// - for an embedded shader, its source, and the .cmake file that says how it is compiled.
class Includes {
 public:
  explicit Includes(const Tree& tree);

  const Edges& of(const std::string& path) { return parsed(path).edges; }

  /// SHA-256 of what a file says. The names of files of the repository in it are not part of it, wherever those are:
  /// their content stands in the place. Empty where there is no such file.
  const std::string& digest(const std::string& path);
  /// The same where the content of an included file counts for nothing: what changes with this file alone.
  const std::string& own_digest(const std::string& path);

 private:
  /// A file taken apart: its text between names of other files.
  struct Parsed {
    struct Name {
      std::string file;
      bool included;
    };
    std::string text;  ///< with a mark in the place of each name
    std::vector<Name> names;
    Edges edges;
  };
  struct Found {
    std::string file;  ///< of the repository, by its path; empty: none
    bool unknown = false;
  };

  const Parsed& parsed(const std::string& path);
  Parsed parse(const std::string& path, const std::string& text) const;
  void parse_code(const std::string& path, const std::string& text, Parsed& parsed) const;
  void parse_cmake(const std::string& path, const std::string& text, Parsed& parsed) const;
  void add_definers(const std::string& path, Edges& edges) const;
  std::string digest_within(const std::string& path, std::vector<std::string>& open, bool& cyclic);
  Found follow(const std::string& from, std::string_view target, bool quoted, Edges& edges) const;
  bool shader(std::string_view name, Edges& edges) const;
  /// Whether a target that is no file here can only have been one of the repository.
  bool ours(std::string_view target) const;

  const Tree& tree_;
  std::map<std::string, std::set<std::string>> definers_;  ///< by header
  std::map<std::string, Parsed> parsed_;
  std::map<std::string, std::string> digests_, own_digests_;
  std::map<std::string, std::string> acyclic_;  ///< digests of files that no way leads back to
};

}  // namespace assay::falsify
