// Files named by the user: read whole, and written whole or not at all. Each error is an InputError that names the
// file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay::files {

/// Throws unless `path` is a regular file: reading a pipe would block, and a device may never end.
void expect_regular(const std::filesystem::path& path, const std::string& remedy);

/// Returns the bytes of a regular file.
std::string read(const std::filesystem::path& path, const std::string& remedy);

/// Replaces `path` atomically by way of a temporary file in the same folder, and creates missing folders. On any error,
/// such as a full disk, `path` stays unchanged.
void write(const std::filesystem::path& path, std::string_view text);

}  // namespace assay::files
