#include "contract/certificates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "contract/certificates/elements.hpp"
#include "contract/projection.hpp"
#include "core/bounded.hpp"

namespace assay::contract {
namespace {

constexpr double kLambda = 7.5;

using Vector = std::vector<double>;
Vector zeros(Index n) { return Vector(static_cast<std::size_t>(n)); }
double at(const Vector& v, Index i) { return v[static_cast<std::size_t>(i)]; }
bool finite(double x) { return std::fabs(x) <= DBL_MAX; }

/// splitmix64 seeded by a counter of calls, never by the data.
class Draws {
 public:
  Draws() : state_(calls_.fetch_add(1, std::memory_order_relaxed) << 32) {}
  std::uint64_t bits() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

 private:
  static inline std::atomic<std::uint64_t> calls_{0};
  std::uint64_t state_;
};

Vector random_signs(Index n) {
  Draws draws;
  Vector signs = zeros(n);
  std::uint64_t bits = 0;
  for (Index j = 0; j < n; ++j) {
    if (j % 64 == 0) bits = draws.bits();
    signs[static_cast<std::size_t>(j)] = bits >> (j % 64) & 1 ? 1.0 : -1.0;
  }
  return signs;
}

/// Both sides of the check, and the inputs of its bound.
struct Sides {
  Vector left;       ///< C·r
  Vector right;      ///< A·(B·r)
  Vector magnitude;  ///< sum_p |a_ip| ||b_p||_2
  double norms = 0;  ///< sum_p ||b_p||_2
};

Sides sides_of(View<const float> a, View<const float> b, View<const float> c) {
  const Index m = c.dim(0), n = c.dim(1), k = a.dim(1);
  const Vector r = random_signs(n);
  Vector y = zeros(k), norms = zeros(k);
  Sides s{zeros(m), zeros(m), zeros(m)};
  // One core cannot use the full memory bandwidth; below this many elements a thread costs more than it saves.
  constexpr Index kWorthAThread = Index{1} << 20;
  static const Index cores = std::max(1u, std::thread::hardware_concurrency());  // the query takes microseconds
  const Index threads = std::clamp<Index>((a.size() + b.size() + c.size()) / kWorthAThread, 1, cores);
  std::barrier y_known(threads);
  const auto share = [&](Index part) {
    const auto begin = [&](View<const float> v) { return v.dim(0) * part / threads; };
    const auto project_share = [&](SecondSum beside, View<const float> v, const Vector& x, const double* w,
                                   Vector& first, double* second) {
      const Index from = begin(v), rows = v.dim(0) * (part + 1) / threads - from;
      project(beside, {v.data() + from * v.stride(0), {rows, v.dim(1)}, v.strides()}, x.data(), w, first.data() + from,
              second == nullptr ? nullptr : second + from);
    };
    project_share(SecondSum::nothing, c, r, nullptr, s.left, nullptr);
    project_share(SecondSum::squares, b, r, nullptr, y, norms.data());
    for (Index p = begin(b); p < k * (part + 1) / threads; ++p)
      norms[static_cast<std::size_t>(p)] = std::sqrt(at(norms, p));
    y_known.arrive_and_wait();
    project_share(SecondSum::magnitudes, a, y, norms.data(), s.right, s.magnitude.data());
  };
  {
    std::vector<std::jthread> others;
    for (Index part = 1; part < threads; ++part) others.emplace_back([&share, part] { share(part); });
    share(0);
  }
  for (const double x : norms) s.norms += x;
  return s;
}

/// Computes the bound of a row from its magnitude. Holds sums over j and p of rounding errors, relative and absolute.
class RowBound {
 public:
  RowBound(View<const float> a, View<const float> c, const Sides& sides, const ProductTerms& terms)
      : a_(a), c_(c), store_(storage_rounding(terms.result)) {
    const Roundings& r = Roundings::current();
    const double n = static_cast<double>(c.dim(1)), k = static_cast<double>(a.dim(1)), growth = r.growth(k);
    const double inputs = (2 + r.input_unit) * r.input_unit;
    double term = inputs + r.unit * (1 + inputs);
    for (int i = 1; i < terms.operations; ++i) term += (r.unit + r.division) * (1 + term);
    const double element = growth * (1 + term) + term;
    element_ = element * (1 + 0x1p-30);
    const double root = std::sqrt(n);
    const double evaluation = (2 * n + k + 8) * 0x1p-53 * root * (1 + element);
    relative_ = (std::min(kLambda, root) * element + evaluation) * (1 + 0x1p-30);
    // Below the normal range an input loses up to `tiny`, or becomes 0 if it is flushed.
    const double tiny = r.of.flushes_subnormals ? r.input_floor : r.input_unit * r.input_floor;
    const double larger = (1 + growth) * (1 + r.unit);
    per_magnitude_ = (tiny * terms.range + terms.absolute) * n * larger;
    per_store_ = std::min(kLambda, root) * (1 + 0x1p-30);
    flush_ = r.of.flushed_below(store_.smallest);
    absolute_ = (n * (k * r.underflow + k * r.flush) * terms.operations + tiny * (root * sides.norms + n * k * tiny)) *
                larger * terms.range;
  }
  /// Returns the bound on one sum of products whose magnitudes add up to `size`, before it is stored.
  double of_sum(double size) const { return element_ * size + absolute_; }
  double operator()(Index i, double magnitude) const {
    double bound = relative_ * magnitude + absolute_;
    if (per_magnitude_ > 0)
      for (Index p = 0; p < a_.dim(1); ++p) bound += per_magnitude_ * std::fabs(static_cast<double>(a_(i, p)));
    if (store_.unit > 0) bound += per_store_ * store_norm(i);
    return bound;
  }

 private:
  /// Returns ||s_i||_2 of the errors that the store of row i made.
  double store_norm(Index i) const {
    double squares = 0;
    for (Index j = 0; j < c_.dim(1); ++j) {
      const double size = std::max(std::fabs(static_cast<double>(c_(i, j))), store_.smallest);
      if (!finite(size)) continue;  // an infinity is no rounding: the row must be one that may overflow
      const double error = store_.unit * binade(size) + flush_;
      squares += error * error;
    }
    return std::sqrt(squares);
  }

  View<const float> a_, c_;
  StorageRounding store_;
  double relative_, per_magnitude_, absolute_, per_store_, flush_, element_;
};

Certified violated(Index row, double left, double right, double bound) {
  return {false, fmt::format("row {}: C·r = {:.9g}, A·(B·r) = {:.9g}, {:.4g} apart where {:.4g} is the bound", row,
                             left, right, std::fabs(left - right), bound)};
}

/// Dense copy in which non-finite elements are replaced by 0.
struct Copy {
  std::vector<float> values;
  Shape shape;
  explicit Copy(View<const float> v) : values(static_cast<std::size_t>(v.size())), shape(v.shape()) {
    for (Index i = 0; i < v.dim(0); ++i)
      for (Index j = 0; j < v.dim(1); ++j) view()(i, j) = v(i, j);
  }
  View<float> view() { return {values.data(), shape}; }
};

using Places = std::vector<std::vector<Index>>;

/// Returns, for every row of v, the columns of its non-finite elements.
Places nonfinite_of(View<const float> v) {
  Places places(static_cast<std::size_t>(v.dim(0)));
  for (Index i = 0; i < v.dim(0); ++i)
    for (Index j = 0; j < v.dim(1); ++j)
      if (!finite(v(i, j))) places[static_cast<std::size_t>(i)].push_back(j);
  return places;
}

/// The check in the presence of NaN, infinities or overflow.
class NonfiniteCheck {
 public:
  NonfiniteCheck(View<const float> a, View<const float> b, View<const float> c, const ProductTerms& terms)
      : a_(a), b_(b), c_(c), terms_(terms), rows_(nonfinite_of(a)), columns_(nonfinite_of(b.transposed())),
        largest_(zeros(b.dim(0))) {
    for (Index p = 0; p < b.dim(0); ++p)
      for (Index j = 0; j < b.dim(1); ++j)
        if (const double x = std::fabs(b(p, j)); finite(x))
          largest_[static_cast<std::size_t>(p)] = std::max(at(largest_, p), x);
  }

  Certified check() const {
    if (Certified classes = check_classes(); !classes.holds) return classes;
    return check_finite();
  }

 private:
  const std::vector<Index>& row(Index i) const { return rows_[static_cast<std::size_t>(i)]; }
  const std::vector<Index>& column(Index j) const { return columns_[static_cast<std::size_t>(j)]; }

  /// Returns whether some order of evaluation may overflow in row i.
  bool may_overflow(Index i) const {
    const Roundings& r = Roundings::current();
    double sum = 0, highest = 0;
    for (Index p = 0; p < a_.dim(1); ++p)
      if (const double x = std::fabs(a_(i, p)); finite(x)) {
        sum += x * at(largest_, p);
        highest = std::max({highest, x, at(largest_, p)});
      }
    const double inputs = 1 + r.input_unit;
    const double grown = sum * inputs * inputs * (1 + r.unit) * (1 + r.growth(static_cast<double>(a_.dim(1)))) *
                         (1 + 0x1p-20) * terms_.range;
    const double most = std::min(r.largest, storage_rounding(terms_.result).limit);
    return !(grown <= most) || highest * inputs > r.input_largest;
  }

  /// Returns the sum of the products with a non-finite factor: NaN, an infinity, or 0 if there is none.
  double special_sum(Index i, Index j, std::size_t& work) const {
    double sum = 0;
    for (const auto* places : {&row(i), &column(j)})
      for (Index p : *places) {
        ++work;
        sum += static_cast<double>(a_(i, p)) * b_(p, j);
        if (std::isnan(sum)) return sum;
      }
    return sum;
  }

  /// Returns whether flushing may turn inf * subnormal into inf * 0.
  bool flush_matters(Index i, Index j) const {
    if (!current_arithmetic().flushes_subnormals) return false;
    const auto small = [](double x) { return x != 0 && std::fabs(x) < FLT_MIN; };
    return std::ranges::any_of(row(i), [&](Index p) { return small(b_(p, j)); }) ||
           std::ranges::any_of(column(j), [&](Index p) { return small(a_(i, p)); });
  }

  /// Checks every element that depends on a non-finite input, as long as this costs no more than a few products.
  Certified check_classes() const {
    std::size_t work = 0;
    const auto budget = static_cast<std::size_t>(64 * (a_.size() + b_.size() + c_.size()));
    for (Index i = 0; i < c_.dim(0); ++i) {
      const bool overflow = may_overflow(i);
      for (Index j = 0; j < c_.dim(1) && work < budget; ++j) {
        if (row(i).empty() && column(j).empty()) continue;
        const double want = special_sum(i, j, work), got = c_(i, j);
        const bool right = std::isnan(want) ? std::isnan(got) : got == want || (overflow && !finite(got));
        if (!right && !flush_matters(i, j))
          return {false, fmt::format("c[{}, {}] = {}, and its infinite or NaN products sum to {}", i, j, got, want)};
      }
    }
    return {};
  }

  /// Checks all other elements: the rows and columns above are left out.
  Certified check_finite() const {
    Copy a(a_), b(b_), c(c_);
    for (Index i = 0; i < c_.dim(0); ++i)
      for (Index p = 0; p < a_.dim(1) && !row(i).empty(); ++p) a.view()(i, p) = 0;
    for (Index j = 0; j < c_.dim(1); ++j)
      for (Index p = 0; p < b_.dim(0) && !column(j).empty(); ++p) b.view()(p, j) = 0;
    for (Index i = 0; i < c_.dim(0); ++i)
      for (Index j = 0; j < c_.dim(1); ++j)
        if (!row(i).empty() || !column(j).empty()) c.view()(i, j) = 0;
    const Sides s = sides_of(a.view(), b.view(), c.view());
    const RowBound bound(a.view(), c.view(), s, terms_);
    for (Index i = 0; i < c_.dim(0); ++i) {
      const double limit = bound(i, at(s.magnitude, i));
      if (std::fabs(at(s.left, i) - at(s.right, i)) <= limit) continue;
      if ((!finite(at(s.left, i)) || Roundings::current().saturates) && may_overflow(i)) {
        if (Certified infinite = check_infinite(i, bound); !infinite.holds) return infinite;
        continue;
      }
      return violated(i, at(s.left, i), at(s.right, i), limit);
    }
    return {};
  }

  /// Checks that each infinite element of a row is a sum that its store makes infinite, as long as this costs no more
  /// than a few products.
  Certified check_infinite(Index i, const RowBound& bound) const {
    const Roundings& r = Roundings::current();
    const double limit = storage_rounding(terms_.result).limit;
    if (terms_.operations > 1 || terms_.range > 1 || terms_.absolute > 0) return {};
    for (Index j = 0; j < c_.dim(1); ++j) {
      const double got = c_(i, j);
      if (finite(got) || !row(i).empty() || !column(j).empty()) continue;
      if (infinite_work_ >= 64 * (a_.size() + b_.size() + c_.size())) return {};
      infinite_work_ += a_.dim(1);
      double sum = 0, size = 0, highest = 0;
      for (Index p = 0; p < a_.dim(1); ++p) {
        const double left = a_(i, p), right = b_(p, j);
        sum += left * right;
        size += std::fabs(left * right);
        highest = std::max({highest, std::fabs(left), std::fabs(right)});
      }
      // Sums that float32 may not hold are infinite, or NaN, in some order.
      if (!(size + bound.of_sum(size) <= r.largest) || highest * (1 + r.input_unit) > r.input_largest) continue;
      const double reach = std::copysign(sum, got) == sum ? std::fabs(sum) : -std::fabs(sum);
      if (!std::isnan(got) && reach + bound.of_sum(size) >= limit) continue;
      return {false, fmt::format("c[{}, {}] = {}, and its products sum to {:.9g}", i, j, got, sum)};
    }
    return {};
  }

  View<const float> a_, b_, c_;
  ProductTerms terms_;
  mutable Index infinite_work_ = 0;
  Places rows_, columns_;
  Vector largest_;  ///< largest finite |b_pj| of each p
};

}  // namespace

Certified freivalds(View<const float> a, View<const float> b, View<const float> c, const ProductTerms& terms) {
  if (c.size() == 0) return {};
  const Sides s = sides_of(a, b, c);
  const RowBound bound(a, c, s, terms);
  for (Index i = 0; i < c.dim(0); ++i) {
    const double limit = bound(i, at(s.magnitude, i)), left = at(s.left, i), right = at(s.right, i);
    if (std::fabs(left - right) <= limit && finite(limit)) continue;
    if (!finite(left) || !finite(right) || !finite(limit) || Roundings::current().saturates)
      return NonfiniteCheck(a, b, c, terms).check();
    return violated(i, left, right, limit);
  }
  return {};
}

Certified freivalds(const StorageView& a, const StorageView& b, const StorageView& c) {
  const Widened left(a), right(b), result(c);
  return freivalds(left.view(), right.view(), result.view(), {.result = c.dtype()});
}

namespace {

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
__extension__ using Wide = __int128;

std::uint64_t reduce(Wide x) {
  const Wide r = x % static_cast<Wide>(kPrime);
  return static_cast<std::uint64_t>(r < 0 ? r + static_cast<Wide>(kPrime) : r);
}

bool small_integer(float x) { return std::fabs(x) < 0x1p31f && std::trunc(x) == x; }

/// Computes out[i] = sum_j m_ij x_j mod p. Terms are below 2^92, so 2^35 of them fit.
std::vector<std::uint64_t> project_exact(View<const float> m, const std::vector<std::uint64_t>& x, bool& integers) {
  std::vector<Wide> sums(static_cast<std::size_t>(m.dim(0)));
  const auto step = [&](Index i, Index j) {
    const float v = m(i, j);
    if (!small_integer(v)) integers = false;
    else
      sums[static_cast<std::size_t>(i)] +=
          static_cast<Wide>(static_cast<std::int64_t>(v)) * static_cast<std::int64_t>(x[static_cast<std::size_t>(j)]);
  };
  if (m.stride(1) <= m.stride(0))
    for (Index i = 0; i < m.dim(0); ++i)
      for (Index j = 0; j < m.dim(1); ++j) step(i, j);
  else
    for (Index j = 0; j < m.dim(1); ++j)
      for (Index i = 0; i < m.dim(0); ++i) step(i, j);
  std::vector<std::uint64_t> out(sums.size());
  std::ranges::transform(sums, out.begin(), reduce);
  return out;
}

}  // namespace

Certified freivalds_exact(View<const float> a, View<const float> b, View<const float> c) {
  if (c.size() == 0) return {};
  Draws draws;
  std::vector<std::uint64_t> r(static_cast<std::size_t>(c.dim(1)));
  for (std::uint64_t& x : r) do
      x = draws.bits() >> 3;
    while (x == kPrime);
  bool inputs = true, outputs = true;
  const auto right = project_exact(a, project_exact(b, r, inputs), inputs);
  if (!inputs) throw std::logic_error("freivalds_exact: a and b must hold integers below 2^31");
  const auto left = project_exact(c, r, outputs);
  if (!outputs) return {false, "an element of c is no integer"};
  for (std::size_t i = 0; i < left.size(); ++i)
    if (left[i] != right[i])
      return {false, fmt::format("row {}: C·r = {}, A·(B·r) = {} modulo 2^61 - 1", i, left[i], right[i])};
  return {};
}

}  // namespace assay::contract
