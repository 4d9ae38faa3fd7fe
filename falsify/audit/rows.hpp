// Checks whether a row's result depends on the other rows of the batch, or on the run.
#pragma once

#include <string>

#include "falsify/audit/measure.hpp"

namespace assay::falsify::audit {

/// True if the first, a middle and the last row of 4 and of 37 have the same bits as alone. Rows lie along the first
/// dim; tensors with an axis of it are cut. `dims` gives the other dims.
Property<bool> batch_invariant(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims,
                               Worker& worker);

/// True if five runs on the same input, the last in a fresh process, give the same bits.
Property<bool> deterministic(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims,
                             Worker& worker);

}  // namespace assay::falsify::audit
