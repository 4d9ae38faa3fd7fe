#include "contractgen/source.hpp"

#include <algorithm>
#include <cctype>

namespace assay::contractgen {

Source::Source(std::string path, std::string yaml) : path_(std::move(path)), yaml_(std::move(yaml)) {
  line("// Generated from {} by contractgen; edit that file instead.", yaml_);
}

void Source::append(std::string_view text) {
  text_ += text;
  text_ += '\n';
  lines_ += 1 + static_cast<int>(std::ranges::count(text, '\n'));
}

void Source::from_yaml(int yaml_line, std::string_view statement) {
  line("#line {} {}", yaml_line, string_literal(yaml_));
  append(statement);
  line("#line {} {}", lines_ + 2, string_literal(path_));
}

std::string string_literal(std::string_view text) {
  std::string literal = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + '"';
}

std::string pascal_case(std::string_view name) {
  std::string result;
  bool upper = true;
  for (char c : name) {
    if (c != '_') result += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return result;
}

std::string function_name(std::string_view id) {
  std::string result;
  for (char c : id) result += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace assay::contractgen
