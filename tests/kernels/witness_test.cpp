// Each parameter needs a witness: a case drawn by a campaign in which a wrong value of the parameter exceeds the
// bounds. A parameter without a witness is untested.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "falsify/engine/draw.hpp"
#include "falsify/engine/inputs.hpp"
#include "falsify/engine/obligation.hpp"
#include "falsify/engine/oracle.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify {
namespace {

/// Tensors for the reference in T: inputs from the problem, and space for outputs.
template <class T>
struct Evaluated {
  std::vector<std::vector<T>> values;

  Evaluated(const Problem& problem, ReferenceFn<T> reference, const std::vector<double>& params)
      : values(problem.values.size()) {
    std::vector<View<T>> views;
    for (std::size_t t = 0; t < values.size(); ++t) {
      const Shape shape = problem.shape(static_cast<int>(t));
      values[t].resize(static_cast<std::size_t>(shape.size()));
      for (std::size_t i = 0; i < problem.values[t].size(); ++i) {
        if constexpr (std::is_same_v<T, Bounded>) values[t][i] = Bounded(problem.values[t][i], 0, 0, false);
        else values[t][i] = static_cast<T>(problem.values[t][i]);
      }
      views.emplace_back(values[t].data(), shape);
    }
    reference(views, params);
  }
};

/// Returns wrong values of the parameter: off by a tenth, by one, or another choice.
std::vector<double> wrong_values(const ParamInfo& info, double value) {
  std::vector<double> wrong;
  if (!info.choices.empty()) {
    for (double choice : info.choices)
      if (choice != value) wrong.push_back(choice);
  } else if (info.integer) {
    wrong.push_back(value + 1 <= info.max ? value + 1 : value - 1);
  } else {
    wrong.push_back(value == 0 ? info.max : value * 1.1);
  }
  return wrong;
}

bool leaves_the_bounds(const OpDescriptor& op, const Problem& problem, const std::vector<double>& wrong) {
  const Evaluated<Bounded> want(problem, oracle(op.name).bounded, problem.params);
  const Evaluated<double> got(problem, oracle(op.name).exact, wrong);
  for (const int t : outputs_of(op))
    for (std::size_t i = 0; i < got.values[static_cast<std::size_t>(t)].size(); ++i) {
      const Bounded& w = want.values[static_cast<std::size_t>(t)][i];
      const double g = got.values[static_cast<std::size_t>(t)][i];
      if (!w.may_overflow && std::isfinite(w.value) && std::isfinite(g) && std::fabs(g - w.value) > w.error)
        return true;
    }
  return false;
}

/// Returns the number of the first differential case that exposes a wrong parameter, or -1.
int witness(const OpDescriptor& op, std::size_t param) {
  const auto all = obligations(op.name);
  const auto differential = std::ranges::find(all, "differential", [](const Obligation& o) { return o.info->by; });
  const ArithmeticScope plain{Arithmetic{}};
  for (int number = 0; number < 100; ++number) {
    const Case c = draw(op, *differential->info, 1, static_cast<std::uint64_t>(number)).value();
    const Problem problem = make_problem(op, c, {});
    for (const double value : wrong_values(op.params[param], c.params[param])) {
      std::vector<double> wrong = c.params;
      wrong[param] = value;
      if (leaves_the_bounds(op, problem, wrong)) return number;
    }
  }
  return -1;
}

TEST(Witness, EveryParameterThatIsWrongShowsWithinAHundredCases) {
  for (const OpDescriptor* op : operations())
    for (std::size_t p = 0; p < op->params.size(); ++p)
      EXPECT_GE(witness(*op, p), 0) << op->name << ": no case tells " << op->params[p].name << " from a wrong one";
}

}  // namespace
}  // namespace assay::falsify
