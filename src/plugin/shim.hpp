// A shim: maps a call of a contract to a C function with its own arguments. YAML, called through libffi.
//
//     symbol: sgemm_nn                      # unless --symbol names it
//     args: [m, n, k, {constant: 1.0, as: float}, a, {leading: a}, b, {leading: b}, c, {leading: c}]
//     requires: [row-major, k % 8 == 0]     # cases are drawn within these limits, other calls are refused
//     returns: status                       # 0: done; `void`, the default: always done
//     declares: batch_invariant=no          # like --declare, which takes precedence
//
// An argument is the name of a dim, a param or a tensor (its address), `stream`, `nullptr`, or a map:
//     {dim: m}, {param: eps}, {tensor: a}      same as the bare names
//     {leading: a}, {stride: [a, 0]}           the stride between rows (of the last axis but one), or of an axis;
//                                              in elements, or `in: bytes`
//     {elements: y}, {bytes: y}                number of elements or bytes of a tensor
//     {product: [m, n]}                        of dims
//     {expression: "(k + 255) / 256"}          any number (expression.hpp)
//     {constant: 1, as: int32}                 a number
//     {text: N}                                the address of a text; `as: char`: its first letter
//     {workspace: "4 * m * n"}                 the address of a workspace of this many bytes, aligned to 64
//     {joined: [q, k, v], axis: 2}             the address of these inputs, dense, concatenated along that axis
//     {sequence: step, count: 2}               the address of the int32 numbers step, step + 1, ...
//     {index: batch}, {value: lengths}         in a loop: the index of this call; the first element of a tensor
//
// `as` names the type: int32, int64, size_t, char, float, double or pointer; with a star (int32*), the address of such
// a number. `integers` and `reals` set the default types of arguments without `as`: int32 and float unless given.
//
// `requires` lists conditions (expression.hpp), such as `d in [64, 128]`, `causal == 1`, `s == t`; `lengths == t`, a
// condition on all elements of a tensor of integers; and `row-major`, `dense rows`, `offsets below 2^31`, `no empty
// tensors`, `aligned to 16 bytes` (32, 64). Further keys:
//     loop: [batch, heads]                     one call per index: tensors begin at this index of the axis, which
//                                              then has an extent of 1
//     in_place: {y: x}                         y holds x before the call: one pointer serves as both
//     zeroed: [dx]                             this output holds zeros before the call: the function adds to them
//     absent: [rrms]                           the function does not give this output and must not touch it; arguments
//                                              that name it are NULL
//     rejects: [ids]                           the function refuses forbidden values of these tensors, params and dims
//                                              without touching memory: it is called with such values
//     returns: {value: norm, as: double}       the return value is the single element of this output
//     done: 1                                  status of a completed call, if not 0
//     refused: [2, 3]                          statuses that refuse a call; `any`: all but `done`
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/descriptor.hpp"
#include "plugin/expression.hpp"
#include "plugin/limits.hpp"
#include "runtime/limits.hpp"

namespace assay::contract {
class Fields;
class Node;
}  // namespace assay::contract

namespace assay {
class Device;
}

namespace assay::plugin {

struct Shim {
  enum class Type { int32, int64, size, character, real32, real64, pointer };
  enum class What {
    dim,
    param,
    tensor,
    stride,
    number,
    constant,
    text,
    stream,
    workspace,
    joined,
    sequence,
    index,
    value
  };
  struct Argument {
    What what = What::dim;
    Type type = Type::int32;
    int index = 0;               ///< index of the dim, param or tensor
    int axis = 0;                ///< axis of a stride, or of concatenation
    double number = 0;           ///< constant
    std::string text;            ///< name in messages; for `text`, the text passed
    bool in_bytes = false;       ///< stride in bytes
    bool by_address = false;     ///< the function takes its address
    Expression expression{};     ///< a number, bytes of a workspace, or length of a sequence
    std::vector<int> tensors{};  ///< joined
  };

  /// Parses a shim for this operation; messages name its file `label`. Throws InputError with file:line:column.
  static Shim read(const OpDescriptor& op, const std::string& text, const std::string& label);

  /// Parses a shim for a function that takes tensors by name: `requires`, `absent`, `in_place` and `zeroed`.
  static Shim read_limits(const OpDescriptor& op, const std::string& text, const std::string& label);

  /// Parses the part that shims share with maps of shaders (shader.hpp): the arguments in `list` (null: none), and the
  /// keys `integers`, `reals` and `requires`.
  static Shim read_arguments(const OpDescriptor& op, const contract::Fields& fields, const contract::Node* list);
  /// Returns an int32 or float argument as the 4 bytes of a push constant.
  static std::uint32_t word_of(const Argument& argument, const Call& call);

  /// Returns why the function cannot take the call: a requirement, or a number that does not fit its type.
  std::optional<std::string> refuse(const OpDescriptor& op, const Call& call) const;
  /// Returns the same restrictions for drawing cases.
  Limits limits() const;
  /// Calls the function. Returns an assay_status (assay/plugin.h), with its text in `message`.
  int call(void* function, const OpDescriptor& op, const Call& call, Device& device, char* message,
           std::size_t message_bytes) const;

  std::string symbol;  ///< empty if the shim names none
  std::string declares;
  std::vector<Argument> arguments;
  bool dense = false, row_major = false, near = false;
  std::size_t alignment = 1;
  std::optional<Requirements> requirements;
  struct Fixed {
    int tensor = 0;
    Expression value;
  };
  std::vector<Fixed> fixed;  ///< tensors of integers whose elements all have this value
  std::vector<int> loops;    ///< dims, outermost first
  std::vector<int> absent, zeroed;
  std::vector<std::pair<int, int>> in_place;  ///< output, input
  std::vector<std::string> rejects;
  bool returns_status = false;
  int returned_tensor = -1;  ///< tensor whose element the function returns
  Type returned_type = Type::real32;
  int done = 0;
  bool others_refuse = false;  ///< every status except `done` refuses
  std::vector<int> refused{};  ///< statuses that refuse a call
};

}  // namespace assay::plugin
