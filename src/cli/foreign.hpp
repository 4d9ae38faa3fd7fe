// The options that name a kernel of a shared library, or a shader.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cli/parser.hpp"
#include "plugin/foreign.hpp"

namespace assay::cli {

struct ForeignOptions {
  std::string lib, symbol, contract, shim, declare, spv, bindings;
};

/// Adds --lib, --symbol, --shim, --spv, --bindings, --contract and --declare.
void add_foreign_options(CommandOptions& command, ForeignOptions& options);

/// The kernel that they name, found in its library and with what the library declares. Null where they name none.
/// Throws InputError.
std::unique_ptr<plugin::ForeignKernel> foreign_kernel(const ForeignOptions& options, std::chrono::milliseconds limit);

}  // namespace assay::cli
