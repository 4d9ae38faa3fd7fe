#include "falsify/program/block_edit.hpp"
#include "falsify/program/block_faults.hpp"

namespace assay::falsify {
namespace {

using E = BlockEdit;

constexpr BlockFault kStepFaults[] = {
    {"the norm is not that of the mean that is clipped", [](E& e) { e.bypass("update.clip_grad_norm", "g", "g"); }},
};

}  // namespace

std::span<const BlockFault> step_faults() { return kStepFaults; }

}  // namespace assay::falsify
