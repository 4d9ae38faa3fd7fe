// Which kernels a command is about.
#pragma once

#include <string>
#include <vector>

#include "plugin/foreign.hpp"
#include "runtime/registry.hpp"

namespace assay::cli {

/// As operation(); where there is none of this name, the error says which was meant.
const OpDescriptor& operation_named(const std::string& name);

/// The foreign kernel, or the one named, or all of these operations and this back end but mutants, in order of id; empty
/// means any. Throws InputError where a name matches nothing, and Unavailable where the back end is not here.
std::vector<const Kernel*> selected_kernels(const std::vector<std::string>& ops, const std::string& backend,
                                            const std::string& kernel, const plugin::ForeignKernel* foreign);

}  // namespace assay::cli
