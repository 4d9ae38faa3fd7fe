// Selection of the kernels that a command acts on.
#pragma once

#include <string>
#include <vector>

#include "plugin/foreign.hpp"
#include "runtime/registry.hpp"

namespace assay::cli {

/// Like operation(); for an unknown name the error suggests the nearest one.
const OpDescriptor& operation_named(const std::string& name);

/// Returns the foreign kernel, or the named kernel, or all kernels of these operations and this back end except
/// mutants, in order of id; empty arguments match everything. Throws InputError if a name matches nothing, and
/// Unavailable if the back end is not available.
std::vector<const Kernel*> selected_kernels(const std::vector<std::string>& ops, const std::string& backend,
                                            const std::string& kernel, const plugin::ForeignKernel* foreign);

}  // namespace assay::cli
