// Properties of characters, by the tables of Unicode 14.0 (UnicodeData.txt).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay::program {

/// General categories L and N, and the property White_Space: \p{L}, \p{N} and \s of regular expressions.
bool is_letter(char32_t c);
bool is_number(char32_t c);
bool is_space(char32_t c);

/// Characters of valid UTF-8.
std::u32string characters(std::string_view utf8);

/// Returns the first character that normalization form C might change, by its quick check (Unicode annex 15, section 9):
/// a text without one is in that form.
std::optional<char32_t> unstable_in_nfc(std::u32string_view text);

}  // namespace assay::program
