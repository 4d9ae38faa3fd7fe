// The forward call of a backward call, for finite differences.
#pragma once

#include "falsify/policies/policy.hpp"

namespace assay::falsify::policies {

std::vector<float>& values_of(Problem& problem, std::string_view tensor);
/// Returns the forward call with the dims, inputs and params of a backward call. Inputs that the backward call lacks,
/// such as the logits of a softmax whose result was saved, are uniform in +-range, and the same for every call.
Problem forward_of(const Problem& backward, std::string_view forward, double range);
/// Sets the values that the forward operation saves for the backward one, from its float32 reference on forward_of().
void save_forward(Problem& backward, std::string_view forward, double range);

}  // namespace assay::falsify::policies
