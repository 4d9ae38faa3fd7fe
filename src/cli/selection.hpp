// Selection of the kernels that a command acts on.
#pragma once

#include <span>
#include <string>
#include <utility>
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
  KernelOfSteps(const std::string& id, Device& device, const std::string& remedy);
  KernelOfSteps(const KernelOfSteps&) = delete;
  KernelOfSteps& operator=(const KernelOfSteps&) = delete;

  /// For SessionOptions::choose. Throws WrongStep for a kernel that writes elsewhere: preparing it would end the process.
  const Kernel* operator()(const program::Step& step);
  /// Throws InputError if no step of these sessions, null ones left out, has the kernel: none is of its operation, or
  /// all of them store another format.
  void expect_taken(std::span<const program::Session* const> sessions, const std::string& what,
                    const std::string& remedy) const;

 private:
  const Kernel* kernel_;
  Device& device_;
  std::vector<std::pair<std::vector<Index>, std::vector<double>>> tried_;  ///< dims and params
};

}  // namespace assay::cli
