// Tokens of a source and the files it reaches, found without a build, so that any revision can be hashed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/gate/tokens.hpp"
#include "falsify/gate/tree.hpp"

namespace assay::falsify {

/// Outgoing edges of one file.
struct Edges {
  std::set<std::string> files;
  std::set<std::string> included;  ///< the subset that #include names
  /// "kernels/cpu/a.cpp:3: #include WHAT": constructs that text analysis cannot follow: a computed include or an
  /// include of a missing repository file or of one outside the hashed folders, files from an assembler or a module, words that expand to a line or a date,
  /// characters that compilers read differently.
  std::vector<std::string> unknown;
};

/// The include graph of a tree. Conservative: conditions are not evaluated, so that every branch counts. A file leads
/// to its includes, and to
/// - files that its string literals name by their path from the top;
/// - the source that defines a header's declarations: one of the same name; one in the same folder that includes the
///   header and registers no kernel; or one whose first include is the header, unless a header has that source's name;
/// - for a header made by contractgen, the contract;
/// - for an embedded shader, its source, and the .cmake file with its compile options.
class Includes {
 public:
  explicit Includes(const Tree& tree);

  const Edges& of(const std::string& path) { return parsed(path).edges; }

  /// Returns the SHA-256 of a file's tokens. Names of repository files are replaced by the content of the files, so
  /// that their location does not matter. Empty if there is no such file.
  const std::string& digest(const std::string& path);
  /// The same without the content of included files: changes with this file alone.
  const std::string& own_digest(const std::string& path);

 private:
  /// A parsed file: its text between names of other files.
  struct Parsed {
    struct Name {
      std::string file;
      bool included;
    };
    std::string text;  ///< with a mark in place of each name
    std::vector<Name> names;
    Edges edges;
  };
  struct Found {
    std::string file;  ///< path in the repository; empty: none
    bool unknown = false;
    bool outside = false;  ///< a place in the checkout, or above it, that no tree holds
  };

  const Parsed& parsed(const std::string& path);
  Parsed parse(const std::string& path, const std::string& text) const;
  void parse_code(const std::string& path, const std::string& text, Parsed& parsed) const;
  void parse_cmake(const std::string& path, const std::string& text, Parsed& parsed) const;
  void add_definers(const std::string& path, Edges& edges) const;
  std::string digest_within(const std::string& path, std::vector<std::string>& open, bool& cyclic);
  Found follow(const std::string& from, std::string_view target, bool quoted, Edges& edges) const;
  bool shader(std::string_view name, Edges& edges) const;
  /// True if a missing target can only have been a file of the repository.
  bool ours(std::string_view target) const;

  const Tree& tree_;
  std::map<std::string, std::string, std::less<>> shaders_;  ///< sources of embedded shaders, by the shader's name
  std::map<std::string, std::set<std::string>> definers_;    ///< by header
  std::map<std::string, Parsed> parsed_;
  std::map<std::string, std::string> digests_, own_digests_;
  std::map<std::string, std::string> acyclic_;  ///< digests of files outside include cycles
};

}  // namespace assay::falsify
