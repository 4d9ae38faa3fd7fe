// Where a kernel stands in its file.
#pragma once

#include <string>
#include <string_view>

namespace assay::falsify {

struct SourcePlace {
  std::string file;  ///< relative to the top of the repository, where the kernel's is
  int line = 1;
};

/// The line of `source` on which the kernel `id` (op/backend/algorithm) is registered, or else its function begins; 1 where the
/// file says neither or is not here. Where `source` is a folder, the file in it that registers the kernel. A relative path is
/// looked up from the working directory and from the program's own folder upwards, so that it is found inside a checkout.
SourcePlace source_place(std::string_view source, std::string_view id);

/// The line in the text of a file.
int line_of(std::string_view text, std::string_view id);

}  // namespace assay::falsify
