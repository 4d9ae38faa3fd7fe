// What one check of one obligation on one case came to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.hpp"
#include "falsify/engine/error_map.hpp"

namespace assay::falsify {

/// Why a kernel is wrong: one sentence, and the element where there is one.
struct Finding {
  std::string kind;     ///< "value", "class", "bits", "unwritten", "out of bounds", "input changed", "crash", "hang", ...
  std::string message;  ///< one sentence with the figures
  std::string tensor;   ///< empty where no element is meant
  Shape index;
  double got = 0;
  double want = 0;
  double bound = 0;
  std::optional<ErrorMap> errors{};  ///< of the whole output, where its elements were compared
};

/// Result of checking one obligation on one case. A skip carries its reason and never counts as a pass.
struct Outcome {
  enum class Kind { passed, falsified, refused, not_applicable } kind = Kind::passed;
  std::string reason;               ///< of a refusal (the kernel's own words) or an inapplicable case
  std::optional<Finding> finding;   ///< set where falsified
  std::int64_t elements = 0;        ///< output elements compared
  std::int64_t nonzero = 0;         ///< of them, those whose expected value is not zero
  double worst = 0;                 ///< largest |got - want| / bound seen (0 where bits were compared)

  /// Adds another comparison of the same check: counts add up, the first finding stays.
  Outcome& operator&=(const Outcome& other);

  static Outcome falsify(Finding finding) {
    Outcome outcome;
    outcome.kind = Kind::falsified;
    outcome.finding = std::move(finding);
    return outcome;
  }
  static Outcome not_applicable(std::string why) {
    Outcome outcome;
    outcome.kind = Kind::not_applicable;
    outcome.reason = std::move(why);
    return outcome;
  }
};

}  // namespace assay::falsify
