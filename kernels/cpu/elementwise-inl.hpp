// Maps over the elements of row-major matrices. Included once per SIMD target.
#if defined(ASSAY_KERNELS_CPU_ELEMENTWISE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_ELEMENTWISE_INL
#undef ASSAY_KERNELS_CPU_ELEMENTWISE_INL
#else
#define ASSAY_KERNELS_CPU_ELEMENTWISE_INL
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"
#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

/// Outputs of this size leave the cache before they are read again: streaming stores save reading the lines first.
inline constexpr Index kStreamedElements = Index{1} << 21;

/// to[j] = f(d, from[j]...) for j < n; `stream` selects streaming stores. All elements, including the head and the
/// tail, take the same instructions, so that the bits of an element do not depend on its position.
template <class F, class S, class... In>
HWY_INLINE void map_row(Index n, [[maybe_unused]] bool stream, const F& f, S* to, const In*... from) {
  const hn::ScalableTag<float> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const auto some = [&](Index j, Index count) HWY_ATTR {
    const auto first = static_cast<std::size_t>(count);
    store_first(d, f(d, load_first(d, from + j, first)...), to + j, first);
  };
  Index j = 0;
  if constexpr (std::is_same_v<S, float>) {
    // Advance to the first whole vector: stores that straddle cache lines cost twice, and streaming stores must be
    // aligned.
    const auto misplaced = static_cast<Index>(reinterpret_cast<std::uintptr_t>(to) / sizeof(float)) % lanes;
    j = std::min(n, misplaced == 0 ? 0 : lanes - misplaced);
    if (j > 0) some(0, j);
    if (stream) {
      for (; j + lanes <= n; j += lanes) hn::Stream(f(d, load(d, from + j)...), d, to + j);
    } else {
      for (; j + lanes <= n; j += lanes) hn::Store(f(d, load(d, from + j)...), d, to + j);
    }
  } else {
    for (; j + lanes <= n; j += lanes) store(d, f(d, load(d, from + j)...), to + j);
  }
  if (j < n) some(j, n - j);
}

/// out(i, j) = f(d, in(i, j)...) for i < m, j < n. `out` may be one of the inputs.
template <class F, class S, class... In>
HWY_INLINE void map_rows(Index m, Index n, const F& f, Rows<S> out, Rows<In>... in) {
  if (m > 1 && out.ld == n && ((in.ld == n) && ...)) {
    n *= m;
    m = 1;
  }
  [[maybe_unused]] const auto other = [&](const void* data) { return data != out.data; };
  const bool stream = std::is_same_v<S, float> && m * n >= kStreamedElements && (other(in.data) && ...);
  for (Index i = 0; i < m; ++i) map_row(n, stream, f, out.data + i * out.ld, in.data + i * in.ld...);
  if (stream) hwy::FlushStream();
}
template <class F, class... In>
HWY_INLINE void map_rows(Index m, Index n, const F& f, const View<float>& out, const View<In>&... in) {
  map_rows(m, n, f, rows_of(out), rows_of(in)...);
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
