// Finds the place of a kernel in its source file.
#pragma once

#include <string>
#include <string_view>

namespace assay::falsify {

struct SourceLocation {
  std::string file;  ///< relative to the top of the repository if the kernel's is
  int line = 1;
};

/// Returns the line of `source` on which the kernel `id` (op/backend/algorithm) is registered, or else its function
/// begins; 1 if neither is found or the file is missing. If `source` is a folder, the file in it that registers the
/// kernel. A relative path is resolved against the working directory and the program's own folder and its parents, so
/// that it is found inside a checkout.
SourceLocation find_source_location(std::string_view source, std::string_view id);

/// Returns the line in the text of a file.
int line_of(std::string_view text, std::string_view id);

}  // namespace assay::falsify
