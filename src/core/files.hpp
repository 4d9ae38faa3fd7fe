// Files that somebody names: read whole, and written whole or not at all. Each error is an InputError that names the file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay::files {

/// Throws unless `path` is a regular file: a pipe would be waited for, and a device may never end.
void expect_regular(const std::filesystem::path& path, const std::string& remedy);

/// The bytes of a regular file.
std::string read(const std::filesystem::path& path, const std::string& remedy);

/// Writes a temporary file beside `path`, which then takes its place, and makes the folders it is in. Whatever goes wrong,
/// such as a full disk, `path` is as it was.
void write(const std::filesystem::path& path, std::string_view text);

}  // namespace assay::files
