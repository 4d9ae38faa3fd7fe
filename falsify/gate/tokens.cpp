#include "falsify/gate/tokens.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>

namespace assay::falsify {
namespace {

using namespace std::string_view_literals;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '\0'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// Longest first. CUDA's launch brackets are tokens.
constexpr std::array kOperators = {"%:%:"sv, "->*"sv, "..."sv, "<<<"sv, "<<="sv, "<=>"sv, ">>="sv, ">>>"sv, "!="sv,
                                   "##"sv,   "%:"sv,  "%="sv,  "%>"sv,  "&&"sv,  "&="sv,  "*="sv,  "++"sv,  "+="sv,
                                   "--"sv,   "-="sv,  "->"sv,  ".*"sv,  "/="sv,  "::"sv,  ":>"sv,  "<%"sv,  "<:"sv,
                                   "<<"sv,   "<="sv,  "=="sv,  ">="sv,  ">>"sv,  "^="sv,  "|="sv,  "||"sv};

/// The text with continued lines joined, and the original position of each character.
class SplicedText {
 public:
  explicit SplicedText(std::string_view raw) : raw_(raw) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    for (std::size_t i = raw.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; i < raw.size(); ++i) {
      if (raw[i] == '\\') {
        const std::size_t end = i + (raw.substr(i).starts_with("\\\r") ? 2 : 1);
        if (end < raw.size() && raw[end] == '\n') {
          i = end;
          continue;
        }
      }
      text.push_back(raw[i]);
      places_.push_back(static_cast<std::uint32_t>(i));
    }
  }

  char at(std::size_t i) const { return i < text.size() ? text[i] : '\n'; }

  /// Returns the line of a character; call it in increasing order.
  int line(std::size_t i) {
    const std::size_t place = i < places_.size() ? places_[i] : raw_.size();
    for (; counted_ < place; ++counted_) line_ += raw_[counted_] == '\n';
    return line_;
  }

  /// Takes a raw string whose opening quote is at `i`, and moves `i` behind the string.
  std::string raw_string(std::size_t& i) {
    const std::size_t begin = places_[i], open = raw_.find('(', begin);
    const std::string close = fmt::format("){}\"", raw_.substr(begin + 1, open == raw_.npos ? 0 : open - begin - 1));
    const std::size_t found = open == raw_.npos ? raw_.npos : raw_.find(close, open);
    const std::size_t end = found == raw_.npos ? raw_.size() : found + close.size();
    i = static_cast<std::size_t>(std::ranges::lower_bound(places_, end) - places_.begin());
    return std::string(raw_.substr(begin, end - begin));
  }

  std::string text;

 private:
  std::string_view raw_;
  std::vector<std::uint32_t> places_;
  std::size_t counted_ = 0;
  int line_ = 1;
};

class Lexer {
 public:
  explicit Lexer(std::string_view raw) : joined_(raw), text_(joined_.text) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        end_line();
        ++at_;
      } else if (is_blank(c)) {
        ++at_;
      } else if (text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.compare(at_, 2, "/*") == 0) {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string::npos ? text_.size() : end + 2;
      } else {
        const bool first = first_;
        first_ = false;
        Token token = next(first);
        token.line = joined_.line(begin_);
        token.first = first;
        tokens_.push_back(std::move(token));
      }
    }
    end_line();
    return std::move(tokens_);
  }

 private:
  using Kind = Token::Kind;

  void end_line() {
    if (in_directive_) tokens_.push_back({Kind::end, "\n", joined_.line(at_), false});
    in_directive_ = false;
    first_ = true;
  }

  Token next(bool first) {
    begin_ = at_;
    const char c = text_[at_];
    if (first && (c == '#' || text_.compare(at_, 2, "%:") == 0)) {
      in_directive_ = true;
      at_ += c == '#' ? 1 : 2;
      return {Kind::directive, text_.substr(begin_, at_ - begin_)};
    }
    if ((c == '"' || c == '<') && names_header()) {
      const std::size_t end = text_.find_first_of(c == '"' ? "\"\n" : ">\n", at_ + 1);
      if (end != std::string::npos && text_[end] != '\n') {
        at_ = end + 1;
        return {Kind::header, text_.substr(begin_, at_ - begin_)};
      }
    }
    if (is_digit(c) || (c == '.' && is_digit(joined_.at(at_ + 1)))) return number();
    if (is_word(c)) return word();
    if (c == '"' || c == '\'') return literal(false);
    return {Kind::plain, text_.substr(begin_, take_operator())};
  }

  bool previous_is(std::size_t back, std::initializer_list<std::string_view> texts) const {
    return tokens_.size() >= back && std::ranges::find(texts, tokens_[tokens_.size() - back].text) != texts.end();
  }

  bool names_header() const {
    if (previous_is(1, {"("}) && previous_is(2, {"__has_include", "__has_include_next", "__has_embed"})) return true;
    return previous_is(1, {"include", "include_next", "import", "embed"}) && tokens_.size() >= 2 &&
           tokens_[tokens_.size() - 2].kind == Kind::directive;
  }

  Token number() {
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_], before = text_[at_ - 1];
      if (is_word(c) || c == '.') continue;
      if ((c == '+' || c == '-') && "eEpP"sv.find(before) != std::string_view::npos) continue;
      if (c == '\'' && is_word(joined_.at(at_ + 1)) && is_word(before)) continue;
      break;
    }
    return {Kind::plain, text_.substr(begin_, at_ - begin_)};
  }

  Token word() {
    while (is_word(joined_.at(at_))) ++at_;
    const std::string_view name = std::string_view(text_).substr(begin_, at_ - begin_);
    const char behind = joined_.at(at_);
    constexpr std::array kPrefixes = {"L"sv, "u"sv, "U"sv, "u8"sv};
    constexpr std::array kRaw = {"R"sv, "LR"sv, "uR"sv, "UR"sv, "u8R"sv};
    if (behind == '"' && std::ranges::find(kRaw, name) != kRaw.end()) return literal(true);
    if ((behind == '"' || behind == '\'') && std::ranges::find(kPrefixes, name) != kPrefixes.end())
      return literal(false);
    // White space decides whether a macro takes arguments.
    if (behind == '(' && previous_is(1, {"define"}) && tokens_.size() >= 2 &&
        tokens_[tokens_.size() - 2].kind == Kind::directive)
      ++at_;
    return {Kind::plain, text_.substr(begin_, at_ - begin_)};
  }

  /// Takes the rest of a literal, from its quote on, and its suffix.
  Token literal(bool raw) {
    const Kind kind = text_[at_] == '"' ? Kind::string : Kind::plain;
    std::string taken = text_.substr(begin_, at_ - begin_);
    if (raw) {
      taken += joined_.raw_string(at_);
    } else {
      const std::size_t open = at_;
      for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
        if (text_[at_] == text_[open]) break;
        if (text_[at_] == '\\' && joined_.at(at_ + 1) != '\n') ++at_;
      }
      if (joined_.at(at_) != '\n') ++at_;  // an unclosed literal ends with its line
      taken += text_.substr(open, at_ - open);
    }
    while (is_word(joined_.at(at_))) taken += text_[at_++];
    return {kind, std::move(taken)};
  }

  std::size_t take_operator() {
    const std::string_view rest = std::string_view(text_).substr(at_);
    std::size_t length = 1;
    for (const std::string_view symbol : kOperators)
      if (rest[0] == symbol[0] && rest.starts_with(symbol)) {  // the first alone decides nearly always
        length = symbol.size();
        break;
      }
    // [lex.pptoken]: <:: is < and ::, but before : and >.
    if (rest.starts_with("<::") && joined_.at(at_ + 3) != ':' && joined_.at(at_ + 3) != '>') length = 1;
    at_ += length;
    return length;
  }

  SplicedText joined_;
  const std::string& text_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0, begin_ = 0;
  bool first_ = true, in_directive_ = false;
};

/// Returns the value of a string literal, with simple, octal and hexadecimal escapes resolved.
std::string value_of(const std::string& literal) {
  const std::size_t open = literal.find('"');
  if (open == std::string::npos) return literal;
  if (open > 0 && literal[open - 1] == 'R') {
    const std::size_t begin = literal.find('('), end = literal.rfind(')');
    return begin == std::string::npos || end <= begin ? literal : literal.substr(begin + 1, end - begin - 1);
  }
  const std::size_t close = literal.rfind('"');
  std::string value;
  for (std::size_t i = open + 1; i < (close > open ? close : literal.size()); ++i) {
    if (literal[i] != '\\' || i + 1 >= literal.size()) {
      value += literal[i];
      continue;
    }
    const bool hex = literal[i + 1] == 'x';
    const std::size_t digits = i + (hex ? 2 : 1);
    std::size_t end = digits;
    const auto belongs = [&](char c) {
      return hex ? is_digit(c) || "abcdefABCDEF"sv.find(c) != std::string_view::npos : c >= '0' && c <= '7';
    };
    while (end < literal.size() && belongs(literal[end]) && (hex || end < digits + 3)) ++end;
    if (end == digits) {
      value += literal[++i];
    } else {
      value += static_cast<char>(
          std::stoul("0" + literal.substr(digits, std::min<std::size_t>(end - digits, 6)), nullptr, hex ? 16 : 8));
      i = end - 1;
    }
  }
  return value;
}

/// Keys of maps from arbitrary names; keys with significant order come first.
constexpr std::array kNames = {"dims"sv, "params"sv, "tensors"sv, "gradients"sv, "shapes"sv,  "equations"sv,
                               "pins"sv, "dim"sv,    "param"sv,   "shape"sv,     "strides"sv, "value"sv};
constexpr std::size_t kOrdered = 5;

void append(std::string& out, std::string_view piece) {
  out.append(std::to_string(piece.size())).append(1, ':').append(piece);
}

/// Returns the canonical text of the node under a key; the document's key is empty.
std::string loaded(const YAML::Node& node, std::string_view under, bool named = false) {
  std::string out;
  if (node.IsScalar()) {
    append(out += 's', node.Scalar());
  } else if (node.IsSequence()) {
    out += '[';
    for (const auto& item : node) append(out, loaded(item, "an item"));
  } else if (node.IsMap()) {
    const auto at = named ? kNames.end() : std::ranges::find(kNames, under);
    std::vector<std::string> entries;
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (at == kNames.end() && (key == "says" || (under.empty() && (key == "summary" || key == "sources")))) continue;
      std::string& text = entries.emplace_back();
      append(text, loaded(entry.first, "a key"));
      append(text, loaded(entry.second, key, at != kNames.end()));
    }
    if (at >= kNames.begin() + kOrdered) std::ranges::sort(entries);
    out += '{';
    for (const std::string& entry : entries) append(out, entry);
  } else {
    out += '~';
  }
  return out;
}

}  // namespace

std::vector<Token> code_tokens(std::string_view text) { return Lexer(text).run(); }

std::string token_ambiguity(std::string_view text) {
  for (const std::string_view trigraph : {"\?\?="sv, "\?\?/"sv})
    if (text.find(trigraph) != std::string_view::npos) return fmt::format("the trigraph {}", trigraph);
  for (std::size_t at = text.find('\r'); at != std::string_view::npos; at = text.find('\r', at + 1))
    if (!text.substr(at).starts_with("\r\n")) return "a carriage return that ends no line";
  for (std::size_t at = text.find('\\'); at != std::string_view::npos; at = text.find('\\', at + 1)) {
    const std::size_t end = text.find_first_not_of(" \t\v\f", at + 1);
    if (end != at + 1 && end != std::string_view::npos && (text[end] == '\n' || text[end] == '\r'))
      return "a backslash with space behind it that ends a line";
  }
  return "";
}

std::string joined_value(const std::vector<Token>& tokens, std::size_t& at) {
  std::string value;
  for (; at < tokens.size() && tokens[at].kind == Token::Kind::string; ++at) value += value_of(tokens[at].text);
  return value;
}

std::vector<Token> cmake_tokens(std::string_view text) {
  std::vector<Token> tokens;
  int line = 1;
  const auto take = [&](std::size_t begin, std::size_t end, Token::Kind kind) {
    tokens.push_back({kind, std::string(text.substr(begin, end - begin)), line, false});
    line += static_cast<int>(std::ranges::count(text.substr(begin, end - begin), '\n'));
  };
  /// Returns the end of a bracket argument or comment that begins at `at`; `at` if none does.
  const auto bracket = [&](std::size_t at) {
    std::size_t open = at + 1;
    while (open < text.size() && text[open] == '=') ++open;
    if (at >= text.size() || text[at] != '[' || open >= text.size() || text[open] != '[') return at;
    const std::size_t close = text.find(fmt::format("]{}]", text.substr(at + 1, open - at - 1)), open + 1);
    return close == std::string_view::npos ? text.size() : close + (open - at) + 1;
  };
  const auto quoted = [&](std::size_t at) {
    for (++at; at < text.size() && text[at] != '"'; ++at)
      if (text[at] == '\\') ++at;
    return std::min(at + 1, text.size());
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    std::size_t end = at + 1;
    if (c == '#') {
      end = bracket(at + 1);
      if (end == at + 1) end = std::min(text.find('\n', at), text.size());
      line += static_cast<int>(std::ranges::count(text.substr(at, end - at), '\n'));
    } else if (c == '\n') {
      ++line;
    } else if (c == '(' || c == ')') {
      take(at, end, Token::Kind::plain);
    } else if (c == '"') {
      take(at, end = quoted(at), Token::Kind::string);
    } else if (bracket(at) != at) {
      take(at, end = bracket(at), Token::Kind::string);
    } else if (!is_blank(c)) {
      for (end = at; end < text.size() && !is_blank(text[end]) && "\n()#"sv.find(text[end]) == std::string_view::npos;)
        end = text[end] == '"' ? quoted(end) : text[end] == '\\' ? std::min(end + 2, text.size()) : end + 1;
      take(at, end, Token::Kind::plain);
    }
    at = end;
  }
  return tokens;
}

std::string python_text(std::string_view text) {
  std::string out, line;
  const auto end_line = [&] {
    while (!line.empty() && is_blank(line.back())) line.pop_back();
    if (!line.empty()) out.append(line).append(1, '\n');
    line.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '\n') {
      end_line();
      ++at;
    } else if (c == '"' || c == '\'') {
      const std::string quote(text.substr(at, text.substr(at).starts_with(std::string(3, c)) ? 3 : 1));
      std::size_t end = at + quote.size();
      while (end < text.size() && !text.substr(end).starts_with(quote)) end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + quote.size(), text.size());
      line.append(text.substr(at, end - at));
      at = end;
    } else {
      line += c;
      ++at;
    }
  }
  end_line();
  return out;
}

std::string yaml_text(const std::string& text) {
  try {
    std::string out;
    for (const YAML::Node& document : YAML::LoadAll(text)) append(out, loaded(document, ""));
    return out;
  } catch (const YAML::Exception&) {
    return text;
  }
}

std::string json_text(const std::string& text) {
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  return document.is_discarded() ? text : document.dump();
}

}  // namespace assay::falsify
