#include "falsify/engine/gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/gradient_point.hpp"

namespace assay::falsify {
namespace {

/// Ratio of double's unit roundoff to float's.
constexpr double kDouble = 0x1p-29;

double tolerances(double difference, double tolerance) {
  if (difference == 0) return 0;
  const double ratio = std::fabs(difference) / tolerance;
  return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

void record(LinkResult& result, double got, double want, double tolerance, std::string_view where, std::size_t index) {
  ++result.compared;
  const double ratio = tolerances(got - want, tolerance);
  if (!(ratio > result.worst)) return;
  result.worst = ratio;
  result.detail = fmt::format("{} {}: backward reference {:.17g}, {} {:.17g}, tolerance {:.3g}", where, index, got,
                              name(result.link), want, tolerance);
}

/// Returns the sum of x_i y_i over all tensors.
template <class T, class F>
T inner(const Values<double>& weights, const Values<F>& values, T (*part)(const F&)) {
  Sum<T> sum;
  for (std::size_t t = 0; t < weights.size(); ++t)
    for (std::size_t i = 0; i < weights[t].size(); ++i) sum += exactly<T>(weights[t][i]) * part(values[t][i]);
  return sum.value();
}

template <class T>
T itself(const T& x) {
  return x;
}
template <class T>
T derivative_of(const Dual<T>& x) {
  return x.derivative;
}
constexpr double kStep = 0x1p-300;
double complex_derivative(const std::complex<double>& x) { return x.imag() / kStep; }

class References {
 public:
  References(const GradientPoint& at, const Oracle& oracle, const BackwardOracle& backward)
      : at_(at), oracle_(oracle), backward_(backward),
        gradient_(at.gradient<double>(oracle.exact, backward.exact, at.x, at.w)),
        bounded_(
            at.gradient<Bounded>(oracle.bounded, backward.bounded, exactly<Bounded>(at.x), exactly<Bounded>(at.w))) {}

  /// Compares every element of the gradient with its column of the Jacobian.
  void check_columns(LinkResult& dual, LinkResult& complex_step) const {
    std::vector<double> unit(gradient_.size());
    for (std::size_t p = 0; p < unit.size(); ++p) {
      unit[p] = 1;
      const double by_dual = along<Dual<double>, double>(oracle_.dual, unit, 1, &derivative_of<double>);
      const Bounded bound = along<Dual<Bounded>, Bounded>(backward_.bounded_dual, unit, 1, &derivative_of<Bounded>);
      const double by_complex =
          along<std::complex<double>, double>(oracle_.complex_step, unit, kStep, &complex_derivative);
      record(dual, gradient_[p], by_dual, kDouble * (bounded_[p].error + bound.error), "element", p);
      // A complex product rounds like a dual product; a complex quotient takes six roundings, a dual quotient four.
      record(complex_step, gradient_[p], by_complex, kDouble * (bounded_[p].error + 1.5 * bound.error), "element", p);
      unit[p] = 0;
    }
  }

  void check_adjoint(LinkResult& result) const {
    const double forward = along<Dual<double>, double>(oracle_.dual, at_.v, 1, &derivative_of<double>);
    const Bounded bound = along<Dual<Bounded>, Bounded>(backward_.bounded_dual, at_.v, 1, &derivative_of<Bounded>);
    const Bounded slope = this->slope();
    record(result, slope.value, forward, kDouble * (slope.error + bound.error), "direction", 0);
  }

  void check_differences(LinkResult& result) const {
    const double h = 0x1p-10;
    const auto central = [&](double step) { return (loss(step) - loss(-step)) / exactly<Bounded>(2 * step); };
    const Bounded coarse = central(h), fine = central(h / 2);
    const Bounded richardson = (exactly<Bounded>(4) * fine - coarse) / exactly<Bounded>(3);
    const Bounded slope = this->slope();
    const double tolerance = std::fabs(richardson.value - fine.value) + kDouble * (richardson.error + slope.error);
    record(result, slope.value, richardson.value, tolerance, "direction", 0);
  }

  void check_taylor(LinkResult& result) const {
    const Bounded start = loss(0), slope = this->slope();
    const auto remainder = [&](double h) { return loss(h) - start - exactly<Bounded>(h) * slope; };
    // Start with steps that are small relative to the curvature: rmsnorm of a short row changes direction within |x|,
    // and higher terms of a larger step may cancel the square.
    Bounded before = remainder(0x1p-14);
    for (int k = 15; k <= 23; ++k) {
      const Bounded now = remainder(std::ldexp(1, -k));
      // Halving the step divides the remainder by four (h^2) if the gradient is right, by two (h) if it is wrong:
      // 2^-1.5 lies between.
      const double limit = std::fabs(before.value) * std::exp2(-1.5) + kDouble * (before.error + now.error);
      record(result, std::fabs(now.value), 0, limit, "remainder at step 2 to the minus", static_cast<std::size_t>(k));
      before = now;
    }
  }

 private:
  /// <w, J direction>.
  template <class T, class D>
  D along(ReferenceFn<T> forward, const std::vector<double>& direction, double scale, D (*derivative)(const T&)) const {
    Values<T> x = exactly<T>(at_.x);
    for (std::size_t p = 0; p < direction.size(); ++p) {
      const double value = at_.x[at_.position][p], step = scale * direction[p];
      if constexpr (std::is_same_v<T, std::complex<double>>) x[at_.position][p] = {value, step};
      else x[at_.position][p] = T(exactly<D>(value), exactly<D>(step));
    }
    return inner<D, T>(at_.w, at_.forward<T>(forward, std::move(x)), derivative);
  }

  /// Returns <v, g>; its value comes from the double reference.
  Bounded slope() const {
    const Values<double> v{at_.v};
    Bounded slope = inner<Bounded, Bounded>(v, Values<Bounded>{bounded_}, &itself<Bounded>);
    slope.value = inner<double, double>(v, Values<double>{gradient_}, &itself<double>);
    return slope;
  }

  /// Returns L(x + h v) = <w, op(x + h v)>.
  Bounded loss(double h) const {
    Values<double> x = at_.x;
    for (std::size_t p = 0; p < at_.v.size(); ++p) x[at_.position][p] += h * at_.v[p];
    Bounded loss =
        inner<Bounded, Bounded>(at_.w, at_.forward<Bounded>(oracle_.bounded, exactly<Bounded>(x)), &itself<Bounded>);
    loss.value = inner<double, double>(at_.w, at_.forward<double>(oracle_.exact, std::move(x)), &itself<double>);
    return loss;
  }

  const GradientPoint& at_;
  const Oracle& oracle_;
  const BackwardOracle& backward_;
  std::vector<double> gradient_;
  std::vector<Bounded> bounded_;
};

}  // namespace

std::string_view name(Link link) {
  constexpr std::string_view names[] = {"dual",   "complex step", "adjoint",     "finite difference",
                                        "taylor", "kernel",       "accumulation"};
  return names[static_cast<int>(link)];
}

const LinkResult* GradientReport::broken() const {
  const auto found =
      std::ranges::find_if(links, [](const LinkResult& l) { return !(l.worst <= 1) || l.compared == 0; });
  return found == links.end() ? nullptr : &*found;
}

GradientCase draw_gradient_case(const OpDescriptor& op, int input, std::uint64_t seed) {
  Random random(derive(seed, "gradient case"));
  GradientCase c{&op, input, {}, draw_params(op, random), random.bits()};
  for (const DimInfo& dim : op.dims)
    c.dims.push_back(std::clamp<Index>(random.between(1, 9) * dim.multiple, dim.min, dim.max));
  make_valid(op, c.dims);
  return c;
}

GradientReport check_references(const GradientCase& c, const Oracle& oracle, const BackwardOracle& backward) {
  const Arithmetic plain{};
  const ArithmeticScope scope(plain);  // bounds are scaled from float's
  const GradientPoint at(c);
  const References references(at, oracle, backward);
  LinkResult dual{Link::dual, 0, 0, {}}, complex_step{Link::complex_step, 0, 0, {}}, adjoint{Link::adjoint, 0, 0, {}},
      differences{Link::finite_difference, 0, 0, {}}, taylor{Link::taylor, 0, 0, {}};
  references.check_columns(dual, complex_step);
  references.check_adjoint(adjoint);
  references.check_differences(differences);
  references.check_taylor(taylor);
  return {c.op->name,
          c.op->tensors[static_cast<std::size_t>(c.input)].name,
          {dual, complex_step, adjoint, differences, taylor}};
}

GradientReport check_gradient(std::string_view op_name, std::string_view input, std::uint64_t seed,
                              std::vector<Index> dims, std::vector<double> params) {
  const OpDescriptor& op = operation(op_name);
  const auto tensor = std::ranges::find(op.tensors, input, &TensorInfo::name);
  if (tensor == op.tensors.end())
    throw InputError("", fmt::format("{} has no tensor named {}", op_name, input), "see `assay explain`");
  if (params.empty())
    for (const ParamInfo& param : op.params) params.push_back(param.typical);
  const GradientCase c{&op, static_cast<int>(tensor - op.tensors.begin()), std::move(dims), std::move(params), seed};
  GradientReport report = check_references(c, oracle(op_name), backward_oracle(op_name));
  std::vector<const Kernel*> cpu;
  for (const Kernel& kernel : kernels())
    if (kernel.backend == Backend::cpu && kernel.role != KernelRole::mutant) cpu.push_back(&kernel);
  check_kernels(report, c, backward_oracle(op_name), cpu, run_here);
  return report;
}

}  // namespace assay::falsify
