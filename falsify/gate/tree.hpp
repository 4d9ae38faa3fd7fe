// The sources of a checkout: its working tree, or a commit.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::falsify {

/// Files by path from the top of the checkout, with their content. Holds the folders of kernels, contracts, references
/// and the engine, the build's files, ci/evidence, ci/environment.lock and ci/setup.
struct Tree {
  std::map<std::string, std::string, std::less<>> files;

  /// Returns null if there is no such file.
  const std::string* find(std::string_view path) const;
  /// True if any file lies below a folder ("kernels/").
  bool has(std::string_view folder) const;
  /// Returns the paths below a folder ("kernels/cpu/"), in order.
  std::vector<std::string> below(std::string_view folder) const;
};

/// Returns the files below `root`, tracked by git or not. Throws InputError if `root` is no checkout of Assay or has
/// symbolic links in these folders.
Tree working_tree(const std::filesystem::path& root);

/// Returns the commit from which a branch at HEAD departed from `revision`. Throws InputError if `root` is no git
/// checkout or lacks the revision, Unavailable if there is no git.
std::string departure(const std::filesystem::path& root, const std::string& revision);

/// Returns the same files as of a commit. Throws like departure().
Tree committed_tree(const std::filesystem::path& root, const std::string& commit);

/// Values of a trailer ("Gate-agree: VALUE") in the messages of the commits after `commit` up to HEAD. Throws like
/// departure().
std::vector<std::string> trailers(const std::filesystem::path& root, const std::string& commit, const std::string& key);

}  // namespace assay::falsify
