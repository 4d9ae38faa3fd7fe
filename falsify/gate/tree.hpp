// The sources of a checkout at one moment: those of its working tree, or of a commit.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::falsify {

/// Files by path from the top of the checkout, with their content. Holds the folders that kernels, contracts,
/// references and the engine are in, the build's files, ci/evidence, ci/environment.lock and ci/setup.
struct Tree {
  std::map<std::string, std::string, std::less<>> files;

  /// Null where there is no such file.
  const std::string* find(std::string_view path) const;
  /// Whether anything lies below a folder ("kernels/").
  bool has(std::string_view folder) const;
  /// Paths below a folder ("kernels/cpu/"), in order.
  std::vector<std::string> below(std::string_view folder) const;
};

/// What lies below `root` now, whether git knows it or not. Throws InputError where that is no checkout of Assay.
Tree working_tree(const std::filesystem::path& root);

/// The commit from which a branch at HEAD departed from `revision`. Throws InputError where `root` is no git checkout
/// or has no such revision, Unavailable where there is no git.
std::string departure(const std::filesystem::path& root, const std::string& revision);

/// The same files as a commit holds them. Throws like departure().
Tree committed_tree(const std::filesystem::path& root, const std::string& commit);

/// Values of a trailer ("Gate-agree: VALUE") in the messages of the commits after `commit` up to HEAD. Throws like departure().
std::vector<std::string> trailers(const std::filesystem::path& root, const std::string& commit, const std::string& key);

}  // namespace assay::falsify
