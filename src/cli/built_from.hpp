// The sources that this program was built from (ci/cmake/BuiltFrom.cmake), so that a verdict is never given about
// others.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "falsify/gate/fingerprint.hpp"

namespace assay::cli {

struct BuiltFile {
  std::string_view path;    ///< from the top of the repository
  std::string_view digest;  ///< SHA-256
};

/// In order of path.
std::span<const BuiltFile> built_from();

/// Configuration, compiler and what else changes machine code: "Release, GNU 12.2.0".
extern const std::string_view kBuild;

/// Entries of the environment that are known when a program is built: {"compiler", "GNU 12.2.0"}. An empty value: it is not here.
std::span<const std::pair<std::string_view, std::string_view>> built_with();

/// Throws InputError, naming the first file, where a kernel's files in the tree are others than those of this program.
void expect_built_from(const falsify::Fingerprint& fingerprint, const falsify::Tree& tree);

}  // namespace assay::cli
