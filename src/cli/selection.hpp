// Selection of the kernels that a command acts on.
#pragma once

#include <string>
#include <vector>

#include "plugin/foreign.hpp"
#include "program/session.hpp"
#include "runtime/registry.hpp"

namespace assay::cli {

/// Like operation(); for an unknown name the error suggests the nearest one.
const OpDescriptor& operation_named(const std::string& name);

/// Returns the foreign kernel, or the named kernel, or all kernels of these operations and this back end except
/// mutants, in order of id; empty arguments match everything. Throws InputError if a name matches nothing, and
/// Unavailable if the back end is not available.
std::vector<const Kernel*> selected_kernels(const std::vector<std::string>& ops, const std::string& backend,
                                            const std::string& kernel, const plugin::ForeignKernel* foreign);

/// The kernel of --kernel, for every step of its operation in a program. It outlives what chooses by it.
class KernelOfSteps {
 public:
  /// An empty id names none. Throws InputError for a kernel of another back end.
  KernelOfSteps(const std::string& id, const Device& device, const std::string& remedy);
  KernelOfSteps(const KernelOfSteps&) = delete;
  KernelOfSteps& operator=(const KernelOfSteps&) = delete;

  /// For SessionOptions::choose.
  const Kernel* operator()(const program::Step& step);
  /// Throws InputError if no step of what was made took the kernel.
  void expect_taken(const std::string& what, const std::string& remedy) const;

 private:
  const Kernel* kernel_;
  bool taken_ = false;
};

}  // namespace assay::cli
