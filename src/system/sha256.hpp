// SHA-256 (FIPS 180-4), to identify file contents.
#pragma once

#include <string>
#include <string_view>

namespace assay {

/// Returns the digest of the text's bytes, as 64 lower-case hexadecimal digits.
std::string sha256(std::string_view text);

}  // namespace assay
