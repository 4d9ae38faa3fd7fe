// The floating-point arithmetic that a kernel declares. Error bounds are derived from this declaration and from nothing
// else.
#pragma once

#include <cstdint>
#include <string>

#include "core/accuracy.hpp"

namespace assay {

/// Storage and compute formats. tf32x3 represents a float32 number as a sum of two TF32 numbers and a product by three
/// of their four products (error derived in bounded.cpp).
enum class Format { f32, tf32, f16, bf16, tf32x3 };

/// Returns the significant bits, including the hidden one. For tf32x3, returns the bits that correspond to the error of
/// its products.
constexpr int significand_bits(Format format) {
  switch (format) {
    case Format::f32: return 24;
    case Format::tf32: return 11;
    case Format::f16: return 11;
    case Format::bf16: return 8;
    case Format::tf32x3: return 19;
  }
  return 0;
}
std::string_view name(Format format);

enum class Rounding { nearest, toward_zero };

/// How a kernel forms the frequencies theta^(-2i/d) of rotary embeddings: exactly, as its contract says; in float32 as
/// one power per frequency; or in float32 as products of the single power theta^(-2/d).
enum class Frequencies { exact, powers, products };
/// A pin of a contract that some shipped kernels do not meet. A kernel that declares the loss is held to the bound of
/// its own formula (lost() in core/any_formula.hpp).
enum class Loss : std::uint8_t {
  nothing,
  confident,    ///< cross_entropy: a loss is logsumexp - logit
  stable,       ///< bce_with_logits: (1 - t) x + ((w - 1) t + 1) softplus(-x), whose parts cancel
  small_scale,  ///< NF4: scales below 2^-120 are used unchanged
};
std::string_view name(Loss loss);

/// Declared by every kernel, measured by its audit. The default is plain float32: round to nearest,
/// in any order, fused or not, subnormals kept.
struct Arithmetic {
  Format inputs = Format::f32;  ///< format that inputs are rounded to before multiplication
  Rounding input_rounding = Rounding::nearest;
  Format accumulator = Format::f32;  ///< format of partial sums
  Rounding accumulation = Rounding::nearest;
  /// Products summed by one block operation (tensor cores): all are aligned to the largest exponent and truncated
  /// together, independent of `accumulation`. 1: ordinary additions.
  int block = 1;
  /// Format of the factors of block operations where `inputs` is wider, as of a layer in f16 with an adapter in f32: a
  /// factor below its normal range is aligned as its smallest normal number.
  Format aligned = Format::f32;
  bool flushes_subnormals = false;  ///< float32: subnormal inputs and results may become zero
  /// Results that are subnormal in their storage format may become zero, as by a device's own conversion to f16.
  bool flushes_stored = false;
  bool fuses_products = true;  ///< a product may be added before it is rounded (FMA); false: never
  Loss loses = Loss::nothing;  ///< the pin of the contract that the kernel does not keep
  FunctionLibrary functions = FunctionLibrary::c_library;  ///< library of division, exp, log, ...
  /// Terms of a softmax between two rescalings of its running sum by exp(old maximum - new maximum); 0: the maximum is
  /// known before the first term (two passes).
  int online_tile = 0;
  /// The running sum is rescaled only when the maximum has grown by more than this power of two: weights reach up to
  /// that power.
  int lazy_rescaling = 0;
  bool merges_parts = false;  ///< merges means of parts (>= online_tile terms each) under their rounded logsumexp
  Frequencies frequencies = Frequencies::exact;

  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;

  /// Returns the magnitude below which a stored result may become zero, where `smallest` is the format's smallest normal
  /// number: no storage format has a smaller one than float32.
  double flushed_below(double smallest) const { return flushes_stored ? smallest : flushes_subnormals ? 0x1p-126 : 0; }
};

/// "f32 inputs, f32 accumulator, to nearest"
std::string to_string(const Arithmetic& arithmetic);

/// Makes Bounded and Sum<Bounded> assume `arithmetic` on this thread until the scope ends.
class ArithmeticScope {
 public:
  explicit ArithmeticScope(const Arithmetic& arithmetic);
  ~ArithmeticScope();
  ArithmeticScope(const ArithmeticScope&) = delete;
  ArithmeticScope& operator=(const ArithmeticScope&) = delete;

 private:
  Arithmetic in_force_;
  const Arithmetic* previous_;
};

/// Returns the current arithmetic of this thread.
const Arithmetic& current_arithmetic();

}  // namespace assay
