// A picture of how wrong an output is, for reports.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.hpp"

namespace assay::falsify {

/// The errors of an output seen as a matrix: its last axis, and all others as rows. At most 64 x 64 cells, each the largest
/// error of its elements.
struct ErrorMap {
  static constexpr Index kMost = 64;  ///< cells along each side

  std::string tensor;
  Index rows = 0, columns = 0;         ///< of the output
  Index row_step = 1, column_step = 1; ///< elements of one cell along each
  bool relative = false;               ///< error / bound, wrong above 1; otherwise the difference, wrong above 0
  std::vector<double> cells;           ///< row-major; infinite where no difference says it (NaN, another class)

  Index cell_rows() const { return (rows + row_step - 1) / row_step; }
  Index cell_columns() const { return (columns + column_step - 1) / column_step; }
};

/// `error` gives that of the element at a dense row-major position.
ErrorMap error_map(std::string_view tensor, const Shape& shape, bool relative, const std::function<double(std::size_t)>& error);

}  // namespace assay::falsify
