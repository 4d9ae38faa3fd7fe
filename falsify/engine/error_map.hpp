// Map of the errors of an output, for reports.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.hpp"

namespace assay::falsify {

/// The errors of an output as a matrix: columns along its last axis, rows along all others. At most 64 x 64 cells, each
/// the largest error of its elements.
struct ErrorMap {
  static constexpr Index kMost = 64;  ///< cells along each side

  std::string tensor;
  Index rows = 0, columns = 0;          ///< of the output
  Index row_step = 1, column_step = 1;  ///< elements of one cell along each
  bool relative = false;                ///< error / bound, wrong above 1; otherwise the difference, wrong above 0
  std::vector<double> cells;            ///< row-major; infinite for an error without a difference (NaN, another class)

  Index cell_rows() const { return (rows + row_step - 1) / row_step; }
  Index cell_columns() const { return (columns + column_step - 1) / column_step; }
};

/// Maps an output's errors; `error` returns the error of the element at a dense row-major position.
ErrorMap error_map(std::string_view tensor, const Shape& shape, bool relative,
                   const std::function<double(std::size_t)>& error);

}  // namespace assay::falsify
