// Keeps cases and calls to what a kernel takes (Limits, runtime/registry.hpp): they are changed instead of being
// refused.
#pragma once

#include <rapidcheck/Shrinkable.h>

#include <optional>
#include <span>
#include <string>

#include "falsify/engine/case.hpp"
#include "falsify/engine/inputs.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify {

/// The case, changed as little as the kernel's limits ask for; a pure function of the case. It multiplies out to no
/// more than before, or than a usual case does. Dims stay that are `given` (CampaignOptions::dims). One that cannot be
/// changed so stays, and is refused. Case::region is left where the case is still of it and is taken.
Case admitted(const OpDescriptor& op, const Kernel& kernel, Case c, std::span<const Index> given = {});
/// The same for a case and all that it shrinks to.
rc::Shrinkable<Case> admitted(const OpDescriptor& op, const Kernel& kernel, rc::Shrinkable<Case> c);

/// The problem with the integers that the kernel asks for.
Problem keep_to(const OpDescriptor& op, const Kernel& kernel, Problem problem);

/// Why the kernel's limits exclude this call.
std::optional<std::string> outside(const Kernel& kernel, const Problem& problem);

}  // namespace assay::falsify
