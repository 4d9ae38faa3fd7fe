// Tables that contractgen emits from the contracts into the build tree, read by the engine, the command line and the
// documentation. Nothing here is written by hand.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/shape.hpp"
#include "runtime/call.hpp"

namespace assay {

namespace contract {
struct EnforcedContract;
}

struct Kernel;
class Device;

enum class Role { in, out, inout };

/// batch: problems that stand alone, each of which costs much; heads: several of which share a group of keys; places:
/// anything else.
enum class Counts { places, batch, heads };

/// A named extent. Cases keep every dim within [min, max] and make it a multiple of `multiple` and of the dim
/// `multiple_of`.
struct DimInfo {
  std::string_view name;
  Index min = 1;
  Index max = 1;
  std::string_view says;  ///< meaning of the dim
  Index multiple = 1;
  int multiple_of = -1;              ///< index of an earlier dim
  std::span<const Index> typical{};  ///< extents of real models, drawn in addition to small ones
  bool independent = false;          ///< no output sums over it: results at different positions are independent
  Counts counts = Counts::places;
};

/// Shapes with several dims of practical size at once. `extents` holds one extent per dim, shape after shape;
/// kDrawnSmall if the shape leaves a dim open.
struct ShapeRegion {
  std::string_view name;
  std::span<const Index> extents;
};
inline constexpr Index kDrawnSmall = -1;

/// A scalar parameter: a float32 number, an integer, or one of a few choices.
struct ParamInfo {
  std::string_view name;
  double min = 0;
  double max = 0;
  double typical = 0;
  std::string_view says;
  bool integer = false;
  std::span<const double> choices{};
  std::span<const double> usual{};  ///< values used in practice, `typical` first, as float32 numbers
};

struct TensorInfo {
  std::string_view name;
  Role role = Role::in;
  DType dtype = DType::f32;
  std::string_view shape_text;  ///< "[m, k]"
  Shape (*shape)(std::span<const Index> dims) = nullptr;
  bool unit_inner_stride = true;  ///< false: any non-overlapping strides are allowed
  std::string_view says;
  bool storage = false;                                   ///< stored as f32, f16 or bf16, as the kernel declares
  Index (*least)(std::span<const Index> dims) = nullptr;  ///< smallest value of an integer tensor
  Index (*most)(std::span<const Index> dims) = nullptr;   ///< largest value
  bool saved = false;              ///< an output kept for the backward pass; no gradient flows into it
  std::string_view no_gradient{};  ///< why an input of real numbers has none
};

/// Returns whether the contract admits the number in this tensor of integers.
inline bool admits_integer(const TensorInfo& tensor, std::span<const Index> dims, double number) {
  const Index least = tensor.least ? tensor.least(dims) : 0, most = tensor.most ? tensor.most(dims) : 255;
  return number == std::floor(number) && static_cast<double>(least) <= number && number <= static_cast<double>(most);
}

/// The smallest call that violates a clause: a valid call, changed in one way.
struct Violation {
  enum class Kind { shape, strides, alias, dim, null, param, value } kind = Kind::shape;
  int tensor = -1;  ///< the tensor, dim or param changed (index in contract order)
  int other = -1;   ///< alias: the tensor whose memory it takes
  Shape (*value)(std::span<const Index> dims) = nullptr;  ///< new shape or strides; for dim and value: one number
  double number = 0;                                      ///< param: the new value
};

enum class ClauseKind { requires_clause, ensures_clause, certificate };

struct ClauseInfo {
  std::string_view id;
  ClauseKind kind = ClauseKind::requires_clause;
  std::string_view says;         ///< wording in violations
  std::string_view expr;         ///< expression that is evaluated
  int line = 0;                  ///< line in the YAML
  std::span<const int> reads{};  ///< tensors whose elements the condition reads
};

/// One falsifiable claim. `by` names an engine check (differential, exact, ...) or a function of
/// falsify/properties/<op>.cpp.
struct ObligationInfo {
  std::string_view id;
  std::string_view claim;
  std::string_view by;
  std::string_view if_fails;
  int line = 0;
};

/// A choice between behaviours that all look correct, and the obligation that tests it.
struct PinInfo {
  std::string_view name;
  std::string_view says;
  std::string_view tested_by;
};

struct GradientInfo {
  int input = -1;  ///< index of the differentiable input
  std::string_view id;
  std::string_view equation;
  std::string_view by;  ///< the call that computes it, such as "matmul_nt(dc, b)"
};

enum class Nonfinite { propagate, reject, bitwise };

struct OpDescriptor {
  std::string_view name;
  std::string_view summary;
  std::string_view file;  ///< "contracts/matmul.yaml"
  std::span<const std::string_view> sources;
  std::span<const std::string_view> equations;
  std::span<const DimInfo> dims;
  std::span<const ParamInfo> params;
  std::span<const TensorInfo> tensors;
  std::span<const ClauseInfo> clauses;
  std::span<const ObligationInfo> obligations;
  std::span<const GradientInfo> gradients;
  std::span<const PinInfo> pins;
  Nonfinite nonfinite = Nonfinite::propagate;
  bool bitwise_deterministic = true;
  /// Outputs are determined bit for bit: copies, and codecs whose arithmetic the contract pins.
  bool copies = false;
  /// The operation makes its own inputs for the strategy `directed` (falsify/properties/<op>.cpp).
  bool directed = false;
  /// Why the operation as a whole has no gradients; empty if it has gradients.
  std::string_view no_gradients{};
  std::span<const ShapeRegion> shapes{};
  /// Number of terms that the reference evaluates; null: the number of elements.
  Index (*terms)(std::span<const Index> dims) = nullptr;

  /// The contract as code (contract/enforce.hpp).
  const contract::EnforcedContract* enforced = nullptr;
  /// Runs the kernel under the contract at the current level (contract/enforce.hpp).
  void (*checked)(const Call& call, const Kernel& kernel, Device& device) = nullptr;
  /// Evaluate the clauses of a call in host memory, whatever the level: requires; ensures and certificates, under the
  /// arithmetic that the kernel declares. Throw ContractViolation for the first that is false.
  void (*check_requires)(const Call& host) = nullptr;
  void (*check_ensures)(const Call& host, const Kernel& kernel) = nullptr;
  /// Evaluation counts of the clauses in this process, in the order of `clauses`.
  std::span<std::uint64_t> (*counters)() = nullptr;
};

/// Returns whether the function of the dims changes if only this dim changes.
template <class F>
bool depends_on(const OpDescriptor& op, std::size_t dim, F function) {
  const std::vector<Index> few(op.dims.size(), 1);
  std::vector<Index> more = few;
  more[dim] = 3;
  return !(function(few) == function(more));
}

/// Returns whether the tensor's shape depends on the dim.
inline bool shape_depends_on(const OpDescriptor& op, const TensorInfo& tensor, std::size_t dim) {
  return depends_on(op, dim, tensor.shape);
}

/// Returns whether the integers that the contract admits in this tensor depend on the dim.
inline bool range_depends_on(const OpDescriptor& op, const TensorInfo& tensor, std::size_t dim) {
  return (tensor.least && depends_on(op, dim, tensor.least)) || (tensor.most && depends_on(op, dim, tensor.most));
}

/// Returns whether the shape of an output depends on the dim.
inline bool in_outputs(const OpDescriptor& op, std::size_t dim) {
  for (const TensorInfo& tensor : op.tensors)
    if (tensor.role != Role::in && shape_depends_on(op, tensor, dim)) return true;
  return false;
}

/// Returns every operation, sorted by name.
std::span<const OpDescriptor* const> operations();
/// Throws InputError if there is no such operation.
const OpDescriptor& operation(std::string_view name);

}  // namespace assay
