// Reads contracts/<op>.yaml.
#pragma once

#include <span>
#include <string>

#include "contract/model.hpp"

namespace assay::contract {

/// Reads and checks one contract. `label` is the file's name in messages and `#line`; its basename without extension
/// must be the operation's name. Throws InputError: `file:line:column: problem; remedy`.
model::Contract load(const std::string& path, const std::string& label);

/// Runs the checks that need every contract: ids are unique, gradients call existing operations. Throws InputError.
void cross_check(std::span<const model::Contract> contracts);

}  // namespace assay::contract
