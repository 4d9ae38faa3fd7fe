#include "plugin/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "contract/reader.hpp"
#include "core/view.hpp"

namespace assay::plugin {
namespace {

using contract::Node;
using Truth = std::function<bool(const Scope&)>;

constexpr std::string_view kCondition = "condition";
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double arithmetic(char sign, double a, double b, bool whole) {
  switch (sign) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return b == 0 ? kNone : whole ? std::trunc(a / b) : a / b;
    default: return b == 0 ? kNone : std::fmod(a, b);
  }
}

/// Returns whether the numbers are equal. Params are floats, so a param equals a real number if it is the nearest
/// float.
bool equal(double a, double b) { return a == b || static_cast<float>(a) == static_cast<float>(b); }

bool compare(std::string_view sign, double a, double b, bool whole) {
  const bool same = whole ? a == b : equal(a, b);
  if (std::isnan(a) || std::isnan(b)) return false;
  if (sign == "==") return same;
  if (sign == "!=") return !same;
  if (sign == "<=") return a < b || same;
  if (sign == ">=") return a > b || same;
  return sign == "<" ? a < b && !same : a > b && !same;
}

/// Recursive descent.
class Reader {
 public:
  Reader(const OpDescriptor& op, const Node& node, std::string_view what)
      : op_(op), node_(node), what_(what), text_(node.text().value) {}

  Expression expression() {
    Expression read = sum();
    if (peek() != '\0') fail();
    read.text = text_;
    return read;
  }

  Condition condition() {
    Condition read;
    read.holds = alternatives();
    if (peek() != '\0' || std::ranges::any_of(numbers_, &Expression::reads_tensors)) fail();
    read.text = text_;
    read.dims = std::move(dims_), read.params = std::move(params_), read.numbers = std::move(numbers_);
    read.lists = lists_;
    return read;
  }

 private:
  [[noreturn]] void fail() const {
    node_.fail(fmt::format("'{}' is no {}", text_, what_),
               what_ == kCondition ? "write comparisons of dims and params, such as k % 8 == 0 or d in [64, 128]"
                                   : "write dims, params and numbers with + - * / % and brackets");
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(std::string_view token) {
    peek();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    const auto in_word = [&](std::size_t i) { return i < text_.size() && (std::isalnum(text_[i]) || text_[i] == '_'); };
    if (std::isalpha(token[0]) && in_word(at_ + token.size())) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail();
  }

  Truth alternatives() {
    Truth left = all();
    while (accept("or") || accept("||")) {
      Truth right = all();
      left = [left, right](const Scope& s) { return left(s) || right(s); };
    }
    return left;
  }
  Truth all() {
    Truth left = one();
    while (accept("and") || accept("&&")) {
      Truth right = one();
      left = [left, right](const Scope& s) { return left(s) && right(s); };
    }
    return left;
  }
  Truth one() {
    if (accept("not")) {
      Truth inner = one();
      return [inner](const Scope& s) { return !inner(s); };
    }
    if (peek() == '(') {  // of a condition or of a number
      const std::size_t begin = at_;
      ++at_;
      int depth = 1;
      bool holds_comparison = false;
      for (std::size_t i = at_; i < text_.size() && depth > 0; ++i) {
        depth += text_[i] == '(' ? 1 : text_[i] == ')' ? -1 : 0;
        holds_comparison = holds_comparison || std::string_view("<>=!").find(text_[i]) != std::string_view::npos ||
                           text_.compare(i, 4, " in ") == 0;
      }
      if (holds_comparison) {
        Truth inner = alternatives();
        expect(")");
        return inner;
      }
      at_ = begin;
    }
    return comparison();
  }

  Truth comparison() {
    Expression left = sum();
    if (accept("in")) return member(left);
    Truth all;
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!accept(sign)) continue;
      Expression right = sum();
      numbers_.push_back(left), numbers_.push_back(right);
      const bool whole = left.whole && right.whole;
      all = [left = left.value, right = right.value, sign, whole](const Scope& s) {
        return compare(sign, left(s), right(s), whole);
      };
      if (std::string_view("<>").find(peek()) == std::string_view::npos || peek() == '\0') return all;
      const std::size_t more = at_;  // a <= b <= c
      for (const char* next : {"<=", ">=", "<", ">"}) {
        if (!accept(next)) continue;
        Expression last = sum();
        numbers_.push_back(last);
        return [all, right = right.value, last = last.value, next, whole = right.whole && last.whole](const Scope& s) {
          return all(s) && compare(next, right(s), last(s), whole);
        };
      }
      at_ = more;
      return all;
    }
    fail();
  }

  /// Parses "[64, 128]" or "(64; 128)", which needs no quotes in a YAML list.
  Truth member(const Expression& of) {
    const bool square = accept("[");
    if (!square) expect("(");
    std::vector<Expression> values;
    do values.push_back(sum());
    while (accept(",") || accept(";"));
    expect(square ? "]" : ")");
    numbers_.insert(numbers_.end(), values.begin(), values.end());
    lists_ = true;
    return [of, values](const Scope& s) {
      return std::ranges::any_of(
          values, [&](const Expression& v) { return compare("==", of.value(s), v.value(s), of.whole && v.whole); });
    };
  }

  Expression binary(char sign, const Expression& left, const Expression& right) {
    const bool whole = left.whole && right.whole;
    return {
        [l = left.value, r = right.value, sign, whole](const Scope& s) { return arithmetic(sign, l(s), r(s), whole); },
        "", whole, left.reads_tensors || right.reads_tensors};
  }
  Expression sum() {
    Expression left = product();
    for (char sign = peek(); sign == '+' || sign == '-'; sign = peek()) {
      ++at_;
      left = binary(sign, left, product());
    }
    return left;
  }
  Expression product() {
    Expression left = factor();
    for (char sign = peek(); sign == '*' || sign == '/' || sign == '%'; sign = peek()) {
      ++at_;
      left = binary(sign, left, factor());
    }
    return left;
  }

  Expression factor() {
    if (accept("-")) return binary('-', constant(0, true), factor());
    if (accept("(")) {
      Expression inner = sum();
      expect(")");
      return inner;
    }
    const char first = peek();
    if (std::isdigit(first)) return number();
    std::size_t end = at_;
    while (end < text_.size() && (std::isalnum(text_[end]) || text_[end] == '_')) ++end;
    const std::string word = text_.substr(at_, end - at_);
    if (word.empty()) fail();
    at_ = end;
    return peek() == '(' ? function(word) : named(word);
  }

  static Expression constant(double value, bool whole) {
    return {[value](const Scope&) { return value; }, "", whole, false};
  }
  Expression number() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail();
    const std::string_view digits(begin, static_cast<std::size_t>(end - begin));
    at_ += digits.size();
    return constant(value, digits.find_first_of(".eE") == digits.npos);
  }

  Expression function(const std::string& word) {
    expect("(");
    if (word == "elements" || word == "bytes" || word == "stride") return of_tensor(word);
    const Expression a = sum();
    Expression made;
    if (word == "sqrt") {
      made = {[a = a.value](const Scope& s) { return std::sqrt(a(s)); }, "", false, a.reads_tensors};
    } else if (word == "min" || word == "max") {
      expect(",");
      const Expression b = sum();
      made = {[a = a.value, b = b.value, least = word == "min"](const Scope& s) {
                return least ? std::min(a(s), b(s)) : std::max(a(s), b(s));
              },
              "", a.whole && b.whole, a.reads_tensors || b.reads_tensors};
    } else {
      node_.fail(fmt::format("'{}' is no function", word),
                 contract::suggestion(word, {"sqrt", "min", "max", "elements", "bytes", "stride"}));
    }
    expect(")");
    return made;
  }

  Expression of_tensor(const std::string& word) {
    std::size_t end = at_;
    while (end < text_.size() && text_[end] != ',' && text_[end] != ')') ++end;
    std::string name = text_.substr(at_, end - at_);
    std::erase(name, ' ');
    at_ = end;
    const auto found = std::ranges::find(op_.tensors, name, &TensorInfo::name);
    if (found == op_.tensors.end())
      node_.fail(fmt::format("'{}' is no tensor of {}", name, op_.name), "give the name of one");
    const auto t = static_cast<std::size_t>(found - op_.tensors.begin());
    int axis = 0;
    if (word == "stride") {
      expect(",");
      const Expression number = sum();
      axis = static_cast<int>(number.value({}));
      const std::vector<Index> ones(op_.dims.size(), 1);
      if (axis < 0 || axis >= found->shape(ones).rank())
        node_.fail(fmt::format("{} has no axis {}", name, axis), "count axes from 0");
    }
    expect(")");
    return {[t, axis, word](const Scope& s) -> double {
              if (t >= s.tensors.size()) return 0;
              const Tensor& tensor = s.tensors[t];
              if (word == "stride") return static_cast<double>(tensor.strides[axis]);
              const double bytes = word == "bytes" ? static_cast<double>(size_of(tensor.dtype)) : 1;
              return static_cast<double>(tensor.shape.size()) * bytes;
            },
            "", true, true};
  }

  Expression named(const std::string& word) {
    const auto dim = std::ranges::find(op_.dims, word, &DimInfo::name);
    if (dim != op_.dims.end()) {
      const auto d = static_cast<std::size_t>(dim - op_.dims.begin());
      note(dims_, static_cast<int>(d));
      return {[d](const Scope& s) { return static_cast<double>(s.dims[d]); }, "", true, false};
    }
    const auto param = std::ranges::find(op_.params, word, &ParamInfo::name);
    if (param != op_.params.end()) {
      const auto p = static_cast<std::size_t>(param - op_.params.begin());
      note(params_, static_cast<int>(p));
      return {[p](const Scope& s) { return s.params[p]; }, "", param->integer, false};
    }
    std::vector<std::string_view> names;
    for (const DimInfo& d : op_.dims) names.push_back(d.name);
    for (const ParamInfo& p : op_.params) names.push_back(p.name);
    node_.fail(fmt::format("'{}' is no dim or param of {}", word, op_.name), contract::suggestion(word, names));
  }
  static void note(std::vector<int>& list, int index) {
    if (std::ranges::find(list, index) == list.end()) list.push_back(index);
  }

  const OpDescriptor& op_;
  const Node& node_;
  std::string_view what_;
  std::string text_;
  std::size_t at_ = 0;
  std::vector<int> dims_, params_;
  std::vector<Expression> numbers_;
  bool lists_ = false;
};

}  // namespace

Expression read_expression(const OpDescriptor& op, const Node& node, std::string_view what) {
  return Reader(op, node, what).expression();
}
Condition read_condition(const OpDescriptor& op, const Node& node) { return Reader(op, node, kCondition).condition(); }

}  // namespace assay::plugin
