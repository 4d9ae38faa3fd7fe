// Text of a generated C++ file with correct source positions: code from a YAML file is reported at its line there, all
// other code at its line in the generated file.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace assay::contractgen {

class Source {
 public:
  /// `path` is relative to the generated folder; `yaml` is the contract that the file is generated from.
  Source(std::string path, std::string yaml);

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    append(fmt::format(format, std::forward<Args>(args)...));
  }
  void blank() { append(""); }
  /// Adds a statement whose reported position is this line of the contract.
  void from_yaml(int yaml_line, std::string_view statement);

  const std::string& path() const { return path_; }
  const std::string& text() const { return text_; }

 private:
  void append(std::string_view text);

  std::string path_;
  std::string yaml_;
  std::string text_;
  int lines_ = 0;
};

/// Returns a C++ string literal.
std::string string_literal(std::string_view text);
/// Converts "matmul_nt" to "MatmulNt".
std::string pascal_case(std::string_view name);
/// Converts "MM-PRE-001" to "mm_pre_001".
std::string function_name(std::string_view id);

}  // namespace assay::contractgen
