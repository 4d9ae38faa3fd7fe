// Content of a source, independent of its layout: tokens of code and of CMake, YAML and JSON as loaded, without
// comments and white space.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::falsify {

struct Token {
  enum class Kind {
    plain,      ///< identifiers, numbers, operators
    string,     ///< a string literal with its prefix, quotes and suffix; in CMake a quoted or bracket argument
    header,     ///< operand of an #include, with its quotes or brackets
    directive,  ///< the # or %: that begins a directive
    end         ///< end of a directive
  };
  Kind kind = Kind::plain;
  std::string text;
  int line = 1;
  bool first = false;  ///< first on its line
};

/// Splits C++, CUDA or GLSL into tokens, by the longest match. A backslash joins lines; raw strings keep their bytes.
std::vector<Token> code_tokens(std::string_view text);

/// Returns the reason why a compiler may see other tokens in this text than code_tokens() does; empty if it cannot.
std::string token_ambiguity(std::string_view text);

/// Returns the value of adjacent string literals from `at` on, and moves `at` behind the last.
std::string joined_value(const std::vector<Token>& tokens, std::size_t& at);

/// Splits CMake into words, arguments and parentheses.
std::vector<Token> cmake_tokens(std::string_view text);

/// Returns Python without comments, empty lines and trailing white space.
std::string python_text(std::string_view text);

/// Returns YAML as loaded: keys in any order, scalars as written, without explanations (`summary` and `sources` of the
/// document, `says` anywhere). Maps of names keep all keys; dims, params, tensors, gradients and shapes keep their
/// order, which arguments and draws depend on.
std::string yaml_text(const std::string& text);

/// Returns JSON as loaded.
std::string json_text(const std::string& text);

}  // namespace assay::falsify
