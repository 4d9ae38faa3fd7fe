// Kernels written to pass tests without computing: a right kernel, and a trick that corrupts its result where tests may
// not look.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "runtime/registry.hpp"

namespace assay::mutants {

/// Returns the number of calls in this process so far, including this one, separately for each kernel.
template <class Tag>
int call_number() {
  static int calls = 0;
  return ++calls;
}

/// Runs the naive kernel of the operation.
inline void compute(std::string_view op, const Call& call, Device& device) {
  kernel(std::string(op) + "/cpu/naive").run(call, device);
}

/// Registers a mutant with its own `run`.
inline KernelRegistration adversary(std::string_view id, std::string_view fault,
                                    std::function<void(const Call&, Device&)> run,
                                    std::source_location where = std::source_location::current()) {
  return KernelRegistration({.id = id,
                             .summary = "passes tests without computing",
                             .fault = fault,
                             .fault_class = "adversarial",
                             .run = std::move(run)},
                            where);
}

/// Registers the naive kernel with outputs corrupted by the trick.
template <class Args, void (*Trick)(const Args&)>
KernelRegistration spoiled(std::string_view id, std::string_view fault,
                           std::source_location where = std::source_location::current()) {
  const std::string_view folder = id.substr(0, id.rfind('/')), op = folder.substr(folder.rfind('/') + 1);
  const auto run = [op](const Call& call, Device& device) {
    compute(op, call, device);
    Trick(Args::unpack(call));
  };
  return adversary(id, fault, run, where);
}

}  // namespace assay::mutants
