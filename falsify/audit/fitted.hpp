// Moves audited sums to dims that a kernel takes.
#pragma once

#include <optional>
#include <vector>

#include "contract/descriptor.hpp"
#include "falsify/audit/subject.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify::audit {

/// Returns `dims`, or others that the kernel's limits admit; empty if none are found.
std::vector<Index> admitted_dims(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims);

/// Returns the sum at such dims: its terms lie along the same axis, all of them or the first 512. Empty if no result
/// shows such a sum there, by the oracle.
std::optional<Sum> fitted(const OpDescriptor& op, const Kernel& kernel, const Sum& sum);

}  // namespace assay::falsify::audit
