// What a source says, without how it is written down: tokens of code and of CMake, YAML and JSON as loaded. Comments
// and the space between tokens are no part of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::falsify {

struct Token {
  enum class Kind {
    plain,      ///< identifiers, numbers, operators
    string,     ///< a string literal with its prefix, quotes and suffix; in CMake a quoted or bracket argument
    header,     ///< what an #include names, with its quotes or brackets
    directive,  ///< the # or %: that begins one
    end         ///< of a directive
  };
  Kind kind = Kind::plain;
  std::string text;
  int line = 1;
  bool first = false;  ///< on its line
};

/// Tokens of C++, CUDA or GLSL, by the longest match. A backslash joins lines; raw strings keep their bytes.
std::vector<Token> code_tokens(std::string_view text);

/// Why a compiler may see other tokens in this text than code_tokens() does; empty: it cannot.
std::string misleading(std::string_view text);

/// The value of adjacent string literals, from `at` on, which is moved behind the last.
std::string joined_value(const std::vector<Token>& tokens, std::size_t& at);

/// Words, arguments and parentheses of CMake.
std::vector<Token> cmake_tokens(std::string_view text);

/// Python without comments, empty lines and space at the ends of lines.
std::string python_text(std::string_view text);

/// YAML as loaded: keys in any order, scalars as written. Without what explains: `summary` and `sources` of the
/// document, `says` anywhere. Maps of names keep all of them, and dims, params, tensors, gradients and shapes keep
/// their order: arguments and draws have it.
std::string yaml_text(const std::string& text);

/// JSON as loaded.
std::string json_text(const std::string& text);

}  // namespace assay::falsify
