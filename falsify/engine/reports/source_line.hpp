// Where a kernel stands in its file.
#pragma once

#include <string_view>

namespace assay::falsify {

/// The line of `source` on which the kernel `id` (op/backend/algorithm) is registered, or else its function begins; 1 where the
/// file says neither or is not here. A relative path is looked up from the working directory and from the program's own
/// folder upwards, so that it is found inside a checkout.
int source_line(std::string_view source, std::string_view id);

/// As above, in the text of a file.
int line_of(std::string_view text, std::string_view id);

}  // namespace assay::falsify
