#include "contract/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace assay::contract {
namespace {

enum class Kind { word, literal, symbol };

struct Token {
  Kind kind = Kind::symbol;
  std::string_view text;
  std::size_t begin = 0;
  int depth = 0;  ///< depth of nested brackets around the token
};

struct Scan {
  std::vector<Token> tokens;
  std::optional<std::string> fault;
};

bool word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// Returns the length of the longest operator at the front of the text.
std::size_t symbol_length(std::string_view rest) {
  static constexpr std::array<std::string_view, 21> kLong = {
      "<=>", "<<=", ">>=", "&&", "||", "==", "!=", "<=", ">=", "->", "::",
      "<<",  ">>",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^="};
  for (std::string_view symbol : kLong)
    if (rest.starts_with(symbol)) return symbol.size();
  return 1;
}

std::size_t literal_length(std::string_view rest) {
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '\\') ++i;
    else if (rest[i] == rest[0]) return i + 1;
  }
  return 0;
}

Scan scan(std::string_view text) {
  Scan result;
  std::string open;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == ' ' || c == '\t') {
      ++i;
      continue;
    }
    Token token{Kind::symbol, {}, i, static_cast<int>(open.size())};
    std::size_t length = 1;
    if (word_character(c)) {
      while (i + length < text.size() && (word_character(text[i + length]) || text[i + length] == '\'')) ++length;
      token.kind = c >= '0' && c <= '9' ? Kind::literal : Kind::word;
    } else if (c == '"' || c == '\'') {
      length = literal_length(text.substr(i));
      token.kind = Kind::literal;
      if (length == 0) return {{}, "a quote is not closed"};
    } else if (text.substr(i).starts_with("//") || text.substr(i).starts_with("/*")) {
      return {{}, "it holds a comment"};
    } else if (c == ';' || c == '#' || c == '\\') {
      return {{}, std::string("it holds '") + c + "'"};
    } else if (c == '(' || c == '[' || c == '{') {
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) return {{}, std::string("'") + c + "' closes nothing"};
      open.pop_back();
      token.depth = static_cast<int>(open.size());
    } else {
      length = symbol_length(text.substr(i));
    }
    token.text = text.substr(i, length);
    result.tokens.push_back(token);
    i += length;
  }
  if (!open.empty()) return {{}, std::string("'") + open.back() + "' is missing"};
  if (result.tokens.empty()) result.fault = "it is empty";
  return result;
}

bool outermost(const Token& token, std::initializer_list<std::string_view> symbols) {
  return token.kind == Kind::symbol && token.depth == 0 && std::ranges::find(symbols, token.text) != symbols.end();
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string()
                                         : std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

}  // namespace

std::optional<std::string> malformed(std::string_view expression) { return scan(expression).fault; }

std::vector<std::string> conjuncts(std::string_view expression) {
  const Scan parsed = scan(expression);
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (const Token& token : parsed.tokens) {
    if (outermost(token, {"||", "?", ":", ",", "="})) return {trimmed(expression)};
    if (!outermost(token, {"&&"})) continue;
    parts.push_back(trimmed(expression.substr(begin, token.begin - begin)));
    begin = token.begin + token.text.size();
  }
  parts.push_back(trimmed(expression.substr(begin)));
  return parts;
}

std::optional<Comparison> comparison(std::string_view expression) {
  const Scan parsed = scan(expression);
  const Token* found = nullptr;
  for (const Token& token : parsed.tokens) {
    if (outermost(token, {"&&", "||", "?", ":", ",", "=", "&", "|", "^", "<=>"})) return std::nullopt;
    if (!outermost(token, {"==", "!=", "<", "<=", ">", ">="})) continue;
    if (found != nullptr) return std::nullopt;
    found = &token;
  }
  if (found == nullptr) return std::nullopt;
  Comparison sides{trimmed(expression.substr(0, found->begin)),
                   trimmed(expression.substr(found->begin + found->text.size()))};
  if (sides.left.empty() || sides.right.empty()) return std::nullopt;
  return sides;
}

std::vector<std::string> identifiers(std::string_view expression) {
  const Scan parsed = scan(expression);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parsed.tokens.size(); ++i) {
    const Token& token = parsed.tokens[i];
    if (token.kind != Kind::word) continue;
    const std::string_view before = i > 0 ? parsed.tokens[i - 1].text : std::string_view();
    const std::string_view after = i + 1 < parsed.tokens.size() ? parsed.tokens[i + 1].text : std::string_view();
    if (before == "." || before == "->" || before == "::" || after == "::") continue;
    if (std::ranges::find(names, token.text) == names.end()) names.emplace_back(token.text);
  }
  return names;
}

bool mentions(std::string_view expression, std::string_view name) {
  return std::ranges::count(identifiers(expression), name) > 0;
}

bool reads_element(std::string_view expression, std::string_view tensor) {
  const Scan parsed = scan(expression);
  for (std::size_t i = 0; i + 1 < parsed.tokens.size(); ++i)
    if (parsed.tokens[i].text == tensor && parsed.tokens[i + 1].text == "(" &&
        (i == 0 || parsed.tokens[i - 1].text != "."))
      return true;
  return false;
}

std::vector<std::string> separated(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth == 0) parts.emplace_back();
    else if (c != ' ' || !parts.back().empty()) parts.back() += c;
  }
  for (std::string& part : parts) part.erase(part.find_last_not_of(' ') + 1);
  return parts;
}

namespace {

using Value = std::optional<std::int64_t>;

/// Recursive descent over the tokens of one expression.
class Evaluation {
 public:
  Evaluation(const std::vector<Token>& tokens, const std::function<Value(std::string_view)>& value_of)
      : tokens_(tokens), value_of_(value_of) {}

  Value whole() {
    const Value value = sum();
    return at_ == tokens_.size() ? value : std::nullopt;
  }

 private:
  std::string_view next() const { return at_ < tokens_.size() ? tokens_[at_].text : std::string_view(); }

  static Value applied(std::string_view sign, std::int64_t x, std::int64_t y) {
    std::int64_t result = 0;
    const bool left_range = sign == "+"   ? __builtin_add_overflow(x, y, &result)
                            : sign == "-" ? __builtin_sub_overflow(x, y, &result)
                            : sign == "*" ? __builtin_mul_overflow(x, y, &result)
                                          : y == 0;
    if (left_range) return std::nullopt;
    return sign == "/" ? x / y : sign == "%" ? x % y : result;
  }

  Value chain(Value (Evaluation::*operand)(), std::string_view signs) {
    Value value = (this->*operand)();
    while (value && next().size() == 1 && signs.find(next()) != std::string_view::npos) {
      const std::string_view sign = tokens_[at_++].text;
      const Value right = (this->*operand)();
      value = right ? applied(sign, *value, *right) : std::nullopt;
    }
    return value;
  }
  Value sum() { return chain(&Evaluation::product, "+-"); }
  Value product() { return chain(&Evaluation::factor, "*/%"); }

  Value factor() {
    if (at_ == tokens_.size()) return std::nullopt;
    const Token& token = tokens_[at_++];
    if (token.kind == Kind::word) return value_of_(token.text);
    if (token.kind == Kind::literal) {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), number);
      return error == std::errc() && end == token.text.data() + token.text.size() ? Value(number) : std::nullopt;
    }
    if (token.text != "(") return std::nullopt;
    const Value inner = sum();
    if (next() != ")") return std::nullopt;
    ++at_;
    return inner;
  }

  const std::vector<Token>& tokens_;
  const std::function<Value(std::string_view)>& value_of_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> evaluated(std::string_view expression,
                                      const std::function<Value(std::string_view)>& value_of) {
  const Scan parsed = scan(expression);
  return parsed.fault ? std::nullopt : Evaluation(parsed.tokens, value_of).whole();
}

std::string without_spaces(std::string_view text) {
  std::string dense(text);
  std::erase(dense, ' ');
  return dense;
}

bool usable_name(std::string_view name) {
  static constexpr std::string_view kTaken =
      " alignas alignof and and_eq asm assay auto bitand bitor bool break case catch char class co_await "
      "co_return co_yield compl concept const const_cast consteval constexpr constinit continue contract "
      "decltype default delete do double dynamic_cast else enum explicit export extern false float for "
      "friend goto if inline int kernels long mutable namespace new noexcept not not_eq nullptr operator "
      "ops or or_eq pack private protected public reference register reinterpret_cast requires return "
      "short signed sizeof static static_assert static_cast std struct switch template this thread_local "
      "throw true try typedef typeid typename union unpack unsigned using virtual void volatile while xor "
      "xor_eq ";
  if (name.empty() || name.front() < 'a' || name.front() > 'z' || name.back() == '_') return false;
  if (name.find("__") != std::string_view::npos) return false;
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return std::ranges::all_of(name, allowed) && kTaken.find(fmt::format(" {} ", name)) == std::string_view::npos;
}

}  // namespace assay::contract
