// Registers faulty copies of kernels (faults.py) as mutants.
#pragma once

#include "runtime/registry.hpp"

namespace assay::mutation {

/// One entry of a list of faults.
struct Fault {
  std::string_view kernel, id, says, fault_class;
  bool scored;
};

/// Registers `copy` as a mutant if it is a copy of the fault's kernel. `where`: in the list.
inline void register_fault(const Kernel& copy, const Fault& fault,
                           std::source_location where = std::source_location::current()) {
  if (copy.id != fault.kernel) return;
  Kernel mutant = copy;
  mutant.id = fault.id;
  mutant.fault = fault.says;
  mutant.fault_class = fault.fault_class;
  mutant.scored = fault.scored;
  KernelRegistration registration(mutant, where);
}

}  // namespace assay::mutation
