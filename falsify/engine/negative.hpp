// Tests of contracts at their edge: a call that breaks one clause must be stopped by that clause, before the
// kernel; a call that breaks none must reach the kernel.
#pragma once

#include <string>
#include <string_view>

#include "contract/descriptor.hpp"

namespace assay::falsify {

/// Makes a small valid call of the operation (dims 2, 3, 4, ... where allowed, so that no two can be mistaken for
/// each other; dense), and the same call changed as the violation says. Empty where the first reaches the kernel,
/// and the second ends in ContractViolation of exactly this clause, without a kernel run and with every byte of
/// tensor memory as it was; otherwise one sentence that says what happened instead.
std::string broken_call_fault(const OpDescriptor& op, std::string_view clause, const Violation& violation);

/// Makes valid calls at the edge of what the contract admits: each dim at its least and at its largest, tensors
/// without elements at no address, padded rows and, where allowed, inner strides above 1 and columns side by side.
/// Empty where all of them reach the kernel; otherwise one sentence about the first that does not.
std::string valid_calls_fault(const OpDescriptor& op);

}  // namespace assay::falsify
