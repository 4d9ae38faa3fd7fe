// Faulty copies of kernels (faults.py) as mutants.
#pragma once

#include <map>

#include "runtime/registry.hpp"

namespace assay::mutation {

/// One entry of a list of faults.
struct Fault {
  std::string_view kernel, id, says, fault_class, source;
};

/// The classes of registered faults, by the ids of their mutants.
inline std::map<std::string_view, std::string_view>& fault_classes() {
  static std::map<std::string_view, std::string_view> classes;
  return classes;
}

/// One of the classes of faults.py; empty for a mutant that stands in no list.
inline std::string_view fault_class(const Kernel& mutant) {
  const auto at = fault_classes().find(mutant.id);
  return at == fault_classes().end() ? std::string_view{} : at->second;
}

/// Registers `copy` as a mutant where it is the copy of the fault's kernel. The file's other kernels are right.
inline void register_fault(const Kernel& copy, const Fault& fault) {
  if (copy.id != fault.kernel) return;
  fault_classes()[fault.id] = fault.fault_class;
  Kernel mutant = copy;
  mutant.id = fault.id;
  mutant.role = KernelRole::mutant;
  mutant.fault = fault.says;
  mutant.source = fault.source;
  KernelRegistration registration(mutant);
}

}  // namespace assay::mutation
