// Runs a kernel on the calls of an audit, each with a few terms of one sum.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "falsify/audit/subject.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify::audit {

/// Factors of one term. For squares and exponentials, `left` is the square or the exponential itself.
struct Term {
  Index at = 0;
  float left = 0, right = 1;
};

/// Probes of one sum of one kernel. Every call throws Interrupted if the kernel refuses, crashes or damages memory, and
/// Unavailable if its device is missing.
class Prober {
 public:
  /// Runs the kernel on a call; throws as Trial::run does.
  using Runner = std::function<Run(const Problem&)>;
  Prober(const OpDescriptor& op, const Kernel& kernel, const Sum& sum, Runner run);
  /// Runs on dense tensors between sentinels.
  Prober(const OpDescriptor& op, const Kernel& kernel, const Sum& sum, Worker& worker);

  const Sum& sum() const { return sum_; }
  /// Returns the format of the tensor's elements.
  DType stored_as(const StridedFactor& place) const;

  /// Returns the kernel's sum of these terms, all others being `others` (times 1).
  double operator()(std::span<const Term> terms, float others = 0);
  double operator()(std::initializer_list<Term> terms, float others = 0) {
    return (*this)({terms.begin(), terms.size()}, others);
  }
  /// Returns the result's element, which shows a sum of squares or exponentials; `raw`: left is the input itself.
  float shown(std::span<const Term> terms, bool raw = false);
  float shown(std::initializer_list<Term> terms, bool raw = false) { return shown({terms.begin(), terms.size()}, raw); }

 private:
  float encoded(float term) const;
  float result(const Problem& problem);

  const Sum& sum_;
  Runner run_;
  Problem base_;        ///< every term negligible, every right factor 1
  std::size_t output_;  ///< the result's tensor among the outputs
};

/// Returns a runner that gives the oracle's values, rounded to the tensors' formats. `idle` runs nothing.
Prober::Runner oracle_runner(const OpDescriptor& op, const Kernel& kernel, Worker& idle);

/// Makes a problem with all inputs zero and typical parameters.
Problem blank(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims);

}  // namespace assay::falsify::audit
