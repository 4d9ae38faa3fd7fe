#include "contract/certificates/freivalds_partial.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::contract {
namespace {

std::vector<Index> kept(const std::vector<bool>& left_out) {
  std::vector<Index> list;
  for (std::size_t i = 0; i < left_out.size(); ++i)
    if (!left_out[i]) list.push_back(static_cast<Index>(i));
  return list;
}

std::vector<Index> all(Index n) { return kept(std::vector<bool>(static_cast<std::size_t>(n))); }

/// Owns a copy of the given rows and columns of a matrix.
struct Part {
  std::vector<float> values;
  Shape shape;

  Part(View<const float> v, const std::vector<Index>& rows, const std::vector<Index>& columns)
      : shape{static_cast<Index>(rows.size()), static_cast<Index>(columns.size())} {
    values.reserve(rows.size() * columns.size());
    for (const Index i : rows)
      for (const Index j : columns) values.push_back(v(i, j));
  }
  View<const float> view() const { return {values.data(), shape}; }
};

}  // namespace

bool ExcludedLines::any() const {
  return std::ranges::find(rows, true) != rows.end() || std::ranges::find(columns, true) != columns.end();
}

Certified freivalds_partial(const ExcludedLines& left_out, View<const float> a, View<const float> b,
                            View<const float> c, const ProductTerms& terms) {
  if (!left_out.any()) return freivalds(a, b, c, terms);
  const std::vector<Index> rows = kept(left_out.rows), columns = kept(left_out.columns), inner = all(a.dim(1));
  const Part part_a(a, rows, inner), part_b(b, inner, columns), part_c(c, rows, columns);
  Certified result = freivalds(part_a.view(), part_b.view(), part_c.view(), terms);
  if (!result.holds)
    result.values =
        fmt::format("without {} rows and {} columns in which correct kernels differ, {}",
                    left_out.rows.size() - rows.size(), left_out.columns.size() - columns.size(), result.values);
  return result;
}

}  // namespace assay::contract
