// dst = src between any two layouts of a matrix on the CPU: packing, unpadding, transposed and strided views.
#include "ops/tensor_layout.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/transpose.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::TensorLayoutArgs;

/// Returns true if the elements along one axis (0: a column, 1: a row) are contiguous.
template <class T>
bool dense(const View<T>& v, int axis) {
  return v.dim(axis) <= 1 || v.stride(axis) == 1;
}

/// The naive kernel's copy, specialized by layout. Both sides with dense rows: memcpy of the whole matrix or of rows.
/// Dense rows on one side and dense columns on the other: in-register transposition. Otherwise: blocks of 32x32, small
/// enough for the first-level cache in either direction.
void rows(const TensorLayoutArgs& args, Device&) {
  const auto& [m, n, src, dst] = args;
  if (m == 0 || n == 0) return;
  if (src.contiguous() && dst.contiguous()) {
    std::memcpy(dst.data(), src.data(), static_cast<std::size_t>(m * n) * sizeof(float));
    return;
  }
  if (dense(src, 1) && dense(dst, 1)) {
    for (Index i = 0; i < m; ++i) std::memcpy(&dst(i, 0), &src(i, 0), static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  if (dense(src, 1) && dense(dst, 0))
    return transpose_blocked(m, n, src.data(), src.stride(0), dst.data(), dst.stride(1));
  if (dense(src, 0) && dense(dst, 1))
    return transpose_blocked(n, m, src.data(), src.stride(1), dst.data(), dst.stride(0));
  constexpr Index kBlock = 32;
  for (Index i0 = 0; i0 < m; i0 += kBlock)
    for (Index j0 = 0; j0 < n; j0 += kBlock)
      for (Index i = i0; i < std::min(m, i0 + kBlock); ++i)
        for (Index j = j0; j < std::min(n, j0 + kBlock); ++j) dst(i, j) = src(i, j);
}

const KernelRegistration rows_kernel{
    {.id = "tensor_layout/cpu/rows",
     .summary = "memcpy of dense rows, in-register transposition, else blocks of 32x32",
     .run = &run_typed<TensorLayoutArgs, &rows>,
     .priority = 1}};

}  // namespace
}  // namespace assay::cpu
