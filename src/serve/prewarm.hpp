// Preparing the calls of a computation before its weights fill the device: pipelines compiled, code loaded, handles
// made, threads started.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "serve/dispatch.hpp"

namespace assay::contract {

/// A call that will be made, with dense tensors as Device::allocate gives them.
struct PlannedCall {
  std::string op;
  std::vector<Index> dims;
  std::vector<double> params{};  ///< empty: the contract's typical values

  friend bool operator==(const PlannedCall&, const PlannedCall&) = default;
};

/// What prewarm came to; a call that was given several times is there once.
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

/// Prepares the kernels that the back end prefers for these calls (Device::prepare). Calls that no operation, kernel or
/// device takes are refused, each with its reason; nothing is thrown for them.
Prewarmed prewarm(std::span<const PlannedCall> calls, Backend backend);
/// The same for the kernels that automatic dispatch would choose for operands in host memory. A back end that is not
/// available is switched off by it, as by a call.
Prewarmed prewarm(std::span<const PlannedCall> calls, Automatic);

}  // namespace assay::contract
