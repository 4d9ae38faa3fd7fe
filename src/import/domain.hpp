// Parses the mathematical notation of domains in published contracts: "A ∈ ℝ^{M×K}, x in R^n, n ≥ 1".
#pragma once

#include <string>
#include <vector>

namespace assay::import {

/// Returns the text in lower case, with '_' for '-'.
std::string lower(std::string text);

struct KnownTensor {
  std::string name;
  std::vector<std::string> shape;  ///< names of dims, or numbers
  bool output = false;
};

/// Tensors and dims declared by domains.
struct Declared {
  std::vector<KnownTensor> tensors;
  struct Dim {
    std::string name, min;
  };
  std::vector<Dim> dims;

  /// Adds the declarations of a domain (of inputs) or codomain (of the output). Returns the parts that were not
  /// understood; if there are none, the declarations cover the whole text. Names become lower case.
  std::vector<std::string> add(const std::string& text, bool output);
};

}  // namespace assay::import
