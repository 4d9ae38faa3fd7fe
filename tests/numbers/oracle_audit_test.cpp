// Audit of every operation's oracle: compares its values with the same reference in fifty digits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rapidcheck/Random.h>

#include "contract/descriptor.hpp"
#include "falsify/engine/audit_oracle.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/inputs.hpp"

namespace assay::falsify::oracle_audit_test {
namespace {

/// Ratio of the unit roundoffs of double and float. Bounds are of first or higher order in the unit, so that the error
/// of double is at most this fraction of a bound.
constexpr double kDouble = 0x1p-29;

/// Tensors of a problem in another number type, in contract order.
template <class T>
struct Numbers {
  std::vector<std::vector<T>> values;
  std::vector<View<T>> views;

  template <class Input>
  Numbers(const Problem& problem, const Input& input) : values(problem.values.size()) {
    for (std::size_t t = 0; t < values.size(); ++t) {
      const Shape shape = problem.shape(static_cast<int>(t));
      const bool real = is_floating(problem.dtype(static_cast<int>(t)));
      values[t].resize(static_cast<std::size_t>(shape.size()));
      for (std::size_t i = 0; i < problem.values[t].size(); ++i) values[t][i] = input(problem.values[t][i], real);
      views.emplace_back(values[t].data(), shape);
    }
  }
};

struct Audit {
  std::int64_t compared = 0, inexact = 0;
  double worst = 0;  ///< largest |double - fifty digits| over double's share of the bound
  std::string where;
};

/// `planted`: a relative error put into the oracle's values.
void audit(const OpDescriptor& op, const Case& c, double planted, Audit& found) {
  const Problem problem = make_problem(op, c, Arithmetic{});
  Numbers<Bounded> bounded(problem,
                           [](float x, bool real) { return real ? Bounded::input(x) : Bounded(x, 0, 0, false); });
  Numbers<Digits50> exact(problem, [](float x, bool) { return Digits50(x); });
  oracle(op.name).bounded(bounded.views, problem.params);
  oracle(op.name).digits50->run(exact.views, problem.params);
  for (std::size_t t = 0; t < op.tensors.size(); ++t) {
    if (op.tensors[t].role == Role::in) continue;
    for (std::size_t i = 0; i < bounded.values[t].size(); ++i) {
      const Bounded& got = bounded.values[t][i];
      if (!std::isfinite(got.value) || !std::isfinite(got.error)) continue;  // the comparator covers classes
      const auto difference =
          static_cast<double>(abs(Digits50(exact.values[t][i] - Digits50(got.value * (1 + planted)))));
      ++found.compared;
      if (difference == 0) continue;
      ++found.inexact;
      const double ratio = difference / (kDouble * got.error);
      if (ratio <= found.worst) continue;
      found.worst = ratio;
      found.where = fmt::format("{}: {}[{}] = {:.17g}, {:.3g} off where {:.3g} is allowed", describe(op, c),
                                op.tensors[t].name, i, got.value, difference, kDouble * got.error);
    }
  }
}

Audit audit(const OpDescriptor& op, double planted) {
  DrawSpec spec{.strategies = {Strategy::gaussian, Strategy::graded, Strategy::cancellation, Strategy::dominant}};
  spec.volume = 1 << 10;
  spec.directed = true;
  const rc::Gen<Case> cases = case_gen(op, spec);
  Audit found;
  for (std::uint64_t i = 0; i < 40; ++i) audit(op, cases(rc::Random(i), 0).value(), planted, found);
  return found;
}

class OracleAudit : public testing::TestWithParam<const OpDescriptor*> {};

TEST_P(OracleAudit, DoubleIsWithinItsShareOfTheBoundOfFiftyDigits) {
  const Audit found = audit(*GetParam(), 0);
  EXPECT_LE(found.worst, 1) << found.where;
  EXPECT_GT(found.compared, 0);
  fmt::print("{:<24} {:>7} elements, {:>7} of them inexact in double, largest share {:.3f}\n", GetParam()->name,
             found.compared, found.inexact, found.worst);
}

TEST_P(OracleAudit, SeesAnErrorFarBelowFloats) { EXPECT_GT(audit(*GetParam(), 0x1p-44).worst, 1); }

INSTANTIATE_TEST_SUITE_P(Operations, OracleAudit, testing::ValuesIn(operations().begin(), operations().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace assay::falsify::oracle_audit_test
