#include "falsify/engine/obligation.hpp"

#include <string>

#include "core/errors.hpp"

namespace assay::falsify {
namespace {

std::span<const OperationChecks>& registered() {
  static std::span<const OperationChecks> table;
  return table;
}

const OperationChecks& checks_of(std::string_view op) {
  std::string known;
  for (const OperationChecks& checks : registered()) {
    if (checks.op == op) return checks;
    known += (known.empty() ? "" : ", ") + std::string(checks.op);
  }
  throw InputError("operation '" + std::string(op) + "'", "there is no contract of this name", "use one of: " + known);
}

}  // namespace

ChecksRegistration::ChecksRegistration(std::span<const OperationChecks> table) { registered() = table; }

InputHook input_hook(std::string_view op) { return checks_of(op).inputs; }

std::span<const Obligation> obligations(std::string_view op) { return checks_of(op).obligations; }

}  // namespace assay::falsify
