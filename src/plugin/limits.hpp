// What a shim requires of calls (`requires: [d in [64, 128], k % 8 == 0]`): which it takes, and which of those is near
// another.
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

  /// A condition is about this param.
  bool mentions(int param) const;
  /// Dims of which a list says the values.
  std::vector<int> listed() const;
  bool any() const { return nonempty_ || !conditions_.empty(); }
  /// The condition that does not hold.
  std::optional<std::string> refuse(std::span<const Index> dims, std::span<const double> params) const;
  /// As Limits::repair (runtime/registry.hpp): what holds already stays, a dim moves as little as needed, except that
  /// the values of a list have equal chances, and that a dim becomes 0 only where nothing else holds.
  bool repair(std::vector<Index>& dims, std::vector<double>& params, std::uint64_t seed) const;

 private:
  /// By one dim or param; else by all that it mentions.
  bool repair(const Condition& condition, std::vector<Index>& dims, std::vector<double>& params,
              std::uint64_t seed) const;
  bool repair_together(const Condition& condition, std::vector<Index>& dims, std::vector<double>& params,
                       std::uint64_t seed) const;

  const OpDescriptor* op_;
  std::vector<Condition> conditions_;
  bool nonempty_;  ///< no tensor without elements
};

}  // namespace assay::plugin
