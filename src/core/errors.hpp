// The errors the library throws. Nothing in the library prints or exits.
#pragma once

#include <stdexcept>
#include <string>

namespace assay {

/// The caller's fault: a pre- or postcondition of a contract is false.
/// what() reads `Contract [matmul] Pre-condition violated: a.len() == m * k (MM-PRE-001): a.len() = 3, m*k = 4`.
class ContractViolation : public std::runtime_error {
 public:
  enum class Kind { precondition, postcondition };

  ContractViolation(std::string op, Kind kind, std::string clause, std::string says, std::string values);

  std::string op;
  Kind kind;
  std::string clause;  ///< id of the clause, such as MM-PRE-001
  std::string says;    ///< the condition as the contract words it
  std::string values;  ///< what its sides evaluated to
};

/// This machine lacks something (a device, a library, a feature), or a kernel cannot take a case.
class Unavailable : public std::runtime_error {
 public:
  Unavailable(std::string what, std::string why);

  std::string subject;
  std::string why;
};

/// A device's own interface reported a failure.
class DeviceError : public std::runtime_error {
 public:
  /// `code` is the interface's own name for the failure, such as VK_ERROR_DEVICE_LOST.
  DeviceError(std::string call, std::string code, std::string detail = {});

  std::string call;
  std::string code;
};

/// Something handed to us (YAML, JSON, a command line, a file) is not well formed.
/// what() is one sentence: place, what is wrong, remedy.
class InputError : public std::runtime_error {
 public:
  InputError(std::string where, std::string problem, std::string remedy);

  std::string where;  ///< file:line:column, or the option
  std::string problem;
  std::string remedy;
};

}  // namespace assay
