// What kind of fault a mutant has, from the words that say what is wrong with it: for the columns of the policy table.
#pragma once

#include <span>
#include <string_view>

namespace assay::falsify::policies {

/// The classes, in the order of the table: "special" are NaN, Inf and the ends of the range, "state" what memory held,
/// what is left unwritten, and processes that end.
std::span<const std::string_view> fault_classes();

/// The class of a mutant of this operation, hand-written (its `fault`) or automatic (its family of faults).
std::string_view fault_class(std::string_view op, std::string_view fault);

}  // namespace assay::falsify::policies
