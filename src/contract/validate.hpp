// Checks of a contract beyond its syntax: names resolve, ids are well formed and unique, and every statement is used or
// tested.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "contract/model.hpp"

namespace assay::contract {

/// Throws InputError if `code` cannot begin the ids that add_standard() makes.
void check_code(const model::Contract& contract);

/// Throws InputError for the first error.
void check(const model::Contract& contract);

/// Runs the part of check() for `shapes`.
void check_shapes(const model::Contract& contract);
/// Returns the shapes of a region in the format of ShapeRegion::extents. Throws InputError for a shape that the
/// contract does not admit.
std::vector<Index> region_extents(const model::Contract& contract, const model::ShapeRegion& region);

/// The call in a gradient's `by`: "matmul_nt(dc, b)".
struct GradientCall {
  std::string op;
  std::vector<std::string> arguments;
};
/// Parses the call. Throws InputError unless it is a call with plain names as arguments.
GradientCall gradient_call(const model::Contract& contract, const model::Gradient& gradient);

}  // namespace assay::contract
