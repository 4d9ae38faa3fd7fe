// Outcome of one check of one obligation on one case.
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

/// The failed call of a check that makes several calls, or a call other than the case's.
struct FailedCall {
  int number = 1, of = 1;  ///< of the calls of the check, counted from 1
  Case call;               ///< dims, params and, if few, values; the rest is the case's
  std::string relation;    ///< differences of the other calls from this one
  bool differs = false;    ///< some of the calls differ, not only in the previous contents of outputs
  bool alone = false;      ///< the call is wrong by itself, independent of the others
};

/// A tensor of integers of the failed call.
struct Integers {
  static constexpr std::size_t kMost = 12;
  std::string tensor;
  std::size_t count = 0;
  std::vector<Index> values;  ///< the first kMost
};

/// Description of a failure: one sentence, and the element if there is one.
struct Finding {
  enum class Kind {
    value,        ///< too far from what is right, or from another call's
    other_class,  ///< finite, +inf, -inf and NaN are classes
    bits,
    sign,  ///< of a zero
    shape,
    not_written,
    out_of_bounds,
    late_write,  ///< after the call had returned
    crash,
    hang,
    error,  ///< the call failed
    contract,
    rounding,  ///< not the one that the kernel declares
  } kind = Kind::value;
  std::string message;  ///< one sentence with the figures
  std::string tensor;   ///< empty if no element is concerned
  Shape index;
  double got = 0;
  double want = 0;
  double bound = 0;
  std::optional<ErrorMap> errors{};  ///< of the whole output, if its elements were compared
  std::optional<FailedCall> call{};  ///< empty: the only call, which is the case's
  std::vector<Integers> integers{};  ///< lengths, starts, ids: they determine the call as much as its dims
  std::uint64_t outputs = 0;         ///< hash of all outputs, if the finding was explained (try_obligation)
};

/// "value", "class", "bits", "not written", ...
std::string_view name(Finding::Kind kind);
/// Throws InputError, whose place is `where`, for a name that is none of them.
Finding::Kind kind_from(std::string_view name, const std::string& where);

/// Result of checking one obligation on one case. A skip carries its reason and never counts as a pass.
struct Outcome {
  enum class Kind { passed, falsified, refused, not_applicable } kind = Kind::passed;
  std::string reason;              ///< of a refusal (the kernel's own words) or an inapplicable case
  std::optional<Finding> finding;  ///< set if falsified
  std::int64_t elements = 0;       ///< output elements compared
  std::int64_t nonzero = 0;        ///< number of these with a nonzero expected value
  std::int64_t zero_passes = 0;    ///< number of these with zero within their bound
  double worst = 0;                ///< largest |got - want| / bound seen (0 if bits were compared)

  /// Adds another comparison of the same check: counts are summed, the first finding is kept.
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
