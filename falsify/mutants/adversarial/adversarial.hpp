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
inline KernelRegistration adversary(std::string_view id, std::string_view fault, std::function<void(const Call&, Device&)> run,
                                    std::source_location where = std::source_location::current()) {
  return KernelRegistration(
      {.id = id, .summary = "passes tests without computing", .fault = fault, .fault_class = "adversarial", .run = std::move(run)}, where);
}

/// The naive kernel, whose outputs the trick then spoils.
template <class Args, void (*Trick)(const Args&)>
KernelRegistration spoiled(std::string_view id, std::string_view fault, std::source_location where = std::source_location::current()) {
  const std::string_view folder = id.substr(0, id.rfind('/')), op = folder.substr(folder.rfind('/') + 1);
  const auto run = [op](const Call& call, Device& device) {
    compute(op, call, device);
    Trick(Args::unpack(call));
  };
  return adversary(id, fault, run, where);
}

}  // namespace assay::mutants
