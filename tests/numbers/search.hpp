// The random search that supports the soundness of bounds, and that must itself detect planted faults.
#pragma once

#include <functional>
#include <limits>

#include "core/bounded.hpp"
#include "evaluation.hpp"
#include "reference/matmul_nt.hpp"
#include "vectors.hpp"

namespace assay::numbers {

/// Largest |computed - value| over a bound (infinite where the bound is 0 and the difference is not).
struct Tightness {
  double worst = 0;        ///< over error
  double statistical = 0;  ///< over statistical
  long outputs = 0;        ///< compared
  long skipped = 0;        ///< not compared: overflows, as some order may
  long wrong_class = 0;

  Tightness& operator|=(const Tightness& t) {
    worst = std::max(worst, t.worst);
    statistical = std::max(statistical, t.statistical);
    outputs += t.outputs, skipped += t.skipped, wrong_class += t.wrong_class;
    return *this;
  }
};

inline double over(double difference, double bound) {
  return difference == 0 ? 0 : bound > 0 ? difference / bound : std::numeric_limits<double>::infinity();
}

/// Products of rows of x and y (all of n elements), with the bounded oracle of every product, under the current
/// arithmetic.
struct Products {
  Index rows, n;
  std::vector<float> x, y;
  std::vector<Bounded> want;

  Products(Distribution d, Index rows_, Index n_, Random& random)
      : rows(rows_), n(n_), want(static_cast<std::size_t>(rows * rows)) {
    for (Index i = 0; i < rows; ++i)
      for (auto* m : {&x, &y}) {
        const Vector v = make_vector(d, m == &x, n, random);
        m->insert(m->end(), v.begin(), v.end());
      }
    std::vector<Bounded> a, b;
    for (float e : x) a.push_back(Bounded::input(e));
    for (float e : y) b.push_back(Bounded::input(e));
    reference::matmul_nt<Bounded>(View<const Bounded>(a.data(), {rows, n}), View<const Bounded>(b.data(), {rows, n}),
                                  View<Bounded>(want.data(), {rows, rows}));
  }

  /// Compares one evaluation of every product; `change` plants a fault in a bound.
  Tightness compare(const std::vector<float>& got, const std::function<void(Bounded&)>& change) const {
    Tightness t;
    for (std::size_t i = 0; i < got.size(); ++i) {
      Bounded w = want[i];
      if (change) change(w);
      if (!std::isfinite(got[i])) {
        ++(w.may_overflow ? t.skipped : t.wrong_class);
        continue;
      }
      const double difference = std::fabs(got[i] - w.value);
      t |= {over(difference, w.error), over(difference, w.statistical), 1, 0, 0};
    }
    return t;
  }

  Tightness compare(Dot dot, const std::function<void(Bounded&)>& change = {}) const {
    std::vector<float> got;
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < rows; ++j) got.push_back(dot(x.data() + i * n, y.data() + j * n, n));
    return compare(got, change);
  }

  Tightness compare_sgemm() const {
    std::vector<float> got(want.size());
    const int r = static_cast<int>(rows), k = static_cast<int>(n);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, r, r, k, 1, x.data(), k, y.data(), k, 0, got.data(), r);
    return compare(got, {});
  }
};

}  // namespace assay::numbers
