#include "cli/built_from.hpp"

#include <exception>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/errors.hpp"
#include "falsify/gate/includes.hpp"
#include "system/sha256.hpp"

namespace assay::cli {

namespace {

/// Compares files with the program's sources, of which the program itself has only digests.
class Comparison {
 public:
  Comparison(const falsify::Tree& tree, const std::string& root) : tree_(tree), root_(root) {}

  /// `digest`: of the program's source; empty if it lacks the file.
  bool same(const std::string& path, std::string_view digest) {
    const std::string* const text = tree_.find(path);
    return digest == (text == nullptr ? "" : sha256(*text)) || (text != nullptr && same_tokens(path, digest));
  }

 private:
  bool same_tokens(const std::string& path, std::string_view digest) {
    if (!head_) {
      try {
        head_ = falsify::committed_tree(root_, "HEAD");
      } catch (const std::exception&) {  // no commit, or no git
        head_.emplace();
      }
      now_.emplace(tree_), then_.emplace(*head_);
    }
    const std::string* const text = head_->find(path);
    return text != nullptr && sha256(*text) == digest && then_->own_digest(path) == now_->own_digest(path);
  }

  const falsify::Tree& tree_;
  const std::string& root_;
  std::optional<falsify::Tree> head_;
  std::optional<falsify::Includes> now_, then_;
};

}  // namespace

InputError not_built_from_error(const std::string& path) {
  return {path, "is not what this assay was built from", "build this checkout first: cmake --build --preset release"};
}

std::string not_built_from(const falsify::Tree& tree, const std::string& root) {
  Comparison with(tree, root);
  std::unordered_set<std::string_view> known;
  for (const BuiltFile& file : built_from()) {
    known.insert(file.path);
    if (!with.same(std::string(file.path), file.digest)) return std::string(file.path);
  }
  for (const char* folder : {"contracts/", "kernels/"})
    for (std::string& path : tree.below(folder))
      if (!known.contains(path)) return std::move(path);
  return "";
}

void expect_built_from(const falsify::Fingerprint& fingerprint, const falsify::Tree& tree, const std::string& root) {
  static const auto table = [] {
    std::unordered_map<std::string_view, std::string_view> digests;
    for (const BuiltFile& file : built_from()) digests.emplace(file.path, file.digest);
    return digests;
  }();
  static std::unordered_set<std::string> known;  // files already compared
  Comparison with(tree, root);
  for (const auto& [part, files] : fingerprint)
    for (const auto& [path, digest] : files->digests) {
      if (!known.insert(path).second) continue;
      const auto at = table.find(path);
      if (!with.same(path, at == table.end() ? std::string_view() : at->second)) throw not_built_from_error(path);
    }
}

}  // namespace assay::cli
