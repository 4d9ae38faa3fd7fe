// What the generator makes of a contract: tables that the engine, the command line and the documentation
// walk. Everything here is emitted by contractgen into the build tree; nothing is written by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/shape.hpp"
#include "runtime/call.hpp"

namespace assay {

struct Kernel;
class Device;

enum class Role { in, out, inout };

/// A named extent. Cases keep every dim within [min, max].
struct DimInfo {
  std::string_view name;
  Index min = 1;
  Index max = 1;
  std::string_view says;  ///< what it counts
};

/// A scalar parameter.
struct ParamInfo {
  std::string_view name;
  double min = 0;
  double max = 0;
  double typical = 0;
  std::string_view says;
};

struct TensorInfo {
  std::string_view name;
  Role role = Role::in;
  DType dtype = DType::f32;
  std::string_view shape_text;               ///< "[m, k]"
  Shape (*shape)(std::span<const Index> dims) = nullptr;
  bool unit_inner_stride = true;             ///< false: any non-overlapping strides are allowed
  std::string_view says;
};

/// The smallest call that violates a clause: a valid call, changed in one way.
struct Violation {
  enum class Kind { shape, strides, alias, dim, null, param } kind = Kind::shape;
  int tensor = -1;                           ///< the tensor, dim or param changed (index in contract order)
  int other = -1;                            ///< alias: the tensor whose memory it takes
  Shape (*value)(std::span<const Index> dims) = nullptr;  ///< new shape or strides; for dim and param: one extent
  double number = 0;                         ///< param: the new value
};

enum class ClauseKind { requires_clause, ensures_clause, certificate };

struct ClauseInfo {
  std::string_view id;
  ClauseKind kind = ClauseKind::requires_clause;
  std::string_view says;                     ///< as violations word it
  std::string_view expr;                     ///< as evaluated
  int line = 0;                              ///< in the YAML
  std::optional<Violation> violate{};
};

/// One falsifiable claim. `by` names an engine check (differential, exact, ...) or a function of falsify/<op>.cpp.
struct ObligationInfo {
  std::string_view id;
  std::string_view claim;
  std::string_view by;
  std::string_view if_fails;
  int line = 0;
};

struct GradientInfo {
  int input = -1;                            ///< index of the differentiable input
  std::string_view id;
  std::string_view equation;
  std::string_view by;                       ///< the call that computes it, such as "matmul_nt(dc, b)"
};

enum class Nonfinite { propagate, reject, bitwise };

struct OpDescriptor {
  std::string_view name;
  std::string_view summary;
  std::string_view file;                     ///< "contracts/matmul.yaml"
  std::span<const std::string_view> sources;
  std::span<const std::string_view> equations;
  std::span<const DimInfo> dims;
  std::span<const ParamInfo> params;
  std::span<const TensorInfo> tensors;
  std::span<const ClauseInfo> clauses;
  std::span<const ObligationInfo> obligations;
  std::span<const GradientInfo> gradients;
  Nonfinite nonfinite = Nonfinite::propagate;
  bool bitwise_deterministic = true;
  /// Output elements are copies of input elements: outputs must match the reference bit for bit.
  bool copies = false;

  /// Runs the kernel behind the contract at the level in force (contract/enforce.hpp).
  void (*checked)(const Call& call, const Kernel& kernel, Device& device) = nullptr;
  /// Evaluations of each clause in this process, in the order of `clauses`.
  std::span<std::uint64_t> (*counters)() = nullptr;
};

/// Every operation, sorted by name.
std::span<const OpDescriptor* const> operations();
/// Throws InputError if there is no such operation.
const OpDescriptor& operation(std::string_view name);

}  // namespace assay
