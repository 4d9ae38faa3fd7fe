// What a kernel promises about its floating-point arithmetic. Error bounds are derived from it and from
// nothing else.
#pragma once

#include <cstdint>
#include <string>

#include "core/accuracy.hpp"

namespace assay {

/// Storage and compute formats, and tf32x3: float32 numbers as sums of two of TF32, multiplied by three products of four
/// (bounded.cpp derives what that costs).
enum class Format { f32, tf32, f16, bf16, tf32x3 };

/// Significant bits, the hidden one included; of tf32x3, as many as make its products' error.
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

/// How a kernel forms the frequencies theta^(-2i/d) of rotary embeddings: as its contract says, or in float32 as a power of its own each,
/// or as products of the one power theta^(-2/d).
enum class Frequencies { exact, powers, products };
/// A pin of a contract that asks for more than some shipped kernels give. What a kernel gives that declares it lost is bounded, too
/// (lost() in core/either.hpp).
enum class Loss : std::uint8_t {
  nothing,
  confident,    ///< cross_entropy: a loss is logsumexp - logit
  stable,       ///< bce_with_logits: (1 - t) x + ((w - 1) t + 1) softplus(-x), whose parts cancel
  small_scale,  ///< NF4: scales below 2^-120 are multiplied as they are
};
std::string_view name(Loss loss);

/// Declared by every kernel, measured by its audit. The default is plain float32: round to nearest,
/// in any order, fused or not, subnormals kept.
struct Arithmetic {
  Format inputs = Format::f32;                ///< what inputs are rounded to before they are multiplied
  Rounding input_rounding = Rounding::nearest;
  Format accumulator = Format::f32;           ///< what partial sums are held in
  Rounding accumulation = Rounding::nearest;
  /// Products summed by one block operation (tensor cores): all aligned to the largest exponent and
  /// truncated together, whatever `accumulation` says. 1: ordinary additions.
  int block = 1;
  bool flushes_subnormals = false;            ///< subnormal inputs and results may become zero
  bool fuses_products = true;                 ///< a product may be added before it is rounded (FMA); false: it never is
  Loss loses = Loss::nothing;                 ///< what the contract pins and the kernel does not keep
  FunctionLibrary functions = FunctionLibrary::c_library;  ///< who computes division, exp, log, ...
  /// Terms of a softmax between two rescalings of its running sum by exp(old maximum - new maximum); 0: the maximum is
  /// known before the first term (two passes).
  int online_tile = 0;
  /// Such a sum is rescaled only where the maximum has grown by more than this power of two: weights reach up to that power.
  int lazy_rescaling = 0;
  bool merges_parts = false;  ///< means of parts, each divided by its own sum of weights, are merged under their rounded logsumexp, in parts of online_tile or more
  Frequencies frequencies = Frequencies::exact;

  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

/// "f32 inputs, f32 accumulator, to nearest"
std::string to_string(const Arithmetic& arithmetic);

/// Makes `arithmetic` the one that Bounded and Sum<Bounded> assume on this thread, until the scope ends.
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

/// The arithmetic in force on this thread.
const Arithmetic& current_arithmetic();

}  // namespace assay
