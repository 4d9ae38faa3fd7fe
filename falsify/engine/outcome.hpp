// What one check of one obligation on one case came to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.hpp"
#include "falsify/engine/case.hpp"
#include "falsify/engine/error_map.hpp"

namespace assay::falsify {

/// The call that failed, where a check makes others as well, or not that of its case.
struct FailedCall {
  int number = 1, of = 1;  ///< among the calls of the check, the first of which is 1
  Case call;               ///< its dims and params, and its values where they are few; the rest is the case's
  std::string relation;    ///< how the other calls differ from it
  bool differs = false;    ///< some of them do, in more than what the outputs held before
  bool alone = false;      ///< it is wrong by itself, whatever the others gave
};

/// A tensor of integers of the call that failed.
struct Integers {
  static constexpr std::size_t kMost = 12;
  std::string tensor;
  std::size_t count = 0;
  std::vector<Index> values;  ///< the first kMost
};

/// Why a kernel is wrong: one sentence, and the element where there is one.
struct Finding {
  enum class Kind {
    value,          ///< too far from what is right, or from another call's
    other_class,    ///< finite, +inf, -inf and NaN are classes
    bits,
    sign,           ///< of a zero
    shape,
    not_written,
    out_of_bounds,
    late_write,     ///< after the call had returned
    crash,
    hang,
    error,          ///< the call failed
    contract,
    rounding,       ///< not the one that the kernel declares
  } kind = Kind::value;
  std::string message;  ///< one sentence with the figures
  std::string tensor;   ///< empty where no element is meant
  Shape index;
  double got = 0;
  double want = 0;
  double bound = 0;
  std::optional<ErrorMap> errors{};  ///< of the whole output, where its elements were compared
  std::optional<FailedCall> call{};  ///< empty: the only call, which is that of the case
  std::vector<Integers> integers{};  ///< lengths, starts, ids: as much of the call as its dims
  std::uint64_t outputs = 0;         ///< hash of all outputs, where the finding was explained (try_obligation)
};

/// "value", "class", "bits", "not written", ...
std::string_view name(Finding::Kind kind);
/// Throws InputError, whose place is `where`, for a name that is none of them.
Finding::Kind kind_from(std::string_view name, const std::string& where);

/// Result of checking one obligation on one case. A skip carries its reason and never counts as a pass.
struct Outcome {
  enum class Kind { passed, falsified, refused, not_applicable } kind = Kind::passed;
  std::string reason;               ///< of a refusal (the kernel's own words) or an inapplicable case
  std::optional<Finding> finding;   ///< set where falsified
  std::int64_t elements = 0;        ///< output elements compared
  std::int64_t nonzero = 0;         ///< of them, those whose expected value is not zero
  std::int64_t zero_passes = 0;     ///< of these, those within whose bound zero lies
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
