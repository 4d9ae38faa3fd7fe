// What contracts/<op>.yaml says, read and checked: the loader makes it, the generator turns it into code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/descriptor.hpp"

namespace assay::contract::model {

/// A place in a YAML file, counted from 1.
struct Place {
  int line = 0;
  int column = 0;
};

/// Text with the place it was written at, for messages and for `#line`.
struct Text {
  std::string value;
  Place at;
};

struct Dim {
  Text name;
  Index min = 0;
  Index max = 0;
  std::string says;
  Text multiple{};  ///< a number, or an earlier dim; empty: none
  std::vector<Index> typical{};
  bool independent = false;
  Text counts{};    ///< batch or heads; empty: neither
};

/// Extents that dims have together: each is a number, a list of numbers, or an expression over dims above it.
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
  std::vector<double> usual{};  ///< `typical` and the other values in use
};

struct Tensor {
  Text name;
  Role role = Role::in;
  DType dtype = DType::f32;
  std::vector<Text> shape;  ///< one expression over the dims per axis
  bool strided = false;     ///< any non-overlapping strides; otherwise the innermost stride is 1
  std::string says;
  bool storage = false;     ///< f32, f16 or bf16, whichever the kernel declares
  Text least{}, most{};     ///< of integers: expressions over the dims
  bool saved = false;       ///< an output kept for the backward pass
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
  std::vector<Text> reads;  ///< tensors whose elements the condition looks at
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
  Text by;  ///< the call that computes it, such as "matmul_nt(dc, b)"; empty: no kernel does
};

struct Obligation {
  Text id;
  std::string claim;
  std::string prediction;  ///< what is to be seen if the claim holds; may be empty
  Text by;
  std::string if_fails;
};

struct Equation {
  Text name;
  std::string formula;
};

struct Contract {
  std::string file;  ///< as messages and #line name it: "contracts/matmul.yaml"
  Text op;
  Text code;  ///< of ids: "MM" in MM-PRE-001
  std::string summary;
  std::vector<std::string> sources;
  std::vector<Dim> dims;
  std::vector<Param> params;
  std::vector<Tensor> tensors;
  std::vector<Equation> equations;
  std::vector<ShapeRegion> shapes;
  Text terms;  ///< of the reference, over the dims; empty: as many as there are elements
  std::vector<Clause> clauses;  ///< requires, then ensures
  Text nonfinite;
  Text determinism;
  bool copies = false;
  Text inputs;        ///< the function of falsify/<op>.cpp that makes directed inputs; may be empty
  Text no_gradients;  ///< why there are none; may be empty
  std::vector<Pin> pins;
  std::vector<Gradient> gradients;
  std::vector<Obligation> obligations;
};

/// Indices in contract order; -1 where there is none of that name.
int dim_index(const Contract& contract, std::string_view name);
int param_index(const Contract& contract, std::string_view name);
int tensor_index(const Contract& contract, std::string_view name);

/// Checks that the engine offers to every operation by name (`by: frame`).
inline constexpr std::string_view kBuiltinChecks[] = {"frame",     "differential", "exact",         "statistical",
                                                      "nonfinite", "determinism",  "postconditions"};
bool builtin_check(std::string_view name);

}  // namespace assay::contract::model
