// How a wrong kernel is registered: the row of the right one, with another id, role and fault.
#pragma once

#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

inline Kernel mutant(Kernel right, std::string_view id, std::string_view fault) {
  right.id = id;
  right.summary = "wrong on purpose";
  right.role = KernelRole::mutant;
  right.fault = fault;
  return right;
}

// Some faults are undefined behaviour that a device may forgive every time: on an H200 a shuffle whose mask names lanes
// that do not exist gives the right sum, and warps of one block hardly ever overtake each other. No result is wrong there,
// so no suite can kill them; they are mutants of cuda-host alone, which decides otherwise, and what sees them on a device
// is compute-sanitizer: racecheck finds the missing barrier and the missing wait.
#define ASSAY_MUTANT(op, fault) "mutant/" ASSAY_CUDA_NAME "/" op "/" fault

}  // namespace assay::ASSAY_CUDA_NAMESPACE
