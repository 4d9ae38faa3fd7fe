// Functions used by the expressions of contracts, and the formatting of their values in violations.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/view.hpp"

namespace assay::contract {

/// Returns a clause's value, which must be a bool: a number is a mistake, caught at the contract's own line.
constexpr bool truth(std::same_as<bool> auto holds) { return holds; }

/// Returns false only for a tensor of at least one element without memory.
template <AnyView V>
constexpr bool has_address(const V& v) {
  return v.data() != nullptr || v.size() == 0;
}

/// Returns whether different indices of the tensor reach different memory: no broadcast, no stride too small.
template <AnyView V>
bool distinct(const V& v) {
  return !self_overlap(v.shape(), v.strides());
}

/// Returns whether every element of an index tensor on the host is at least `low` and less than `high`.
template <class T>
bool in_range(const View<T>& v, Index low, Index high) {
  Shape index = v.shape();
  for (int axis = 0; axis < v.rank(); ++axis) index[axis] = 0;
  for (Index n = 0; n < v.size(); ++n) {
    Index offset = 0;
    for (int axis = 0; axis < v.rank(); ++axis) offset += index[axis] * v.stride(axis);
    if (v.data()[offset] < low || v.data()[offset] >= high) return false;
    for (int axis = v.rank() - 1; axis >= 0 && ++index[axis] == v.dim(axis); --axis) index[axis] = 0;
  }
  return true;
}

template <class T>
requires std::is_arithmetic_v<T> std::string show(T value) {
  if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
  else return std::to_string(value);
}
inline std::string show(const Shape& shape) { return to_string(shape); }
template <AnyView V>
std::string show(const V& v) {
  if (v.data() == nullptr) return to_string(v.shape()) + " at no address";
  return to_string(v.shape()) + (v.contiguous() ? "" : " with strides " + to_string(v.strides()));
}

/// Returns "a.len() = 3, m*k = 4" from alternating names and values.
inline std::string values() { return {}; }
template <class T, class... Rest>
std::string values(std::string_view name, const T& value, const Rest&... rest) {
  const std::string tail = values(rest...);
  return std::string(name) + " = " + show(value) + (tail.empty() ? "" : ", " + tail);
}

}  // namespace assay::contract
