// The contents of contracts/<op>.yaml after reading and checking. The loader creates the model; the generator turns it
// into code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/descriptor.hpp"

namespace assay::contract::model {

/// A position in a YAML file, counted from 1.
struct FilePosition {
  int line = 0;
  int column = 0;
};

/// Text with its position in the file, for messages and for `#line`.
struct Text {
  std::string value;
  FilePosition at;
};

struct Dim {
  Text name;
  Index min = 0;
  Index max = 0;
  std::string says;
  Text multiple{};  ///< a number or an earlier dim; may be empty
  std::vector<Index> typical{};
  bool independent = false;
  Text counts{};  ///< batch or heads; empty: neither
};

/// Joint extents of several dims: each is a number, a list of numbers, or an expression over dims above it.
struct ShapeTuple {
  struct Extent {
    Text dim;
    std::vector<Text> values;
  };
  Text at;
  std::vector<Extent> extents;
};

struct ShapeRegion {
  Text name;
  std::vector<ShapeTuple> tuples;
};

struct Param {
  Text name;
  double min = 0;
  double max = 0;
  double typical = 0;
  std::string says;
  bool integer = false;
  std::vector<double> choices{};
  std::vector<double> usual{};  ///< `typical` and the other values used in practice
};

struct Tensor {
  Text name;
  Role role = Role::in;
  DType dtype = DType::f32;
  std::vector<Text> shape;  ///< one expression over the dims per axis
  bool strided = false;     ///< any non-overlapping strides; otherwise the innermost stride is 1
  std::string says;
  bool storage = false;  ///< f32, f16 or bf16, as the kernel declares
  Text least{}, most{};  ///< range of integers: expressions over the dims
  bool saved = false;    ///< an output kept for the backward pass
  std::string no_gradient{};
};

/// A valid call changed in one way, so that one clause is the first to be false.
struct Breakage {
  Violation::Kind kind = Violation::Kind::shape;
  Text target;              ///< the tensor, dim or param changed
  Text other;               ///< alias: the tensor whose memory it takes
  std::vector<Text> value;  ///< shape and strides: one expression per axis; dim and value: one expression
  double number = 0;        ///< param: the new value
};

struct Clause {
  Text id;
  ClauseKind kind = ClauseKind::requires_clause;
  Text expr;  ///< C++: a bool, or for a certificate a Certified
  std::string says;
  std::vector<Breakage> violate;
  std::vector<Text> reads;  ///< tensors whose elements the condition reads
};

/// A choice between behaviours that all look correct, and the obligation that tests it.
struct Pin {
  Text name;
  std::string says;
  Text tested_by;
};

struct Gradient {
  Text input;
  Text id;
  std::string equation;
  Text by;  ///< the call that computes it, such as "matmul_nt(dc, b)"; empty if no kernel does
};

struct Obligation {
  Text id;
  std::string claim;
  std::string prediction;  ///< observation predicted by the claim; may be empty
  Text by;
  std::string if_fails;
};

struct Equation {
  Text name;
  std::string formula;
};

struct Contract {
  std::string file;  ///< name in messages and #line: "contracts/matmul.yaml"
  Text op;
  Text code;  ///< beginning of ids: "MM" in MM-PRE-001
  std::string summary;
  std::vector<std::string> sources;
  std::vector<Dim> dims;
  std::vector<Param> params;
  std::vector<Tensor> tensors;
  std::vector<Equation> equations;
  std::vector<ShapeRegion> shapes;
  Text terms;                   ///< number of terms of the reference, over the dims; empty: the number of elements
  std::vector<Clause> clauses;  ///< requires, then ensures
  Text nonfinite;
  Text determinism;
  bool copies = false;
  Text inputs;        ///< the function of falsify/properties/<op>.cpp that makes directed inputs; may be empty
  Text no_gradients;  ///< why there are none; may be empty
  std::vector<Pin> pins;
  std::vector<Gradient> gradients;
  std::vector<Obligation> obligations;
};

/// Return the index in contract order; -1 if there is none of that name.
int dim_index(const Contract& contract, std::string_view name);
int param_index(const Contract& contract, std::string_view name);
int tensor_index(const Contract& contract, std::string_view name);

/// Checks that the engine provides for every operation by name (`by: frame`).
inline constexpr std::string_view kBuiltinChecks[] = {"frame",     "differential", "exact",         "statistical",
                                                      "nonfinite", "determinism",  "postconditions"};
bool builtin_check(std::string_view name);

}  // namespace assay::contract::model
