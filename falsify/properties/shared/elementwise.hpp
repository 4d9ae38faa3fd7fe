// Metamorphic properties shared by operations on rows of elements.
#pragma once

#include <optional>

#include "falsify/engine/trial.hpp"

namespace assay::falsify {

/// Scaling these inputs by a power of two scales every output by it (Trial::scales). Values are drawn by the case's strategy, or by the
/// given one where results of others come near the ends of float's range.
Outcome scales_with(Trial& trial, std::initializer_list<int> inputs, std::optional<Strategy> strategy = {});

/// Indices [from, to) of the first dim alone give the bits that they give among the others. Tensors whose first axis is
/// that dim are cut; the others are passed whole. One case in sixteen has millions of elements, where kernels may take
/// another path than with few; not with `Sizes::drawn`: blocks of bytes hold so much more than elementwise operations take
/// that a kernel on cuda-host would not be done within a case's limit.
enum class Sizes { drawn, enlarged };
Outcome independent_of_batch(Trial& trial, Sizes sizes = Sizes::enlarged);

/// Makes positive integers small enough that `terms` of them add exactly in every order.
void keep_sums_exact(std::vector<float>& values, Index terms);

}  // namespace assay::falsify
