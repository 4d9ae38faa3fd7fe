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
inline void compute(std::string_view op, const Call& call, Device& device) { kernel(std::string(op) + "/cpu/naive").run(call, device); }

/// Registers a mutant with its own `run`.
inline KernelRegistration adversary(std::string_view op, std::string_view id, std::string_view fault,
                                    std::function<void(const Call&, Device&)> run) {
  return KernelRegistration({.op = op, .id = id, .backend = Backend::cpu, .source = "falsify/adversarial",
                             .summary = "passes tests without computing", .role = KernelRole::mutant, .fault = fault, .fault_class = "adversarial",
                             .run = std::move(run)});
}

/// Registers the naive kernel with outputs corrupted by the trick.
template <class Args, void (*Trick)(const Args&)>
KernelRegistration spoiled(std::string_view op, std::string_view id, std::string_view fault) {
  return adversary(op, id, fault, [op](const Call& call, Device& device) {
    compute(op, call, device);
    Trick(Args::unpack(call));
  });
}

}  // namespace assay::mutants
