// What the expressions of contracts are made of, and how their values are worded in violations.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/view.hpp"

namespace assay::contract {

/// A clause must be a bool: a number in its place is a mistake, caught at the contract's own line.
constexpr bool truth(std::same_as<bool> auto holds) { return holds; }

/// False only for a tensor of at least one element that has no memory.
template <class T>
constexpr bool has_address(const View<T>& v) {
  return v.data() != nullptr || v.size() == 0;
}

/// True where each index of the tensor reaches memory of its own: no broadcast, no stride too small.
template <class T>
bool distinct(const View<T>& v) {
  return !self_overlap(v.shape(), v.strides());
}

template <class T>
requires std::is_arithmetic_v<T> std::string show(T value) {
  if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
  else return std::to_string(value);
}
inline std::string show(const Shape& shape) { return to_string(shape); }
template <class T>
std::string show(const View<T>& v) {
  if (v.data() == nullptr) return to_string(v.shape()) + " at no address";
  return to_string(v.shape()) + (v.contiguous() ? "" : " with strides " + to_string(v.strides()));
}

/// "a.len() = 3, m*k = 4" from names and values in turn.
inline std::string values() { return {}; }
template <class T, class... Rest>
std::string values(std::string_view name, const T& value, const Rest&... rest) {
  const std::string tail = values(rest...);
  return std::string(name) + " = " + show(value) + (tail.empty() ? "" : ", " + tail);
}

}  // namespace assay::contract
