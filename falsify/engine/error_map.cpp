#include "falsify/engine/error_map.hpp"

#include <algorithm>

namespace assay::falsify {

ErrorMap error_map(std::string_view tensor, const Shape& shape, bool relative,
                   const std::function<double(std::size_t)>& error) {
  const Index columns = shape.rank() > 0 ? shape[shape.rank() - 1] : 1;
  const Index rows = columns > 0 ? shape.size() / columns : 0;
  const auto step = [](Index n) { return std::max<Index>(1, (n + ErrorMap::kMost - 1) / ErrorMap::kMost); };
  ErrorMap map{std::string(tensor), rows, columns, step(rows), step(columns), relative, {}};
  map.cells.assign(static_cast<std::size_t>(map.cell_rows() * map.cell_columns()), 0.0);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) {
      double& cell = map.cells[static_cast<std::size_t>(i / map.row_step * map.cell_columns() + j / map.column_step)];
      cell = std::max(cell, error(static_cast<std::size_t>(i * columns + j)));
    }
  return map;
}

}  // namespace assay::falsify
