// The options that select a kernel of a shared library, or a shader.
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

/// Returns the selected kernel, found in its library and with the library's declarations; null if no option is given.
/// Throws InputError.
std::unique_ptr<plugin::ForeignKernel> foreign_kernel(const ForeignOptions& options, std::chrono::milliseconds limit);

}  // namespace assay::cli
