// Parts of the checks of systems.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/program/system.hpp"

namespace assay::falsify {

using Numbers = std::map<std::string, std::vector<double>>;  ///< of inputs, parameters and caches, by name

/// Numbers that must be the same, and may differ in the sign of a zero.
template <class T>
Outcome same(std::string_view name, std::span<const T> got, std::span<const T> want, std::string_view meaning);

/// Fails with this sentence unless the claim holds.
Outcome holds(bool claim, std::string sentence);

/// Judges the rows of the wiring that have this claim, in double.
Outcome of_rows(const SystemTrial& trial, std::string_view claim);

/// Holds the constants and extents of every step to the case's configuration.
Outcome as_configured(const SystemTrial& trial);

// Of decoding (decode_obligations.cpp).
Outcome whole_prompt(const SystemTrial& trial);
Outcome other_sequences(const SystemTrial& trial);
Outcome after_reset(const SystemTrial& trial);
Outcome full_cache(const SystemTrial& trial);
Outcome decoder_by_equations(const SystemTrial& trial);

}  // namespace assay::falsify
