// What an audit probes of an operation: the sums whose terms its inputs decide. Each falsify/properties/<op>.cpp names those of its
// operation in `audited()`.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/shape.hpp"

namespace assay::falsify {

struct Problem;

namespace audit {

/// How inputs make the terms of a sum.
enum class Terms {
  products,      ///< left times right, of either sign
  values,        ///< an element of left
  positive,      ///< an element of left that is not negative; the result shows that the sum has changed, not its value
  squares,       ///< the square of an element of left; likewise
  exponentials,  ///< exp of an element of left, the largest of which is 0; likewise
};

/// Where term p finds a factor: element first + p * step of a tensor, dense and in contract order.
struct Place {
  int tensor = -1;
  Index first = 0, step = 1;
};

/// One element of an output that is a sum of terms, or shows one.
struct Sum {
  std::string_view says;               ///< "c[0,0] over k"
  Terms terms = Terms::values;
  std::vector<Index> dims;             ///< of the call
  Index count = 0;                     ///< of terms; 1: no sum, but inputs and results are looked at
  Place left{}, right{};
  Place second{};                      ///< of term 1, where it is of another tensor than term 0
  int param = -1;                      ///< by which term 1 is multiplied, where there is no right tensor
  Place result{};                      ///< `first` is the element
  double scale = 1;                    ///< the result is this times the sum, exactly: plus or minus a power of two
  int lift = 0;                        ///< single elements: 2^lift at least, where the formula is linear
  std::string_view no_subnormals{};    ///< why these say nothing of flushing, where they do not
  void (*background)(Problem& problem) = nullptr;  ///< everything else: all inputs are zero and params typical before it
};

/// Sums of one operation, and the dims at which its rows are looked at alone and within a batch: those of the sums, where none
/// are given. Where there are no sums, why.
struct Subject {
  std::vector<Sum> sums{};
  std::string_view no_sums{};
  std::vector<Index> dims{};
  std::string_view no_rows{};  ///< why rows along the first dim are not on their own, where they are not
};

/// Of an operation whose properties name no subject.
inline constexpr std::string_view kNotSaid = "its properties define no audited()";

/// The generated table registers itself.
struct OperationSubject {
  std::string_view op;
  Subject (*subject)();
};
struct SubjectsRegistration {
  explicit SubjectsRegistration(std::span<const OperationSubject> table);
};

/// That of one operation. Throws InputError if there is no such operation.
Subject subject(std::string_view op);

}  // namespace audit
}  // namespace assay::falsify
