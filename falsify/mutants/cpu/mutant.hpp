// Registration of wrong kernels.
#pragma once

#include "runtime/registry.hpp"

namespace assay::mutants {

/// A wrong kernel of `op` on the CPU; `fault` says what is wrong, with its number in the bug list if it has one.
template <class Args, void (*F)(const Args&, Device&)>
KernelRegistration cpu_mutant(std::string_view op, std::string_view id, std::string_view fault) {
  return KernelRegistration({.op = op, .id = id, .backend = Backend::cpu, .source = "falsify/mutants/cpu",
                             .summary = "wrong on purpose", .role = KernelRole::mutant, .fault = fault,
                             .run = &run_typed<Args, F>});
}

}  // namespace assay::mutants
