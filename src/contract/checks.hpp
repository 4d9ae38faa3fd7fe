// What a contract must satisfy beyond its syntax: names resolve, ids are well formed and unique, and
// everything it says is used or tested by something.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "contract/model.hpp"

namespace assay::contract {

/// Throws InputError where `code` cannot begin ids, which add_standard() makes with it.
void check_code(const model::Contract& contract);

/// Throws InputError for the first thing that is wrong.
void check(const model::Contract& contract);

/// The part of check() that concerns `shapes`.
void check_shapes(const model::Contract& contract);
/// The shapes of a region as ShapeRegion::extents holds them. Throws InputError where one is none of the contract's.
std::vector<Index> region_extents(const model::Contract& contract, const model::ShapeRegion& region);

/// The call in a gradient's `by`: "matmul_nt(dc, b)".
struct GradientCall {
  std::string op;
  std::vector<std::string> arguments;
};
/// Throws InputError where it is not a call with plain names as arguments.
GradientCall gradient_call(const model::Contract& contract, const model::Gradient& gradient);

}  // namespace assay::contract
