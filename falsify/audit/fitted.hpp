// Sums at dims that a kernel takes.
#pragma once

#include <optional>
#include <vector>

#include "contract/descriptor.hpp"
#include "falsify/audit/subject.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify::audit {

/// `dims`, or others that the kernel's limits admit. Empty: none were found.
std::vector<Index> admitted_dims(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims);

/// The sum at such dims: its terms lie along the same axis, as many as there are then, or the first 512 of them. Empty: no result shows such a
/// sum there, by the oracle.
std::optional<Sum> fitted(const OpDescriptor& op, const Kernel& kernel, const Sum& sum);

}  // namespace assay::falsify::audit
