// Errors thrown by the library. The library never prints or exits.
#pragma once

#include <stdexcept>
#include <string>

namespace assay {

/// Caller's fault: a pre- or postcondition of a contract is false.
/// what() reads `Contract [matmul] Pre-condition violated: a.len() == m * k (MM-PRE-001): a.len() = 3, m*k = 4`.
class ContractViolation : public std::runtime_error {
 public:
  enum class Kind { precondition, postcondition };

  ContractViolation(std::string op, Kind kind, std::string clause, std::string says, std::string values);

  std::string op;
  Kind kind;
  std::string clause;  ///< id of the clause, such as MM-PRE-001
  std::string says;    ///< condition as the contract words it
  std::string values;  ///< values of both sides of the condition
};

/// This machine lacks a device, library or feature, or a kernel does not support a case.
class Unavailable : public std::runtime_error {
 public:
  Unavailable(std::string what, std::string why);

  std::string subject;
  std::string why;
};

/// Failure reported by a device's API.
class DeviceError : public std::runtime_error {
 public:
  /// `code` is the API's name for the failure, such as VK_ERROR_DEVICE_LOST.
  DeviceError(std::string call, std::string code, std::string detail = {});

  std::string call;
  std::string code;
};

/// Malformed user input (YAML, JSON, a command line, a file). what() is one sentence: place, problem, remedy.
class InputError : public std::runtime_error {
 public:
  InputError(std::string where, std::string problem, std::string remedy);

  std::string where;  ///< file:line:column, or the option
  std::string problem;
  std::string remedy;
};

}  // namespace assay
