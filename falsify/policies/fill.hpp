// Input fills of the projects. Each fills every real tensor that a kernel reads and then makes saved values (logsumexp,
// the packed formats) consistent again, as our own campaigns do.
#pragma once

#include "falsify/policies/policy.hpp"

namespace assay::falsify::policies {

/// Returns a uniform fill between the limits.
Fill uniform(double low, double high);
/// Returns an N(0, 1) fill.
Fill normal();
/// Replaces the values of one tensor after `fill`. Saved values are made consistent before the replacement, not after.
Fill then(Fill fill, std::string_view tensor, std::function<float(Random& random, std::size_t at)> value);
/// Returns a uniform fill that makes nothing consistent.
Fill raw(double low, double high);

/// Calls f for the values of each real tensor that the kernel reads.
void for_each_real(Problem& problem,
                   const std::function<void(std::vector<float>& values, const TensorInfo& tensor)>& f);
/// Recomputes saved values and packed formats from the other inputs; sequences get their full lengths.
void make_consistent(Problem& problem, Random& random);

/// Returns the index of a tensor; -1 if the operation has none of that name.
int tensor_named(const OpDescriptor& op, std::string_view name);

/// Returns the dense outputs of an operation's float32 reference; tensors are matched by name.
Outputs mirror_of(std::string_view op, const Problem& problem);

}  // namespace assay::falsify::policies
