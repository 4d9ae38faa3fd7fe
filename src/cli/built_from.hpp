// The sources of this program (ci/cmake/BuiltFrom.cmake), so that verdicts are never given for other sources.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "core/errors.hpp"
#include "falsify/gate/fingerprint.hpp"

namespace assay::cli {

struct BuiltFile {
  std::string_view path;    ///< relative to the top of the repository
  std::string_view digest;  ///< SHA-256
};

/// Returns the files in order of path.
std::span<const BuiltFile> built_from();

/// Everything other than sources that changes machine code, such as configuration and compiler: "Release, GNU 12.2.0".
extern const std::string_view kBuild;

/// Returns the environment entries known at build time: {"compiler", "GNU 12.2.0"}. An empty value means absent.
std::span<const std::pair<std::string_view, std::string_view>> built_with();

/// Returns the first file of the tree, or missing in it, that differs from the sources of this program; empty if none
/// does. Files of kernels and contracts that the program lacks differ. Files of the same tokens do not, as far as the
/// commit at HEAD of the checkout `root` holds the text that the program was built from.
std::string not_built_from(const falsify::Tree& tree, const std::string& root);
InputError not_built_from_error(const std::string& path);

/// Throws InputError, naming the first file, if a kernel's files in the tree differ so from those of this program.
void expect_built_from(const falsify::Fingerprint& fingerprint, const falsify::Tree& tree, const std::string& root);

}  // namespace assay::cli
