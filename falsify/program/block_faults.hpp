// Faults of transformers put together wrongly, by name: edits of a decoder's differentiated program.
#pragma once

#include <span>
#include <string_view>

#include "falsify/program/mutants.hpp"

namespace assay::falsify {

class BlockEdit;

/// `edit` finds its steps by label in the differentiated program of a decoder with two layers, groups of heads, a
/// rotary embedding, biases, norms of heads, adapters of rank 2 on every projection, a tied head and losses of rows.
struct BlockFault {
  std::string_view words;  ///< "the gradient of a bias is dropped"
  void (*edit)(BlockEdit&);
  std::string_view bugs = "";  ///< that it was in other projects: "N60"
};
std::span<const BlockFault> block_faults();
/// The same of any program of several sequences, and of one that computes its layers again (BlockCase::recomputes).
std::span<const BlockFault> batch_faults();
std::span<const BlockFault> recomputation_faults();

/// The same of the programs that decoding mutates (mutated_cases()), and of a training forward pass and what it saves.
std::span<const BlockFault> decode_faults();
std::span<const BlockFault> training_faults();
/// The same of a training step.
std::span<const BlockFault> step_faults();

/// The program with the fault, every storage in a slot of its own. Throws InputError if it has no step of a label that
/// the edit names.
ProgramMutant plant(const BlockFault& fault, const program::Program& program);

}  // namespace assay::falsify
