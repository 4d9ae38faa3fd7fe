// The forward call that a backward call belongs to: what finite differences are taken of.
#pragma once

#include "falsify/policies/policy.hpp"

namespace assay::falsify::policies {

std::vector<float>& values_of(Problem& problem, std::string_view tensor);
/// The forward call whose dims, inputs and params a backward call shares. Inputs that it does not share, such as the
/// logits of a softmax whose result was saved, are uniform in +-range, and the same for every call.
Problem forward_of(const Problem& backward, std::string_view forward, double range);
/// What the forward operation saved for the backward one, from its float32 reference on forward_of().
void save_forward(Problem& backward, std::string_view forward, double range);

}  // namespace assay::falsify::policies
