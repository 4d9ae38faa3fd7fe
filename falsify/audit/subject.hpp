// Subjects of an audit: the sums of an operation whose terms its inputs determine. Each falsify/properties/<op>.cpp
// defines them in `audited()`.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/shape.hpp"

namespace assay::falsify {

struct Problem;

namespace audit {

/// Kind of terms that inputs make.
enum class Terms {
  products,      ///< left times right, signed
  values,        ///< an element of left
  positive,      ///< a nonnegative element of left; the result shows only that the sum has changed
  squares,       ///< the square of an element of left; as `positive`
  exponentials,  ///< exp of an element of left, the largest of which is 0; as `positive`
};

/// Position of term p's factor: element first + p * step of a tensor, dense and in contract order.
struct StridedFactor {
  int tensor = -1;
  Index first = 0, step = 1;
};

/// An element of an output that is a sum of terms, or shows one.
struct Sum {
  std::string_view says;  ///< "c[0,0] over k"
  Terms terms = Terms::values;
  std::vector<Index> dims;  ///< of the call
  Index count = 0;          ///< of terms; 1: no sum, but inputs and results are measured
  StridedFactor left{}, right{};
  StridedFactor second{};            ///< of term 1, if it lies in another tensor than term 0
  int param = -1;                    ///< multiplies term 1 if there is no right tensor
  StridedFactor result{};            ///< `first` is the element
  double scale = 1;                  ///< the result is this times the sum, exactly: plus or minus a power of two
  int lift = 0;                      ///< if the formula is linear, single elements are at least 2^lift
  std::string_view no_subnormals{};  ///< reason why flushing cannot be measured, if it cannot
  void (*background)(Problem& problem) = nullptr;  ///< sets all other inputs, after zero inputs and typical params
};

/// The sums of one operation, and the dims at which its rows are compared alone and within a batch (those of the sums
/// by default); or the reason why there are no sums.
struct Subject {
  std::vector<Sum> sums{};
  std::string_view no_sums{};
  std::vector<Index> dims{};
  std::string_view no_rows{};  ///< reason why rows along the first dim are not independent, if they are not
};

/// Reason for an operation whose properties define no subject.
inline constexpr std::string_view kNotSaid = "its properties define no audited()";

/// The generated table registers itself.
struct OperationSubject {
  std::string_view op;
  Subject (*subject)();
};
struct SubjectsRegistration {
  explicit SubjectsRegistration(std::span<const OperationSubject> table);
};

/// Returns the subject of one operation. Throws InputError if there is no such operation.
Subject subject(std::string_view op);

}  // namespace audit
}  // namespace assay::falsify
