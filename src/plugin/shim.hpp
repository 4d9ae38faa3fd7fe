// A shim: how a C function with arguments of its own takes a call of a contract. YAML, called through libffi.
//
//     symbol: sgemm_nn                      # unless --symbol names it
//     args: [m, n, k, {constant: 1.0, as: float}, a, {leading: a}, b, {leading: b}, c, {leading: c}]
//     requires: row-major                   # other calls are refused, with this reason
//     returns: status                       # 0: done; `void`, the default: always done
//     declares: batch_invariant=no          # as --declare, which has the last word
//
// An argument is the name of a dim, a param or a tensor (its address), or a map: {dim: m, as: int64}, {param: eps, as:
// double}, {tensor: a}, {leading: a} (the stride between rows: of the last axis but one), {stride: [a, 0]} (of that
// axis, in elements), {constant: 1, as: int32}, {constant: 0, as: pointer}; or `stream`. `integers` and `reals` name
// the types of whatever says no type itself: int32 and float, unless they say otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/descriptor.hpp"

namespace assay::contract {
class Fields;
class Node;
}  // namespace assay::contract

namespace assay::plugin {

struct Shim {
  enum class Type { int32, int64, size, real32, real64, pointer };
  enum class What { dim, param, tensor, stride, constant, stream };
  struct Argument {
    What what = What::dim;
    Type type = Type::int32;
    int index = 0;      ///< of the dim, param or tensor
    int axis = 0;       ///< of a stride
    double number = 0;  ///< constant
    std::string text;   ///< as messages name it
  };

  /// Reads a shim for this operation; messages call its file `label`. Throws InputError with file:line:column.
  static Shim read(const OpDescriptor& op, const std::string& text, const std::string& label);

  /// What shims share with maps of shaders (shader.hpp): the arguments in `list` (null: none), and the keys `integers`, `reals`
  /// and `requires`.
  static Shim read_arguments(const OpDescriptor& op, const contract::Fields& fields, const contract::Node* list);
  /// An int32 or float argument as the 4 bytes of a push constant.
  static std::uint32_t word_of(const Argument& argument, const Call& call);

  /// Why the function cannot take the call: a layout that it does not handle, or a number that its type does not hold.
  std::optional<std::string> refuse(const OpDescriptor& op, const Call& call) const;
  /// Calls the function. Gives a value of assay_status (assay/plugin.h), with its text in `message`.
  int call(void* function, const Call& call, void* stream, char* message, std::size_t message_bytes) const;

  std::string symbol;  ///< empty where the shim names none
  std::string declares;
  std::vector<Argument> arguments;
  bool dense = false, row_major = false, nonempty = false;
  std::size_t alignment = 1;
  bool returns_status = false;
  std::optional<int> refused;  ///< status by which the function refuses
};

}  // namespace assay::plugin
