// The sum of a reference: one name for every number type, so that a type can treat sums differently from single
// additions, as Bounded does (bounded.hpp).
#pragma once

namespace assay {

/// Adds terms from first to last, starting from zero: `Sum<T> s; s += term; s.value()`.
template <class T>
class Sum {
 public:
  Sum& operator+=(const T& term) {
    total_ = total_ + term;
    return *this;
  }
  /// Appends the terms of another sum.
  Sum& operator+=(const Sum& other) { return *this += other.total_; }
  T value() const { return total_; }

 private:
  T total_{};
};

}  // namespace assay
