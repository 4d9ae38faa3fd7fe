// Numbers that record how they are computed: the derivatives of one result by every operand in one pass backwards.
// Source: Linnainmaa, Taylor expansion of the accumulated rounding error, BIT 16 (1976).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace assay::falsify {

class Traced {
 public:
  using Real = long double;

  Traced() = default;
  Traced(Real constant) : value_(constant) {}  // NOLINT(google-explicit-constructor): constants mix in
  /// A number to differentiate by, at this place of derivatives().
  static Traced operand(Real value) { return {value, {}, 0, {}, 0, true}; }

  Real value() const { return value_; }
  std::size_t place() const { return static_cast<std::size_t>(node_); }

  friend Traced operator+(const Traced& x, const Traced& y) { return {x.value_ + y.value_, x, 1, y, 1}; }
  friend Traced operator-(const Traced& x, const Traced& y) { return {x.value_ - y.value_, x, 1, y, -1}; }
  friend Traced operator-(const Traced& x) { return {-x.value_, x, -1, {}, 0}; }
  friend Traced operator*(const Traced& x, const Traced& y) { return {x.value_ * y.value_, x, y.value_, y, x.value_}; }
  friend Traced operator/(const Traced& x, const Traced& y) {
    const Real quotient = x.value_ / y.value_;
    return {quotient, x, 1 / y.value_, y, -quotient / y.value_};
  }
  friend Traced sqrt(const Traced& x) {
    const Real root = std::sqrt(x.value_);
    return {root, x, 1 / (2 * root), {}, 0};
  }
  friend Traced exp(const Traced& x) {
    const Real power = std::exp(x.value_);
    return {power, x, power, {}, 0};
  }
  friend Traced log(const Traced& x) { return {std::log(x.value_), x, 1 / x.value_, {}, 0}; }

  /// The derivatives of a result by everything before it. Forgets all numbers of this thread.
  static std::vector<Real> derivatives(const Traced& result) {
    std::vector<Real> all(tape_.size());
    if (result.node_ >= 0) all[result.place()] = 1;
    for (std::size_t n = tape_.size(); n-- > 0;) {
      const Node& node = tape_[n];
      if (node.x >= 0) all[static_cast<std::size_t>(node.x)] += all[n] * node.dx;
      if (node.y >= 0) all[static_cast<std::size_t>(node.y)] += all[n] * node.dy;
    }
    tape_.clear();
    return all;
  }

 private:
  struct Node {
    std::int32_t x, y;
    Real dx, dy;
  };

  Traced(Real value, const Traced& x, Real dx, const Traced& y, Real dy, bool operand = false) : value_(value) {
    if (x.node_ < 0 && y.node_ < 0 && !operand) return;
    node_ = static_cast<std::int32_t>(tape_.size());
    tape_.push_back({x.node_, y.node_, dx, dy});
  }

  static inline thread_local std::vector<Node> tape_;
  Real value_ = 0;
  std::int32_t node_ = -1;  ///< a constant has none
};

}  // namespace assay::falsify
