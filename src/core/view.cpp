#include "core/view.hpp"

#include <algorithm>
#include <vector>

namespace assay {
namespace {

struct Run {
  std::uintptr_t begin;
  std::uintptr_t end;
};

/// Returns the byte runs of a view whose innermost stride or extent is 1, sorted by address.
std::vector<Run> runs_of(std::uintptr_t base, const Shape& shape, const Shape& strides, std::size_t bytes) {
  const int inner = shape.rank() - 1;
  std::vector<Run> runs;
  Shape index = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) index[axis] = 0;
  while (true) {
    std::uintptr_t begin = base;
    for (int axis = 0; axis < inner; ++axis) begin += static_cast<std::uintptr_t>(index[axis] * strides[axis]) * bytes;
    runs.push_back({begin, begin + static_cast<std::uintptr_t>(inner < 0 ? 1 : shape[inner]) * bytes});
    int axis = inner - 1;
    while (axis >= 0 && ++index[axis] == shape[axis]) index[axis--] = 0;
    if (axis < 0) break;
  }
  std::ranges::sort(runs, {}, &Run::begin);
  return runs;
}

bool unit_inner(const Shape& shape, const Shape& strides) {
  const int inner = shape.rank() - 1;
  return inner < 0 || shape[inner] == 1 || strides[inner] == 1;
}

}  // namespace

bool self_overlap(const Shape& shape, const Shape& strides) {
  // Sort axes by stride. Each stride must exceed the reach of all axes with smaller strides.
  std::vector<std::pair<Index, Index>> axes;  // stride, extent
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 0) return false;
    if (shape[axis] > 1) axes.emplace_back(strides[axis], shape[axis]);
  }
  std::ranges::sort(axes);
  Index reach = 0;
  for (const auto& [stride, extent] : axes) {
    if (stride <= reach) return true;
    reach += stride * (extent - 1);
  }
  return false;
}

bool overlap(std::uintptr_t x, const Shape& x_shape, const Shape& x_strides, std::size_t x_bytes, std::uintptr_t y,
             const Shape& y_shape, const Shape& y_strides, std::size_t y_bytes) {
  if (!unit_inner(x_shape, x_strides) || !unit_inner(y_shape, y_strides)) return true;
  const std::vector<Run> xs = runs_of(x, x_shape, x_strides, x_bytes);
  const std::vector<Run> ys = runs_of(y, y_shape, y_strides, y_bytes);
  std::size_t i = 0, j = 0;
  while (i < xs.size() && j < ys.size()) {
    if (xs[i].end <= ys[j].begin) ++i;
    else if (ys[j].end <= xs[i].begin) ++j;
    else return true;
  }
  return false;
}

}  // namespace assay
