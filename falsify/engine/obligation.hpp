// Links the obligations of a contract to the code that checks them. The tables are generated from the YAML, so an id
// without a check fails to link and a check without an id fails to compile.
#pragma once

#include <span>
#include <string_view>

#include "contract/descriptor.hpp"
#include "falsify/engine/outcome.hpp"

namespace assay::falsify {

class Trial;
class Random;
struct Problem;
enum class Strategy;

/// Checks one obligation on the trial's case; throws only on our own bugs.
using Check = Outcome (*)(Trial& trial);

struct Obligation {
  const ObligationInfo* info = nullptr;
  Check check = nullptr;
};

/// Makes inputs that need the operation's own knowledge: consistent saved values, packed formats, and for the strategy
/// `directed` values at which its formula is most sensitive. The values are already drawn by the strategy.
using InputHook = void (*)(Problem& problem, Strategy strategy, Random& random);

/// Checks of one operation, from its contract and its properties.
struct OperationChecks {
  std::string_view op;
  std::span<const Obligation> obligations;
  InputHook inputs = nullptr;
};
/// The generated table registers itself; what it holds is in order of the operations' names.
struct ChecksRegistration {
  explicit ChecksRegistration(std::span<const OperationChecks> table);
};

/// Returns the hook of one operation; null if its contract names none.
InputHook input_hook(std::string_view op);

/// Returns the obligations of one operation in contract order. Throws InputError if there is no such operation.
std::span<const Obligation> obligations(std::string_view op);

/// The engine's own checks, which contracts name in `by:`; `statistical` is the audit's.
namespace builtin {
Outcome frame(Trial& trial);
Outcome differential(Trial& trial);
Outcome exact(Trial& trial);
Outcome nonfinite(Trial& trial);
Outcome determinism(Trial& trial);
Outcome postconditions(Trial& trial);
}  // namespace builtin

}  // namespace assay::falsify
