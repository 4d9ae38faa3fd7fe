// Requirements of a shim on calls (`requires: [d in [64, 128], k % 8 == 0]`): tests calls, and repairs those that
// violate them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/expression.hpp"

namespace assay::plugin {

class Requirements {
 public:
  Requirements(const OpDescriptor& op, std::vector<Condition> conditions, bool nonempty)
      : op_(&op), conditions_(std::move(conditions)), nonempty_(nonempty) {}

  /// Returns whether a condition mentions this param.
  bool mentions(int param) const;
  /// Returns the dims whose values a list gives.
  std::vector<int> listed() const;
  bool any() const { return nonempty_ || !conditions_.empty(); }
  /// Returns the condition that does not hold.
  std::optional<std::string> refuse(std::span<const Index> dims, std::span<const double> params) const;
  /// Like Limits::repair (runtime/limits.hpp): keeps values that satisfy the conditions and moves a dim as little as
  /// possible. Exceptions: all values of a list are equally likely, and a dim becomes 0 only if no other value
  /// satisfies the condition.
  bool repair(std::vector<Index>& dims, std::vector<double>& params, std::uint64_t seed) const;

 private:
  /// Repairs one condition by changing one dim or param, or else all that it mentions.
  bool repair(const Condition& condition, std::vector<Index>& dims, std::vector<double>& params,
              std::uint64_t seed) const;
  bool repair_together(const Condition& condition, std::vector<Index>& dims, std::vector<double>& params,
                       std::uint64_t seed) const;

  const OpDescriptor* op_;
  std::vector<Condition> conditions_;
  bool nonempty_;  ///< tensors without elements are not allowed
};

}  // namespace assay::plugin
