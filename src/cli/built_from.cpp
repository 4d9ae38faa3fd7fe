#include "cli/built_from.hpp"

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/errors.hpp"
#include "system/sha256.hpp"

namespace assay::cli {

InputError not_built_from_error(const std::string& path) {
  return {path, "is not what this assay was built from", "build this checkout first: cmake --build --preset release"};
}

std::string not_built_from(const falsify::Tree& tree) {
  std::unordered_set<std::string_view> known;
  for (const BuiltFile& file : built_from()) {
    known.insert(file.path);
    const std::string* text = tree.find(file.path);
    if (text == nullptr || sha256(*text) != file.digest) return std::string(file.path);
  }
  for (const char* folder : {"contracts/", "kernels/"})
    for (std::string& path : tree.below(folder))
      if (!known.contains(path)) return std::move(path);
  return "";
}

void expect_built_from(const falsify::Fingerprint& fingerprint, const falsify::Tree& tree) {
  static const auto table = [] {
    std::unordered_map<std::string_view, std::string_view> digests;
    for (const BuiltFile& file : built_from()) digests.emplace(file.path, file.digest);
    return digests;
  }();
  static std::unordered_set<std::string> known;  // files already compared
  for (const auto& [part, files] : fingerprint)
    for (const auto& [path, digest] : files->digests) {
      if (!known.insert(path).second) continue;
      const auto at = table.find(path);
      const std::string* text = tree.find(path);
      if ((at == table.end() ? std::string_view() : at->second) != (text == nullptr ? "" : sha256(*text)))
        throw not_built_from_error(path);
    }
}

}  // namespace assay::cli
