// `assay check FOLDER` where the folder holds a trace: calls that a program of the user's made, with their results.
#pragma once

#include <string>

namespace assay::cli {

/// True if the folder holds a trace (trace.json).
bool is_trace(const std::string& folder);

/// Holds each call of the trace to its contract's bounds. Returns the exit code. Throws InputError.
int check_trace(const std::string& folder, bool as_json);

}  // namespace assay::cli
