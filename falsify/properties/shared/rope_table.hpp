// Properties shared by rope_table and its gradient.
#pragma once

#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {

/// Indices of the tensors of one contract: `from` is rotated, or rotated back.
struct RopeTableTensors {
  int from, cosines, sines, positions, to;
};

/// Gives half of the cases the positions of models, sequences one after another that count up, and the tables of models:
/// cosines and sines of position theta^(-2i/d), times a factor that is 1 or nearly so.
void rope_table_inputs(Problem& problem, const RopeTableTensors& t, Strategy strategy, Random& random);

/// Checks that tables of ones and zeros keep every pair, or turn it by a quarter: back if `direction` is -1.
Outcome rope_table_quarter_turns(Trial& trial, const RopeTableTensors& t, int direction);
/// Checks that 2^a times the rotated tensor, or times both tables, gives 2^a times the result, bitwise.
Outcome rope_table_scaling(Trial& trial, const RopeTableTensors& t);
/// Checks that tables in reverse, with positions that follow them, give the same bits.
Outcome rope_table_relabelling(Trial& trial, const RopeTableTensors& t);

}  // namespace assay::falsify
