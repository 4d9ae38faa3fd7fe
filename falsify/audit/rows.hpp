// Does a row's result depend on the rows beside it, or on the run?
#pragma once

#include <string>

#include "falsify/audit/measure.hpp"

namespace assay::falsify::audit {

/// The first, a middle and the last row of 4 and of 37 have the bits that they have alone. Rows are along the first dim: tensors that
/// have an axis of it are cut. `dims` are the others'.
Property<bool> batch_invariant(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims, Worker& worker);

/// Five runs on the same input, the last in a fresh process, give the same bits.
Property<bool> deterministic(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims, Worker& worker);

}  // namespace assay::falsify::audit
