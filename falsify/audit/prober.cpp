#include "falsify/audit/prober.hpp"

#include <algorithm>
#include <cmath>

namespace assay::falsify::audit {
namespace {

/// A logit with a negligible exponential compared to exp(0).
constexpr float kNoExponential = -1e4F;

float& element(Problem& problem, const StridedFactor& place, Index term) {
  return problem.values[static_cast<std::size_t>(place.tensor)].at(
      static_cast<std::size_t>(place.first + term * place.step));
}

float& left(Problem& problem, const Sum& sum, Index term) {
  return term == 1 && sum.second.tensor >= 0 ? element(problem, sum.second, 0) : element(problem, sum.left, term);
}

void set_right(Problem& problem, const Sum& sum, Index term, float value) {
  if (sum.right.tensor >= 0) element(problem, sum.right, term) = value;
  else if (sum.param >= 0 && term == 1) problem.params[static_cast<std::size_t>(sum.param)] = value;
}

}  // namespace

Problem blank(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims) {
  Problem problem{&op, dims, {}, {}, kernel.storage};
  for (const ParamInfo& param : op.params) problem.params.push_back(param.typical);
  problem.values.resize(op.tensors.size());
  for (int t : inputs_of(op))
    problem.values[static_cast<std::size_t>(t)].assign(static_cast<std::size_t>(problem.shape(t).size()), 0.0F);
  return problem;
}

Prober::Runner oracle_runner(const OpDescriptor& op, const Kernel& kernel, Worker& idle) {
  return [&op, &kernel, &idle](const Problem& problem) {
    Case c;
    c.dims = problem.dims;
    c.params = problem.params;
    const std::vector<std::vector<Bounded>> want = Trial(op, kernel, c, idle).oracle(problem);
    const std::vector<int> outputs = outputs_of(op);
    Run run;
    for (std::size_t o = 0; o < want.size(); ++o) {
      std::vector<float>& values = run.outputs.emplace_back();
      for (const Bounded& x : want[o]) values.push_back(stored(problem.dtype(outputs[o]), static_cast<float>(x.value)));
    }
    return run;
  };
}

Prober::Prober(const OpDescriptor& op, const Kernel& kernel, const Sum& sum, Runner run)
    : sum_(sum), run_(std::move(run)), base_(blank(op, kernel, sum.dims)) {
  if (sum.background != nullptr) sum.background(base_);
  for (Index p = 0; p < sum.count; ++p) {
    left(base_, sum, p) = encoded(0);
    set_right(base_, sum, p, 1);
  }
  const std::vector<int> outputs = outputs_of(op);
  output_ = static_cast<std::size_t>(std::ranges::find(outputs, sum.result.tensor) - outputs.begin());
}

Prober::Prober(const OpDescriptor& op, const Kernel& kernel, const Sum& sum, Worker& worker)
    : Prober(op, kernel, sum, [&op, &kernel, &worker](const Problem& problem) {
        Case c;
        c.dims = problem.dims;
        c.params = problem.params;
        return Trial(op, kernel, c, worker).run(problem, Poison::finite);
      }) {}

DType Prober::stored_as(const StridedFactor& place) const { return base_.dtype(place.tensor); }

float Prober::encoded(float term) const {
  switch (sum_.terms) {
    case Terms::squares: return std::sqrt(term);
    case Terms::exponentials: return term > 0 ? std::log(term) : kNoExponential;
    default: return term;
  }
}

float Prober::result(const Problem& problem) {
  return run_(problem).outputs.at(output_).at(static_cast<std::size_t>(sum_.result.first));
}

double Prober::operator()(std::span<const Term> terms, float others) {
  Problem problem = base_;
  if (others != 0)
    for (Index p = 0; p < sum_.count; ++p) left(problem, sum_, p) = others;
  for (const Term& term : terms) {
    left(problem, sum_, term.at) = term.left;
    set_right(problem, sum_, term.at, term.right);
  }
  return static_cast<double>(result(problem)) / sum_.scale;
}

float Prober::shown(std::span<const Term> terms, bool raw) {
  Problem problem = base_;
  const DType dtype = stored_as(sum_.left);
  for (const Term& term : terms) left(problem, sum_, term.at) = stored(dtype, raw ? term.left : encoded(term.left));
  return result(problem);
}

}  // namespace assay::falsify::audit
