// Text of a generated C++ file that keeps the compiler's idea of place right: what comes from a YAML file is
// reported at that file's line, the rest at the generated file's own.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace assay::contractgen {

class Source {
 public:
  /// `path` is the file's path below the generated folder; `yaml` the contract it is made from.
  Source(std::string path, std::string yaml);

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    append(fmt::format(format, std::forward<Args>(args)...));
  }
  void blank() { append(""); }
  /// A statement that the compiler takes to stand at this line of the contract.
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

/// A C++ string literal.
std::string string_literal(std::string_view text);
/// "matmul_nt" -> "MatmulNt"
std::string pascal_case(std::string_view name);
/// "MM-PRE-001" -> "mm_pre_001"
std::string function_name(std::string_view id);

}  // namespace assay::contractgen
