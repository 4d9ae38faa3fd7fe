// Builds programs. Every operation that has a contract is a function of the values it reads (program/operations.hpp,
// generated).
#pragma once

#include <map>
#include <set>
#include <span>
#include <string_view>

#include "program/program.hpp"

namespace assay::program {

/// Something of a name: a parameter of an operation, or a dim that no operand's shape gives.
struct NamedNumber {
  std::string_view name;
  double value;
};
struct NamedDim {
  std::string_view name;
  Index extent;
};

/// Appends steps to a program. Every function throws InputError, with the step's label, where its arguments do not fit:
/// a shape that the contract does not name, extents that contradict each other, a read of a version that a later step
/// has overwritten.
class Builder {
 public:
  Builder();
  /// Goes on with a program.
  explicit Builder(Program program);

  // Inputs, parameters, states and gradients of a program have names of their own, since programs share by name.
  // Extents are 0 or more, and their bytes can be counted.

  /// Elements that the host sets before each run.
  Value input(std::string name, const Shape& shape, DType dtype = DType::f32);
  /// A parameter. Those that train are ranges of one storage, in f32; each frozen one has its own, since a device may
  /// limit what a kernel binds, in f32, f16 or bf16.
  Value parameter(std::string name, const Shape& shape, bool trainable = true, DType dtype = DType::f32);
  /// A frozen matrix in a format, in parts of at most `rows` rows each. With `zero_row`, a row of zeros follows each
  /// part in its storage.
  Parameter frozen_parameter(std::string name, const Shape& shape, WeightFormat format, Index rows,
                             bool zero_row = false);
  /// Frozen matrices of one width and format, not nf4, row behind row in one storage: one call multiplies them all. Each
  /// is a parameter. Returns the rows of all.
  Value frozen_stack(std::span<const NamedDim> matrices, Index columns, WeightFormat format);
  /// Elements that outlive runs, set by the host or by steps in place.
  Value state(std::string name, const Shape& shape, DType dtype = DType::f32);
  /// Zeros, which no step may overwrite.
  Value zeros(const Shape& shape, DType dtype = DType::f32);
  /// A storage in f32 that adds up over runs, as gradients of leaves do.
  Value gradient(std::string name, const Shape& shape);

  /// The same elements of a dense value in another shape.
  Value reshape(Value v, const Shape& shape);
  /// Rows [begin, end) of the outermost axis.
  Value rows(Value v, Index begin, Index end);
  /// The same elements of a dense value in another format, by a step that has a gradient: from 16 bits to f32 exactly, as
  /// the sum of one row (bias_add_backward); from f32 rounded to nearest even, as a bias of a row of zeros (bias_add). A
  /// zero may lose its sign.
  Value cast(Value v, DType dtype);
  /// Results of steps, matrices with one number of rows and one format, side by side. They come to lie in one storage:
  /// nothing may have read them. Nothing differentiates through it.
  Value join(std::span<const Value> parts);
  /// The same elements as the steps so far leave them.
  Value latest(Value v);

  /// Appends a call. `reads` holds the tensors that the operation reads, those that it changes in place among them, in
  /// the contract's order; `dims` those dims that no shape of them gives. Params that are not named take the contract's
  /// typical value only where the contract has one. Tensors whose format the contract leaves open have one format in a
  /// call, that of the operands. Returns the tensors that the operation writes, in the contract's order.
  std::vector<Value> call(std::string_view op, std::span<const Value> reads, std::span<const NamedNumber> params = {},
                          std::span<const NamedDim> dims = {});

  /// Keeps a value until the end of a run.
  void output(Value v);

  /// The full name of a parameter under the scope in force.
  std::string full_name(std::string_view name) const { return prefix_ + std::string(name); }

  /// While it lives, labels of steps and names of parameters begin with "NAME.".
  class Scope {
   public:
    Scope(Builder& builder, std::string_view name);
    ~Scope() { builder_.prefix_.resize(length_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    std::size_t length_;
  };

  /// The name, or with a number behind it the first that nothing in the program has.
  std::string free_name(const std::string& name) const;

  const Program& program() const { return program_; }
  const Shape& shape(Value v) const { return own(v).shape; }
  DType dtype(Value v) const { return program_.storages[static_cast<std::size_t>(own(v).storage)].dtype; }
  Program take() { return std::move(program_); }

 private:
  friend class Scope;
  Value add(ValueInfo info);
  bool is_own(Value v) const;
  const ValueInfo& own(Value v) const;
  std::int32_t add(Storage storage);
  Value whole(Storage storage, const Shape& shape);
  void expect_new(std::string_view what, const std::string& name);
  Value flat(std::string name, const Shape& shape);
  bool is_current(const ValueInfo& v) const;
  void expect_current(Value v, const std::string& reader) const;
  std::int32_t write(const ValueInfo& v);
  void expect_joined(Value part, Index rows, DType dtype) const;

  Program program_;
  std::string prefix_;
  struct Write {
    Index begin, end;  ///< elements of the storage
  };
  std::vector<std::vector<Write>> writes_;  ///< of each storage; the n-th one made version n
  std::map<std::string, int> labels_;       ///< how often each label was given
  std::set<std::string> names_;             ///< of parameters, and of storages that the host sets or that outlive runs
  std::map<std::string, Value> zeros_;      ///< by shape and format
  std::int32_t flat_ = -1;                  ///< the storage of parameters that train
};

}  // namespace assay::program
