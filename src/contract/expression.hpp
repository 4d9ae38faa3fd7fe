// A parser for the subset of C++ expressions needed to split a clause into conditions and a condition into its sides.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::contract {

/// Returns why the text cannot be one expression (an open bracket or quote, a `;`, a comment); empty if it can.
std::optional<std::string> malformed(std::string_view expression);

/// Returns the operands of `&&` outside all brackets, trimmed. Returns the whole text if there is no `&&` or if an
/// operator of lower precedence (`||`, `?`, `,`, `=`) occurs outside brackets.
std::vector<std::string> conjuncts(std::string_view expression);

struct Comparison {
  std::string left;
  std::string right;
};
/// Returns the sides of the only comparison outside all brackets, if no operator of lower precedence occurs there.
std::optional<Comparison> comparison(std::string_view expression);

/// Returns the names used, each once, without members (`a.size` gives `a`), qualified names or literals.
std::vector<std::string> identifiers(std::string_view expression);

/// Returns whether the name is used.
bool mentions(std::string_view expression, std::string_view name);

/// Returns whether an element of the tensor is used: `y(i, j)`. Shapes, strides and sizes do not count.
bool reads_element(std::string_view expression, std::string_view tensor);

/// Returns the parts of a text separated by commas outside all brackets, trimmed.
std::vector<std::string> separated(std::string_view text);

/// Returns the value of an expression of whole numbers, names, + - * / % and brackets. Empty for other expressions,
/// division by 0, overflow of 64 bits, or a name for which `value_of` returns nothing.
std::optional<std::int64_t> evaluated(std::string_view expression,
                                      const std::function<std::optional<std::int64_t>(std::string_view)>& value_of);

std::string without_spaces(std::string_view text);

/// Returns whether a contract may use this name for a dim, param or tensor: a lower-case C++ identifier that is neither
/// a keyword nor used by generated code.
bool usable_name(std::string_view name);

}  // namespace assay::contract
