// Edge tests of contracts: a clause must stop a call that breaks it before the kernel runs; a call that breaks none
// must reach the kernel.
#pragma once

#include <string>
#include <string_view>

#include "contract/descriptor.hpp"

namespace assay::falsify {

/// Makes a small valid call of the operation (dims 2, 3, 4, ... where allowed, so that no two are equal; dense), and
/// the same call changed by the violation. Returns empty if the first call reaches the kernel and the second ends in
/// ContractViolation of exactly this clause, without running the kernel and with every byte of tensor memory unchanged;
/// otherwise one sentence with the outcome.
std::string broken_call_fault(const OpDescriptor& op, std::string_view clause, const Violation& violation);

/// Makes valid calls at the edge of the contract: each dim at its minimum and maximum, tensors without elements at a
/// null address, padded rows and, if allowed, inner strides above 1 and interleaved columns. Returns empty if all of
/// them reach the kernel; otherwise one sentence about the first that does not.
std::string valid_calls_fault(const OpDescriptor& op);

}  // namespace assay::falsify
