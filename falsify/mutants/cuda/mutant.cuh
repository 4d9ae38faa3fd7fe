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

#define ASSAY_MUTANT(op, fault) "mutant/" ASSAY_CUDA_NAME "/" op "/" fault

}  // namespace assay::ASSAY_CUDA_NAMESPACE
