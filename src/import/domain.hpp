// What a published contract says of domains in mathematical notation, as far as it can be told: "A ∈ ℝ^{M×K}, x in R^n,
// n ≥ 1".
#pragma once

#include <string>
#include <vector>

namespace assay::import {

/// In lower-case letters, with '_' for '-'.
std::string lower(std::string text);

struct KnownTensor {
  std::string name;
  std::vector<std::string> shape;  ///< names of dims, or numbers
  bool output = false;
};

/// Tensors and dims that domains declare.
struct Declared {
  std::vector<KnownTensor> tensors;
  struct Dim {
    std::string name, min;
  };
  std::vector<Dim> dims;

  /// Adds what a domain (of inputs) or codomain (of the output) says. Gives the parts that it could not tell; where
  /// there are none, everything in the text is in the declarations. Names become lower-case.
  std::vector<std::string> add(const std::string& text, bool output);
};

}  // namespace assay::import
