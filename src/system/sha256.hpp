// SHA-256 (FIPS 180-4), by which files are told apart.
#pragma once

#include <string>
#include <string_view>

namespace assay::falsify {

/// The digest of the text's bytes, as 64 lower-case hexadecimal digits.
std::string sha256(std::string_view text);

}  // namespace assay::falsify
