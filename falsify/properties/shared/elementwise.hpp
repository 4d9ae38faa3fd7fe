// Metamorphic properties shared by operations on rows of elements.
#pragma once

#include <optional>

#include "falsify/engine/trial.hpp"

namespace assay::falsify {

/// Checks that scaling these inputs by a power of two scales every output by it (Trial::scales). Values are drawn by
/// the case's strategy, or by the given one if the case's results may approach the ends of float's range.
Outcome scales_with(Trial& trial, std::initializer_list<int> inputs, std::optional<Strategy> strategy = {});

/// Checks that indices [from, to) of the first dim alone give the same bits as among the others. Tensors whose first
/// axis is that dim are cut; the others are passed whole. One case in sixteen has millions of elements, since kernels
/// may take another path than for few; not with `Sizes::drawn`: blocks of bytes hold so many values that a kernel on
/// cuda-host would exceed a case's time limit.
enum class Sizes { drawn, enlarged };
Outcome independent_of_batch(Trial& trial, Sizes sizes = Sizes::enlarged);

/// Checks that `output` of two blocks of the rows of the first input [m, n] adds up to that of all rows, within the bounds.
Outcome rows_add_up(Trial& trial, std::size_t output);

/// Makes positive integers small enough that `terms` of them add exactly in every order.
void keep_sums_exact(std::vector<float>& values, Index terms);

}  // namespace assay::falsify
