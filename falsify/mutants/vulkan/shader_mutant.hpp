// How a wrong shader is registered: the row of the right kernel, with another id, role and fault.
#pragma once

#include "runtime/registry.hpp"

namespace assay::falsify {

inline KernelRegistration shader_mutant(Kernel right, std::string_view id, std::string_view fault) {
  right.id = id;
  right.summary = "wrong on purpose";
  right.role = KernelRole::mutant;
  right.fault = fault;
  return KernelRegistration(right);
}

}  // namespace assay::falsify
