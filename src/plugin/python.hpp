// Kernels in Python: functions of a file, called in worker processes by the interpreter that hosts this library
// (src/python).
#pragma once

#include <stdexcept>
#include <string>

#include "assay/plugin.h"
#include "contract/descriptor.hpp"
#include "runtime/device.hpp"
#include "runtime/limits.hpp"

namespace assay::plugin {

/// Calls `function` of the Python file. `signature` is signature_of() of the operation. Returns an assay_status, or
/// kMisused if the function cannot be called as the contract says.
using PythonCall = int (*)(const char* file, const char* function, const char* signature, const assay_call* call);

inline constexpr int kMisused = 3;

/// Set once by the interpreter, before any command runs; null in the program `assay`.
void set_python(PythonCall call);

/// Thrown where a kernel in Python is asked for and no interpreter hosts the library.
struct NeedsPython : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// True for the file of a kernel in Python.
bool is_python(const std::string& file);

/// Throws NeedsPython without an interpreter.
void expect_python();

/// Describes the tensors and parameters of an operation: "name role" and "name type", one a line. The role of an output
/// that the kernel does not give is `absent`.
std::string signature_of(const OpDescriptor& op, const Limits& limits);

/// Calls a function of a Python file with tensors that live on `device`. Returns what it returned; it may write text to
/// `message`.
int call_python(const std::string& file, const std::string& function, const OpDescriptor& op, const Limits& limits,
                const Call& call, Device& device, char* message, std::size_t message_bytes);

}  // namespace assay::plugin
