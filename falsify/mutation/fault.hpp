// Registers faulty copies of kernels (faults.py) as mutants.
#pragma once

#include "runtime/registry.hpp"

namespace assay::mutation {

/// One entry of a list of faults.
struct Fault {
  std::string_view kernel, id, says, fault_class, source;
  bool scored;
};

/// Registers `copy` as a mutant if it is a copy of the fault's kernel.
inline void register_fault(const Kernel& copy, const Fault& fault) {
  if (copy.id != fault.kernel) return;
  Kernel mutant = copy;
  mutant.id = fault.id;
  mutant.role = KernelRole::mutant;
  mutant.fault = fault.says;
  mutant.fault_class = fault.fault_class;
  mutant.scored = fault.scored;
  mutant.source = fault.source;
  KernelRegistration registration(mutant);
}

}  // namespace assay::mutation
