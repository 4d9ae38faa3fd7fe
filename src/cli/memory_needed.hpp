// Memory required by cases of given dims, checked before any process starts.
#pragma once

#include <span>
#include <string>

#include "contract/descriptor.hpp"

namespace assay::cli {

/// Returns the least memory for a case of these dims: tensors, copies of their values for checks, and the oracle's
/// doubles with bounds.
double bytes_to_judge(const OpDescriptor& op, std::span<const Index> dims);

/// Throws InputError if `at_once` such cases take more memory than is free. `where` names the option that requests
/// them; `remedy` says what to change.
void expect_room(const OpDescriptor& op, std::span<const Index> dims, int at_once, const std::string& where,
                 const std::string& remedy);

/// Return the bytes of one tensor, and of all tensors, as double: the number may overflow an Index.
double bytes_of(const TensorInfo& tensor, std::span<const Index> dims);
double bytes_of_tensors(const OpDescriptor& op, std::span<const Index> dims);

}  // namespace assay::cli
