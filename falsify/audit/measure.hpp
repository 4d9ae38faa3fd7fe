// Probes of one sum of a kernel, property by property, through its results alone.
#pragma once

#include <optional>
#include <string>

#include "falsify/audit/prober.hpp"
#include "falsify/audit/tree.hpp"

namespace assay::falsify::audit {

/// A measured property with the probe that shows it, or the reason why it does not apply.
template <class T>
struct Property {
  std::optional<T> value{};
  std::string probe{};    ///< the computed expression and its result
  std::string why_not{};  ///< set if there is no value
};

/// Observed rounding of a sum of two numbers that is no float.
enum class SeenRounding { nearest_even, nearest, toward_zero, away, other };
std::string_view name(SeenRounding rounding);

struct Measured {
  Property<Tree> order;
  Property<int> accumulator_bits;   ///< a lower bound: the visible bits
  Property<SeenRounding> rounding;  ///< of additions; of a single product if there is no sum
  Property<int> input_bits;         ///< of the narrower factor
  Property<SeenRounding> input_rounding;
  Property<bool> fused;  ///< a product is added before it is rounded
  Property<bool> flushes_inputs, flushes_products, flushes_results;
  /// inputs hold at least as many bits as the accumulator, the storage or the result can show
  bool bits_limited = false;
  /// the exact sum shows no more bits of the accumulator in a result of 16 bits
  bool accumulator_limited = false;
};

/// Number of tested mantissas in a binade that every storage format holds.
inline constexpr int kMantissas = 128;

/// Measures all properties; `exact` probes the exact sum. Throws Interrupted and Unavailable as the probers do.
Measured measure(Prober& probe, Prober& exact);

}  // namespace assay::falsify::audit
