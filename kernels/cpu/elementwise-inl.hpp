// Maps over the elements of row-major matrices. Included once per SIMD target.
#if defined(ASSAY_KERNELS_CPU_ELEMENTWISE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_ELEMENTWISE_INL
#undef ASSAY_KERNELS_CPU_ELEMENTWISE_INL
#else
#define ASSAY_KERNELS_CPU_ELEMENTWISE_INL
#endif

#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

/// out(i, j) = f(d, in(i, j)...) for i < m, j < n. `out` may be one of the inputs. Every element, those of a tail too,
/// takes the same instructions: its bits do not depend on where it stands.
template <class F, class... In>
HWY_INLINE void map_rows(Index m, Index n, const F& f, Rows<float> out, In... in) {
  if (m > 1 && out.ld == n && ((in.ld == n) && ...)) {
    n *= m;
    m = 1;
  }
  const hn::ScalableTag<float> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  for (Index i = 0; i < m; ++i) {
    float* const to = out.data + i * out.ld;
    Index j = 0;
    for (; j + lanes <= n; j += lanes) hn::StoreU(f(d, hn::LoadU(d, in.data + i * in.ld + j)...), d, to + j);
    if (j == n) continue;
    const auto mask = hn::FirstN(d, static_cast<std::size_t>(n - j));
    store_masked(f(d, load_masked(d, in.data + i * in.ld + j, mask)...), d, to + j, mask);
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
