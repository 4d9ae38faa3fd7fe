// Changes cases and calls to fit a kernel's Limits (runtime/registry.hpp), so that the kernel does not refuse them.
#pragma once

#include <rapidcheck/Shrinkable.h>

#include <optional>
#include <span>
#include <string>

#include "falsify/engine/case.hpp"
#include "falsify/engine/inputs.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify {

/// Returns the case with the fewest changes that the kernel's limits ask for; a pure function of the case. The product
/// of the dims does not grow beyond the original product or that of an average case. Dims that are `given`
/// (CampaignOptions::dims) stay. A case that cannot be repaired is returned unchanged, and the kernel refuses it.
/// Case::region is kept if the new dims lie in the region and the kernel takes them.
Case admitted(const OpDescriptor& op, const Kernel& kernel, Case c, std::span<const Index> given = {});
/// The same for a case and all its shrinks.
rc::Shrinkable<Case> admitted(const OpDescriptor& op, const Kernel& kernel, rc::Shrinkable<Case> c);

/// Returns the problem with the integers that the kernel requires.
Problem restrict_integers(const OpDescriptor& op, const Kernel& kernel, Problem problem);

/// Returns the reason why the kernel's limits exclude this call; empty if they admit the call.
std::optional<std::string> outside(const Kernel& kernel, const Problem& problem);

}  // namespace assay::falsify
