// Numbers and conditions of shims and maps: "(rows + 63) / 64", "elements(y)", "scale == 1 / sqrt(d)", "k in [8, 16]".
//
// Numbers: dims, params, + - * / % and brackets; sqrt(x), min(x, y), max(x, y); elements(y), bytes(y) and
// stride(y, axis) of a tensor of the call. Whole numbers divide as in C; a param, a number with a point and sqrt are
// real. Conditions: comparisons (also 1 <= d <= 64), `x in [64, 128]`, `and`, `or`, `not` and brackets.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/descriptor.hpp"

namespace assay::contract {
class Node;
}

namespace assay::plugin {

/// Values that expressions refer to. Without tensors, functions of tensors give 0.
struct Scope {
  std::span<const Index> dims;
  std::span<const double> params;
  std::span<const Tensor> tensors{};
};
inline Scope scope_of(const Call& call) { return {call.dims, call.params, call.tensors}; }

struct Expression {
  std::function<double(const Scope&)> value;  ///< NaN for a division by 0
  std::string text;
  bool whole = true;  ///< all its values are whole numbers
  bool reads_tensors = false;
};

struct Condition {
  std::function<bool(const Scope&)> holds;
  std::string text;
  std::vector<int> dims, params;    ///< dims and params it mentions
  std::vector<Expression> numbers;  ///< numbers it compares or lists: candidates where it may begin to hold
  bool lists = false;               ///< contains a list of values
};

/// Parses the node's text. Throws InputError at its position if it is not a `what`.
Expression read_expression(const OpDescriptor& op, const contract::Node& node, std::string_view what = "number");
Condition read_condition(const OpDescriptor& op, const contract::Node& node);

}  // namespace assay::plugin
