// Whether this machine has the memory that cases of given dims take: asked before any process starts.
#pragma once

#include <span>
#include <string>

#include "contract/descriptor.hpp"

namespace assay::cli {

/// The least that a case of these dims takes: tensors, copies of their values that checks keep, and the oracle's doubles with bounds.
double bytes_to_judge(const OpDescriptor& op, std::span<const Index> dims);

/// Throws InputError where `at_once` such cases take more than is free. `where`: what asks for them; `remedy`: what to ask for instead.
void expect_room(const OpDescriptor& op, std::span<const Index> dims, int at_once, const std::string& where, const std::string& remedy);

/// The bytes of one tensor, and of all of them; their number may be beyond what an Index holds.
double bytes_of(const TensorInfo& tensor, std::span<const Index> dims);
double bytes_of_tensors(const OpDescriptor& op, std::span<const Index> dims);

}  // namespace assay::cli
