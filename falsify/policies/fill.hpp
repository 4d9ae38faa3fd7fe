// How projects fill inputs. Each fills every real tensor that a kernel reads and then makes saved values (logsumexp,
// the packed formats) consistent with them again, as our own campaigns do.
#pragma once

#include "falsify/policies/policy.hpp"

namespace assay::falsify::policies {

/// Uniform between the limits.
Fill uniform(double low, double high);
/// N(0, 1).
Fill normal();
/// Values of one tensor in its place: applied after `fill`. Saved values are made consistent before, not after.
Fill then(Fill fill, std::string_view tensor, std::function<float(Random& random, std::size_t at)> value);
/// `fill` without making anything consistent.
Fill raw(double low, double high);

/// Calls f for the values of each real tensor that is read.
void for_each_real(Problem& problem,
                   const std::function<void(std::vector<float>& values, const TensorInfo& tensor)>& f);
/// Saved values and packed formats follow from the others once more; sequences have their full lengths.
void make_consistent(Problem& problem, Random& random);

/// Index of a tensor; -1 where the operation has none of that name.
int tensor_named(const OpDescriptor& op, std::string_view name);

/// Dense values of the outputs of an operation's float32 reference, by the name of its tensors.
Outputs mirror_of(std::string_view op, const Problem& problem);

}  // namespace assay::falsify::policies
