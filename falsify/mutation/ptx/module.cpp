#include "falsify/mutation/ptx/module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/errors.hpp"

namespace assay::falsify::ptx {
namespace {

constexpr const char* kNotNvcc = "this is not what nvcc writes";

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%'; }

/// Returns the position after white space and comments from `at` on.
std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (is_space(text[at])) ++at;
    else if (text.substr(at, 2) == "//") at = std::min(text.find('\n', at), text.size());
    else if (text.substr(at, 2) == "/*") at = std::min(text.find("*/", at), text.size() - 2) + 2;
    else break;
  }
  return at;
}

/// Returns the first of `ends` from `at` on outside of comments, strings and brackets other than `ends`.
std::size_t find_end(std::string_view text, std::size_t at, std::string_view ends) {
  int depth = 0;
  while ((at = skip_space(text, at)) < text.size()) {
    const char c = text[at];
    if (depth == 0 && ends.find(c) != std::string_view::npos) return at;
    if (c == '"') at = std::min(text.find('"', at + 1), text.size() - 1);
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
    if (depth < 0) break;
    ++at;
  }
  throw InputError("PTX", fmt::format("a statement does not end: {}", text.substr(0, 60)), kNotNvcc);
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

/// Replaces each comment by a space.
std::string without_comments(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = skip_space(text, at);
    plain += next > at ? std::string(1, ' ') : std::string(1, text[at]);
    at = std::max(next, at + 1);
  }
  return plain;
}

std::vector<std::string> split_operands(std::string_view text) {
  std::vector<std::string> operands;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
    if (c != ',' || (depth != 0 && i < text.size())) continue;
    const std::string operand = trimmed(text.substr(begin, i - begin));
    if (!operand.empty()) operands.push_back(operand);
    begin = i + 1;
  }
  return operands;
}

/// Parses a statement without its semicolon.
Instruction parse_instruction(std::string_view given) {
  const std::string text = trimmed(without_comments(given));
  Instruction x;
  std::size_t at = 0;
  const auto word = [&] {
    const std::size_t begin = at;
    while (at < text.size() && !is_space(text[at])) ++at;
    const std::string found = text.substr(begin, at - begin);
    at = skip_space(text, at);
    return found;
  };
  if (text.starts_with('@')) x.guard = word();
  x.op = word();
  x.operands = split_operands(std::string_view(text).substr(at));
  return x;
}

/// Returns the declared name: before its parameters, its extents, its value or its end.
std::string declared_name(std::string_view declaration) {
  const std::string text = without_comments(declaration);
  std::size_t from = 0;
  if (const std::size_t func = text.find(".func"); func != std::string::npos) {
    from = skip_space(text, func + 5);
    if (from < text.size() && text[from] == '(') from = text.find(')', from) + 1;  // skip the return parameters
  }
  std::size_t end = std::min(text.find_first_of("([=;{", from), text.size());
  while (end > from && !is_name(text[end - 1])) --end;
  std::size_t begin = end;
  while (begin > from && is_name(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

/// True for directives that end with their line.
bool is_line(std::string_view text) {
  return text.starts_with(".version") || text.starts_with(".target") || text.starts_with(".address_size") ||
         text.starts_with(".file");
}

/// Returns the item whose own text begins at `begin`.
Item next_item(std::string_view text, std::size_t begin, std::size_t& end) {
  Item item;
  if (is_line(text.substr(begin))) {
    end = std::min(text.find('\n', begin), text.size());
    return item;
  }
  const std::size_t stop = find_end(text, begin, ";{=");
  const std::string_view head = text.substr(begin, stop - begin);
  item.name = declared_name(head);
  item.entry = head.find(".entry") != std::string_view::npos;
  if (text[stop] == '{') {
    item.body = stop - begin;
    end = find_end(text, stop + 1, "}") + 1;
  } else {
    end = (text[stop] == ';' ? stop : find_end(text, stop, ";")) + 1;
  }
  return item;
}

}  // namespace

std::string_view Instruction::base() const { return std::string_view(op).substr(0, op.find('.')); }

std::string_view Instruction::type() const {
  const std::size_t dot = op.rfind('.');
  return dot == std::string::npos ? std::string_view{} : std::string_view(op).substr(dot + 1);
}

std::string Instruction::text() const {
  return fmt::format("{}{}{}{}{};", guard, guard.empty() ? "" : " ", op, operands.empty() ? "" : " ",
                     fmt::join(operands, ", "));
}

std::vector<Statement> statements(std::string_view body) {
  std::vector<Statement> list;
  for (std::size_t at = 0, begin = 0; (begin = skip_space(body, at)) < body.size();) {
    Statement s;
    std::size_t end = begin + 1;
    if (body[begin] == '{' || body[begin] == '}') {
      s.kind = body[begin] == '{' ? Statement::Kind::open : Statement::Kind::close;
    } else {
      std::size_t name = begin;
      while (name < body.size() && is_name(body[name])) ++name;
      const std::size_t behind = skip_space(body, name);
      if (name > begin && behind < body.size() && body[behind] == ':' && body.substr(behind, 2) != "::") {
        s.kind = Statement::Kind::label;
        s.instruction.op = body.substr(begin, name - begin);
        end = behind + 1;
      } else {
        const std::size_t semicolon = find_end(body, begin, ";");
        end = semicolon + 1;
        if (body[begin] != '.') {
          s.kind = Statement::Kind::instruction;
          s.instruction = parse_instruction(body.substr(begin, semicolon - begin));
        }
      }
    }
    s.text = body.substr(at, end - at);
    list.push_back(std::move(s));
    at = end;
  }
  return list;
}

Module::Module(std::string_view text) {
  std::size_t at = 0;
  for (std::size_t begin = 0; (begin = skip_space(text, at)) < text.size();) {
    std::size_t end = 0;
    Item item = next_item(text, begin, end);
    item.text = text.substr(at, end - at);
    item.body = item.body == 0 ? item.text.size() : item.body + begin - at;
    items.push_back(std::move(item));
    at = end;
  }
  if (at < text.size()) items.push_back({std::string(text.substr(at)), "", false, text.size() - at});
}

std::string Module::text() const {
  std::string all;
  for (const Item& item : items) all += item.text;
  return all;
}

std::vector<std::string> dumped(std::string_view output) {
  std::vector<std::string> files;
  std::size_t at = output.starts_with(".version ") ? 0 : output.find("\n.version ");
  while (at < output.size()) {
    const std::size_t next = output.find("\n.version ", at + 1);
    const std::string_view file = output.substr(at, next == std::string_view::npos ? next : next - at);
    files.emplace_back(file.substr(0, file.find("\nFatbin ")));
    at = next;
  }
  return files;
}

std::vector<std::string> registers_in(std::string_view operand) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < operand.size();) {
    std::size_t end = i;
    while (end < operand.size() && is_name(operand[end])) ++end;
    if (end > i && std::isdigit(static_cast<unsigned char>(operand[i])) == 0)
      found.emplace_back(operand.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return found;
}

std::vector<std::string> elements(std::string_view operand) {
  if (!operand.starts_with('{') || !operand.ends_with('}')) return {std::string(operand)};
  return split_operands(operand.substr(1, operand.size() - 2));
}

std::string vector_of(const std::vector<std::string>& elements) {
  return fmt::format("{{{}}}", fmt::join(elements, ", "));
}

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == by) parts.emplace_back();
    else parts.back() += c;
  return parts;
}

}  // namespace assay::falsify::ptx
