#include "cli/built_from.hpp"

#include <string>
#include <unordered_map>

#include "core/errors.hpp"

namespace assay::cli {

void expect_built_from(const falsify::Fingerprint& fingerprint) {
  static const auto table = [] {
    std::unordered_map<std::string_view, std::string_view> digests;
    for (const BuiltFile& file : built_from()) digests.emplace(file.path, file.digest);
    return digests;
  }();
  for (const auto& [part, files] : fingerprint)
    for (const auto& [path, digest] : files->digests) {
      const auto at = table.find(path);
      if ((at == table.end() ? std::string_view() : at->second) != digest)
        throw InputError(path, "is not what this assay was built from",
                         "build this checkout first: cmake --build --preset release");
    }
}

}  // namespace assay::cli
