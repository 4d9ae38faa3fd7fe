// Gradients of attention.
#pragma once

#include "reference/attention.hpp"

namespace assay::reference {

/// With p_ij = exp(scale q_i · k_j - logsumexp_i) for visible j, D_i = dy_i · y_i and ds_ij = p_ij (dy_i · v_j - D_i):
/// dq_i = scale sum_j ds_ij k_j, dk_j = scale sum_i ds_ij q_i, dv_j = sum_i p_ij dy_i; dk and dv also sum over the
/// heads that share a key-value head. Shapes as in attention; dq, dk, dv are overwritten; a gradient with null data is
/// not wanted. Rows whose logsumexp is -inf are skipped. O(batch heads s t d).
/// is -inf takes no part. O(batch heads s t d).
/// Source: Dao et al., FlashAttention, NeurIPS 2022, appendix B.2.
template <class T>
void attention_backward(View<const T> q, View<const T> k, View<const T> v, View<const T> lengths, View<const T> starts,
                        View<const T> y, View<const T> logsumexp, View<const T> dy, View<T> dq, View<T> dk, View<T> dv,
                        double scale, double causal) {
  const Index batch = q.dim(0), s = q.dim(1), heads = q.dim(2), d = q.dim(3), t = k.dim(1), kv_heads = k.dim(2);
  const Index rows = heads / kv_heads * s;  // queries per key-value head: s for each of its heads
  std::vector<T> ps(static_cast<std::size_t>(rows * t)), dss = ps;
  const View<T> p(ps.data(), Shape{rows, t}), ds(dss.data(), Shape{rows, t});
  for (Index b = 0; b < batch; ++b)
    for (Index g = 0; g < kv_heads; ++g) {
      const auto head = [&](Index r) { return g * (heads / kv_heads) + r / s; };
      const auto keys = [&](Index r) {
        const bool masked = less(logsumexp(b, head(r), r % s), T(-FLT_MAX));
        return masked ? 0 : visible_keys(lengths, starts, causal != 0, b, r % s);
      };
      for (Index r = 0; r < rows; ++r) {
        const Index h = head(r), i = r % s;
        Sum<T> along;
        for (Index c = 0; c < d; ++c) along += dy(b, i, h, c) * y(b, i, h, c);
        for (Index j = 0; j < keys(r); ++j) {
          ScaledDot<T> score{T(scale)};
          Sum<T> dp;
          for (Index c = 0; c < d; ++c) {
            score.add(q(b, i, h, c), k(b, j, g, c));
            dp += dy(b, i, h, c) * v(b, j, g, c);
          }
          const T weight = attention_weight(score.value(), logsumexp(b, h, i));
          p(r, j) = factor(weight);
          ds(r, j) = factor(scaled_difference(weight, dp.value(), along.value()));
        }
        for (Index c = 0; c < d && dq.data() != nullptr; ++c) {
          ScaledDot<T> sum{T(scale)};
          for (Index j = 0; j < keys(r); ++j) sum.add(ds(r, j), k(b, j, g, c));
          dq(b, i, h, c) = sum.value();
        }
      }
      for (Index j = 0; j < t; ++j)
        for (Index c = 0; c < d; ++c) {
          ScaledDot<T> of_key{T(scale)};
          Sum<T> of_value;
          for (Index r = 0; r < rows; ++r) {
            if (j >= keys(r)) continue;
            of_key.add(ds(r, j), q(b, r % s, head(r), c));
            of_value += p(r, j) * dy(b, r % s, head(r), c);
          }
          if (dk.data() != nullptr) dk(b, j, g, c) = of_key.value();
          if (dv.data() != nullptr) dv(b, j, g, c) = of_value.value();
        }
    }
}

}  // namespace assay::reference
