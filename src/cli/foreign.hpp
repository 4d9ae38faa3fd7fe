// The options that select a kernel of a shared library, or a shader.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cli/parser.hpp"
#include "plugin/foreign.hpp"

namespace assay::cli {

struct ForeignOptions {
  std::string lib, symbol, contract, shim, declare, spv, bindings, python;
};

/// Returns the limit on a call: at least a minute for Python, whose first call in a process imports modules.
std::chrono::milliseconds limit_of(bool in_python, std::chrono::milliseconds limit);

/// Adds --lib, --symbol, --shim, --spv, --bindings, --python, --contract and --declare.
void add_foreign_options(CommandOptions& command, ForeignOptions& options);

/// Throws InputError if a function in Python cannot be called as the contract says.
void expect_callable(const plugin::ForeignKernel& foreign, std::chrono::milliseconds limit);

/// Returns the selected kernel, found in its library and with the library's declarations; null if no option is given.
/// Throws InputError.
std::unique_ptr<plugin::ForeignKernel> foreign_kernel(const ForeignOptions& options, std::chrono::milliseconds limit);

}  // namespace assay::cli
