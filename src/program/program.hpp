// Programs: straight lists of steps, each one call of an operation that has a contract, over named values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/descriptor.hpp"

namespace assay::program {

/// Names a view of a storage at a version. Values of one program mean nothing in another one, unless it was built
/// alike; a builder refuses them.
struct Value {
  std::int32_t id = -1;
  std::uint32_t program = 0;  ///< Program::identity; 0: not known, and taken by any

  explicit operator bool() const { return id >= 0; }
  friend bool operator==(Value a, Value b) { return a.id == b.id; }
};

enum class Kind {
  input,      ///< set by the host before a run
  parameter,  ///< a range of the flat storage of all parameters that train, or frozen
  state,      ///< outlives runs: caches, moments
  gradient,   ///< outlives runs, zero at first; backward steps add to it
  constant,   ///< zeros
  temporary,  ///< written by one step; its memory serves others after its last use
};

/// One stretch of memory.
struct Storage {
  std::string name;
  Kind kind = Kind::temporary;
  DType dtype = DType::f32;
  Index elements = 0;
};

/// What a Value names.
struct ValueInfo {
  /// "layers.3.q_proj.weight"; of a result, its step's label and the contract's name of the tensor
  std::string name;
  std::int32_t storage = 0;
  Index offset = 0;          ///< elements from the beginning of the storage
  Shape shape, strides;      ///< strides in elements
  std::int32_t version = 0;  ///< how many steps have written to the storage
  Value base{};  ///< the value that this is a view of, of stacked matrices the first; itself where it is none
};

/// One call. Dims, params and tensors are in the contract's order. A tensor that the operation writes is the value
/// after the step; of one that it changes in place, the step reads the version before.
struct Step {
  const OpDescriptor* op = nullptr;
  std::vector<Index> dims;
  std::vector<double> params;
  std::vector<Value> tensors;
  std::string label;  ///< "layers.3.q_proj"
};

/// How a weight is stored. All but f32 are frozen. Packed ones are multiplied as they are: q4_k in super-blocks of 256
/// columns, nf4 in codes with a scale for each 64 columns. Around weights of 16 bits a model computes in their format.
enum class WeightFormat { f32, q4_k, nf4, f16, bf16 };
/// Returns "f32", "q4_k", "nf4", "f16" or "bf16".
std::string_view name(WeightFormat format);
/// True for q4_k and nf4.
bool is_packed(WeightFormat format);
/// Returns the format of activations that meet such weights: f16, bf16, or f32 for f32 and packed ones.
DType activation_dtype(WeightFormat format);
/// Bytes of a row, without the scales of nf4.
Index row_bytes(WeightFormat format, Index columns);

/// Rows of a matrix that is stored in parts.
struct PartOfRows {
  Index begin = 0, end = 0;
  Value value, scales{};
};

/// A parameter in the table of names.
struct Parameter {
  std::string name;
  Value value;
  bool trainable = true;
  Shape shape;  ///< of its elements, as a checkpoint has them
  WeightFormat format = WeightFormat::f32;
  Value scales{};                   ///< of nf4
  std::vector<PartOfRows> parts{};  ///< if there are several, and then `value` and `scales` are those of the first
};

struct Program {
  std::vector<Storage> storages;
  std::vector<ValueInfo> values;
  std::vector<Step> steps;
  std::vector<Parameter> parameters;
  std::vector<Value> outputs;  ///< kept until the end of a run
  std::uint32_t identity = 0;  ///< of the builder that began it; copies, and what goes on with it, have the same

  /// Throws InputError for a value that is none, or beyond those of this program.
  const ValueInfo& operator[](Value v) const {
    if (!holds(v)) refuse(v);
    return values[static_cast<std::size_t>(v.id)];
  }
  bool holds(Value v) const { return v.id >= 0 && static_cast<std::size_t>(v.id) < values.size(); }
  const Storage& storage_of(Value v) const { return storages.at(static_cast<std::size_t>((*this)[v].storage)); }
  /// The value that a view, or a view of a view, looks at.
  Value base_of(Value v) const {
    while ((*this)[v].base != v) v = (*this)[v].base;
    return v;
  }

  [[noreturn]] static void refuse(Value v);
};

/// "layers.3.q_proj (linear)"
std::string describe(const Step& step);

}  // namespace assay::program
