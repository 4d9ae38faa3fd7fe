// Memory plan of a program: the slot of every storage, known before anything is allocated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/program.hpp"
#include "serve/prewarm.hpp"

namespace assay::program {

/// Temporaries whose lives do not meet share slots: whole buffers, since a binding of Vulkan is a whole allocation.
struct Plan {
  std::vector<std::int32_t> slot_of;  ///< of each storage
  std::vector<std::size_t> slot_bytes;
  std::size_t scratch_bytes = 0;  ///< that host kernels work in, of the kernel that needs most; a session's plan has it
  std::size_t bytes = 0;          ///< of all slots and the scratch
};

/// With `reuse` false every storage has a slot of its own. O(storages x slots).
Plan plan(const Program& program, bool reuse = true);

/// The bytes of sessions of these programs, of which each shares with the first what has one name (SessionOptions), but
/// for the scratch.
std::size_t bytes_together(std::span<const Program* const> programs, bool reuse = true);

/// The calls that the steps make, each once, in the order of the first: the list for contract::prewarm() of a program
/// whose operations run on their own. A session prepares its steps itself.
std::vector<contract::PlannedCall> planned_calls(const Program& program);

}  // namespace assay::program
