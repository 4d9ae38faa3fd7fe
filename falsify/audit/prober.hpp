// Runs a kernel on the calls of an audit: a few terms of one sum at a time.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "falsify/audit/subject.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify::audit {

/// What stands in the factors of one term. Of squares and exponentials, `left` is the square or the exponential itself.
struct Term {
  Index at = 0;
  float left = 0, right = 1;
};

/// Probes of one sum of one kernel. Every call throws Interrupted where the kernel refuses, crashes or damages memory, and
/// Unavailable where its device is missing.
class Prober {
 public:
  /// Runs the kernel on a call; throws as Trial::run does.
  using Runner = std::function<Run(const Problem&)>;
  Prober(const OpDescriptor& op, const Kernel& kernel, const Sum& sum, Runner run);
  /// On dense tensors between sentinels.
  Prober(const OpDescriptor& op, const Kernel& kernel, const Sum& sum, Worker& worker);

  const Sum& sum() const { return sum_; }
  /// Format of the tensor's elements.
  DType stored_as(const Place& place) const;

  /// The sum of these terms as the kernel has it, all others being `others` (times 1).
  double operator()(std::span<const Term> terms, float others = 0);
  double operator()(std::initializer_list<Term> terms, float others = 0) { return (*this)({terms.begin(), terms.size()}, others); }
  /// The element of the result, in which a sum of squares or exponentials shows; `raw`: left is the input itself.
  float shown(std::span<const Term> terms, bool raw = false);
  float shown(std::initializer_list<Term> terms, bool raw = false) { return shown({terms.begin(), terms.size()}, raw); }

 private:
  float encoded(float term) const;
  float result(const Problem& problem);

  const Sum& sum_;
  Runner run_;
  Problem base_;        ///< every term nothing, every right factor 1
  std::size_t output_;  ///< the result's tensor among the outputs
};

/// All inputs zero, parameters typical.
Problem blank(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims);

}  // namespace assay::falsify::audit
