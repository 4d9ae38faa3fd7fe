// Preparation of a computation's calls before its weights fill the device: compiles pipelines, loads code, creates
// handles, starts threads.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "serve/dispatch.hpp"

namespace assay::contract {

/// A call planned for later, with dense tensors from Device::allocate.
struct PlannedCall {
  std::string op;
  std::vector<Index> dims;
  std::vector<double> params{};  ///< empty: the contract's typical values
  DType storage = DType::f32;    ///< of the tensors whose format the contract leaves open

  friend bool operator==(const PlannedCall&, const PlannedCall&) = default;
};

/// Result of prewarm(); a call given several times appears once.
struct Prewarmed {
  struct Prepared {
    PlannedCall call;
    const Kernel* kernel;
  };
  struct Refused {
    PlannedCall call;
    std::string why;
  };
  std::vector<Prepared> prepared;
  std::vector<Refused> refused;
};

/// Prepares the kernels that the back end prefers for these calls (Device::prepare). Calls without a suitable
/// operation, kernel or device are refused, each with its reason, without an exception.
Prewarmed prewarm(std::span<const PlannedCall> calls, Backend backend);
/// Prepares the kernels that automatic dispatch would choose for operands in host memory. Like a call, this switches
/// off a back end that is not available.
Prewarmed prewarm(std::span<const PlannedCall> calls, Automatic);

}  // namespace assay::contract
