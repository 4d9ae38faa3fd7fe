// The sources that this program was built from (ci/cmake/BuiltFrom.cmake), so that a verdict is never given about
// others.
#pragma once

#include <span>
#include <string_view>

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

/// Throws InputError, naming the first file, where a kernel's files are others than those of this program.
void expect_built_from(const falsify::Fingerprint& fingerprint);

}  // namespace assay::cli
