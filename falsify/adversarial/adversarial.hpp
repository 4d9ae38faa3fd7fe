// Kernels written to pass tests without computing: a right kernel, and a trick that spoils it where tests may not look.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "runtime/registry.hpp"

namespace assay::mutants {

/// Calls of this process so far, this one included; of each kernel its own.
template <class Tag>
int call_number() {
  static int calls = 0;
  return ++calls;
}

/// The naive kernel of the operation.
inline void compute(std::string_view op, const Call& call, Device& device) { kernel(std::string(op) + "/cpu/naive").run(call, device); }

/// A mutant with a `run` of its own.
inline KernelRegistration adversary(std::string_view op, std::string_view id, std::string_view fault,
                                    std::function<void(const Call&, Device&)> run) {
  return KernelRegistration({.op = op, .id = id, .backend = Backend::cpu, .source = "falsify/adversarial",
                             .summary = "passes tests without computing", .role = KernelRole::mutant, .fault = fault, .fault_class = "adversarial",
                             .run = std::move(run)});
}

/// The naive kernel, whose outputs the trick then spoils.
template <class Args, void (*Trick)(const Args&)>
KernelRegistration spoiled(std::string_view op, std::string_view id, std::string_view fault) {
  return adversary(op, id, fault, [op](const Call& call, Device& device) {
    compute(op, call, device);
    Trick(Args::unpack(call));
  });
}

}  // namespace assay::mutants
