// From a case to the values of its tensors.
#pragma once

#include <vector>

#include "core/arithmetic.hpp"
#include "falsify/engine/case.hpp"
#include "falsify/engine/random.hpp"

namespace assay::falsify {

/// One call in logical terms: values are dense and row-major, whatever the layout they are run in.
struct Problem {
  const OpDescriptor* op = nullptr;
  std::vector<Index> dims;
  std::vector<double> params;
  /// In contract order; outputs are empty. Every element type is held as the float of the same value: i32 within
  /// +-2^24, u8, f16 and bf16 exactly.
  std::vector<std::vector<float>> values;
  DType storage = DType::f32;  ///< of the tensors whose format the contract leaves open
  bool exact = false;          ///< drawn so that every order of evaluation gives the same bits
  bool integers_kept = false;  ///< a kernel's limits chose its integers (keep_to, admit.hpp): no order is promised the same bits

  Shape shape(int tensor) const { return op->tensors[static_cast<std::size_t>(tensor)].shape(dims); }
  DType dtype(int tensor) const {
    const TensorInfo& info = op->tensors[static_cast<std::size_t>(tensor)];
    return info.storage ? storage : info.dtype;
  }
};

/// The contract pins that NaNs are copied bit for bit: those drawn for it are signalling in half of the cases.
bool keeps_payloads(const OpDescriptor& op);

/// Values by the case's strategy (or its explicit values). `arithmetic` and `storage` are what the kernel declares:
/// exact strategies use no more bits than its inputs hold, and inputs are values that their format holds.
Problem make_problem(const OpDescriptor& op, const Case& c, const Arithmetic& arithmetic, DType storage = DType::f32);

/// Of a dim of so many places the last few decide: values that dominate, or that are not finite, are in no other.
inline constexpr Index kLongTail = 4097;

/// One tensor of values by a strategy. `wide` says that this is the input which carries the information;
/// the others select from it (one-hot; -1, 0, 1).
std::vector<float> make_values(const Shape& shape, Strategy strategy, bool wide, int exact_bits, Index longest,
                               Random& random);

/// A stretch of 1 to 256 places among n, at the beginning, the end or in between, often whole tiles: mostly what lies in it counts for
/// nothing, at times it alone counts. So a whole tile has nothing that does: the first, the last, or all but one.
class Runs {
 public:
  Runs(Index n, Random& random);
  bool counts(Index place) const { return (begin_ <= place && place < end_) == inside_; }

 private:
  Index begin_, end_;
  bool inside_;
};

/// True where at most one evaluation result exists: every sum is exact in any order.
constexpr bool is_exact(Strategy strategy) {
  return strategy == Strategy::one_hot || strategy == Strategy::distinct_index ||
         strategy == Strategy::exact_integers;
}
/// The same of the case in the kernel's accumulator: sums of several integers take all of float32's digits, one alone those of inputs.
inline bool is_exact(const Case& c, const Arithmetic& arithmetic) {
  return c.values.empty() && is_exact(c.strategy) &&
         (c.strategy == Strategy::distinct_index || arithmetic.accumulator == Format::f32);
}

}  // namespace assay::falsify
