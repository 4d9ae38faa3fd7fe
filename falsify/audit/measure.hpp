// What probes reveal of one sum of a kernel: NUMERICS.md's black-box audit, property by property.
#pragma once

#include <optional>
#include <string>

#include "falsify/audit/prober.hpp"
#include "falsify/audit/tree.hpp"

namespace assay::falsify::audit {

/// A property as measured, with the probe that shows it; or why it does not apply.
template <class T>
struct Property {
  std::optional<T> value{};
  std::string probe{};    ///< what was computed and came out
  std::string why_not{};  ///< set where there is no value
};

/// How a sum of two numbers that is no float is rounded.
enum class SeenRounding { nearest_even, nearest, toward_zero, away, other };
std::string_view name(SeenRounding rounding);

struct Measured {
  Property<Tree> order;
  Property<int> accumulator_bits;       ///< at least: as many as can be seen
  Property<SeenRounding> rounding;      ///< of additions; of a single product where there is no sum
  Property<int> input_bits;             ///< of the narrower factor
  Property<SeenRounding> input_rounding;
  Property<bool> fused;                 ///< a product is added before it is rounded
  Property<bool> flushes_inputs, flushes_products, flushes_results;
  bool bits_limited = false;            ///< inputs hold as many bits as the accumulator or the storage lets through, or more
};

/// Numbers of a binade that every storage format holds.
inline constexpr int kMantissas = 128;

/// Throws Interrupted and Unavailable as the prober does.
Measured measure(Prober& probe);

}  // namespace assay::falsify::audit
