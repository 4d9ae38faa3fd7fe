// Makes the values of a case's tensors.
#pragma once

#include <vector>

#include "core/arithmetic.hpp"
#include "falsify/engine/case.hpp"
#include "falsify/engine/random.hpp"

namespace assay::falsify {

/// One call in logical terms: values are dense and row-major, in any layout of the run.
struct Problem {
  const OpDescriptor* op = nullptr;
  std::vector<Index> dims;
  std::vector<double> params;
  /// In contract order; outputs are empty. Elements of every type are held as floats of the same value: i32 within
  /// +-2^24, u8, f16 and bf16 exactly.
  std::vector<std::vector<float>> values;
  DType storage = DType::f32;  ///< of the tensors whose format the contract leaves open
  bool exact = false;          ///< drawn so that every order of evaluation gives the same bits
  /// a kernel's limits chose its integers (restrict_integers, admit.hpp): evaluation orders may differ in bits
  bool integers_kept = false;

  Shape shape(int tensor) const { return op->tensors[static_cast<std::size_t>(tensor)].shape(dims); }
  DType dtype(int tensor) const {
    const TensorInfo& info = op->tensors[static_cast<std::size_t>(tensor)];
    return info.storage ? storage : info.dtype;
  }
};

/// True if the contract pins that NaNs are copied bit for bit: half of the cases then draw signalling ones.
bool keeps_payloads(const OpDescriptor& op);

/// Makes values by the case's strategy, or takes its explicit values. `arithmetic` and `storage` are the kernel's
/// declarations: exact strategies use no more bits than its inputs hold, and inputs are representable in their format.
Problem make_problem(const OpDescriptor& op, const Case& c, const Arithmetic& arithmetic, DType storage = DType::f32);

/// From this extent on, the last places of a dim decide: dominant and non-finite values stand nowhere else.
inline constexpr Index kLongTail = 4097;

/// Makes one tensor of values by a strategy. `wide` marks the input that carries the information; the other inputs
/// select from it (one-hot; -1, 0, 1).
std::vector<float> make_values(const Shape& shape, Strategy strategy, bool wide, int exact_bits, Index longest,
                               Random& random);

/// A stretch of 1 to 256 of n places, at the beginning, the end or in between, often of whole tiles. Usually the
/// stretch is negligible, at times only the stretch counts. Thus whole tiles are negligible: the first, the last, or
/// all but one.
class Runs {
 public:
  Runs(Index n, Random& random);
  bool counts(Index place) const { return (begin_ <= place && place < end_) == inside_; }

 private:
  Index begin_, end_;
  bool inside_;
};

/// True if at most one result is right: every sum is exact in any order.
constexpr bool is_exact(Strategy strategy) {
  return strategy == Strategy::one_hot || strategy == Strategy::distinct_index || strategy == Strategy::exact_integers;
}
/// The same for the case in the kernel's accumulator: sums of several integers use all of float32's digits, a single
/// integer those of the inputs.
inline bool is_exact(const Case& c, const Arithmetic& arithmetic) {
  return c.values.empty() && is_exact(c.strategy) &&
         (c.strategy == Strategy::distinct_index || arithmetic.accumulator == Format::f32);
}

}  // namespace assay::falsify
