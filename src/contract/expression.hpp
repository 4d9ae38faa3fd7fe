// Just enough of C++ expressions to split a clause into its conditions and a condition into its sides.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::contract {

/// Why the text cannot be one expression (an open bracket or quote, a `;`, a comment), or nothing.
std::optional<std::string> malformed(std::string_view expression);

/// The operands of `&&` outside all brackets, trimmed; the whole text where there is none, or where a
/// weaker operator (`||`, `?`, `,`, `=`) stands beside them.
std::vector<std::string> conjuncts(std::string_view expression);

struct Comparison {
  std::string left;
  std::string right;
};
/// The sides of the one comparison outside all brackets, where nothing that binds weaker is beside it.
std::optional<Comparison> comparison(std::string_view expression);

/// Names used, each once, without members (`a.size` gives `a`), qualified names or literals.
std::vector<std::string> identifiers(std::string_view expression);

/// The name is used.
bool mentions(std::string_view expression, std::string_view name);

/// An element of the tensor is used: `y(i, j)`. Shapes, strides and sizes are none.
bool reads_element(std::string_view expression, std::string_view tensor);

/// Parts of a text separated by commas outside all brackets, trimmed.
std::vector<std::string> separated(std::string_view text);

/// The value of an expression of whole numbers, names, + - * / % and brackets; nothing where it is another, divides by 0, leaves
/// 64 bits, or where `value_of` has none for a name.
std::optional<std::int64_t> evaluated(std::string_view expression,
                                      const std::function<std::optional<std::int64_t>(std::string_view)>& value_of);

std::string without_spaces(std::string_view text);

/// True for a name a contract may give to a dim, param or tensor: a lower-case C++ identifier that is
/// neither a keyword nor one that generated code needs.
bool usable_name(std::string_view name);

}  // namespace assay::contract
