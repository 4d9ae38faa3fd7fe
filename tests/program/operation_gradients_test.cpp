// Every operation whose contract composes gradients of calls, in a program that differentiate() made: the gradient of
// every input against derivatives of the reference, in double.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/gradient_point.hpp"
#include "falsify/engine/gradients.hpp"
#include "falsify/program/block.hpp"
#include "program/differentiate.hpp"

namespace assay::program::operation_gradients_test {
namespace {

using falsify::GradientCase;
using falsify::GradientPoint;

/// One step of an operation, and the gradients of its inputs.
class OneStep {
 public:
  OneStep(const GradientPoint& at, std::span<const int> wanted) {
    const OpDescriptor& op = *at.c.op;
    Builder b;
    std::vector<NamedNumber> params;
    std::vector<NamedDim> dims;
    for (std::size_t p = 0; p < op.params.size(); ++p) params.push_back({op.params[p].name, at.c.params[p]});
    for (std::size_t d = 0; d < op.dims.size(); ++d) dims.push_back({op.dims[d].name, at.c.dims[d]});
    for (const int t : at.inputs)
      inputs_.push_back(b.input(std::string(at.info(t).name), at.shape(t), at.info(t).dtype));
    const std::vector<Value> results = b.call(op.name, inputs_, params, dims);
    std::size_t result = 0;
    for (std::size_t t = 0; t < op.tensors.size(); ++t) {
      if (op.tensors[t].role == Role::in) continue;
      if (std::ranges::find(at.outputs, static_cast<int>(t)) != at.outputs.end()) outputs_.push_back(results[result]);
      ++result;
    }
    std::vector<Value> leaves;
    for (const int t : wanted)
      leaves.push_back(inputs_[static_cast<std::size_t>(std::ranges::find(at.inputs, t) - at.inputs.begin())]);
    d_ = differentiate(b.program(), outputs_, leaves);
  }

  template <class T>
  std::vector<std::vector<T>> gradients(const GradientPoint& at) const {
    const Plan where = plan(d_.program);
    falsify::Execution<T> run(d_.program, where, T(std::nan("")));
    for (std::size_t i = 0; i < inputs_.size(); ++i) falsify::write(run[inputs_[i]], at.x[i]);
    for (std::size_t o = 0; o < outputs_.size(); ++o) falsify::write(run[d_.upstream[o]], at.w[o]);
    run.run();
    std::vector<std::vector<T>> all;
    for (const Value g : d_.gradients) all.push_back(falsify::read(run[g]));
    return all;
  }

 private:
  std::vector<Value> inputs_, outputs_;
  Differentiated d_;
};

/// Returns <w, J e_p>, and its error in float32, of every element p of an input.
std::vector<Bounded> derivatives(const GradientCase& c) {
  const GradientPoint at(c);
  const falsify::Oracle& forward = falsify::oracle(c.op->name);
  const falsify::BackwardOracle& backward = falsify::backward_oracle(c.op->name);
  std::vector<Bounded> all;
  const auto along = [&]<class T, class D>(falsify::ReferenceFn<T> reference, std::size_t p, D) {
    falsify::Values<T> x = falsify::exactly<T>(at.x);
    x[at.position][p].derivative = falsify::exactly<D>(1);
    D sum = falsify::exactly<D>(0);
    const falsify::Values<T> y = at.forward<T>(reference, std::move(x));
    for (std::size_t o = 0; o < y.size(); ++o)
      for (std::size_t i = 0; i < y[o].size(); ++i) sum = sum + falsify::exactly<D>(at.w[o][i]) * y[o][i].derivative;
    return sum;
  };
  for (std::size_t p = 0; p < at.x[at.position].size(); ++p) {
    Bounded one = along(backward.bounded_dual, p, Bounded());
    one.value = along(forward.dual, p, 0.0);
    all.push_back(one);
  }
  return all;
}

/// Extents that expose every transposition, and extents with a side of 1, or the contract's least.
std::vector<std::vector<Index>> dims_of(const OpDescriptor& op) {
  std::vector<std::vector<Index>> all;
  for (const auto& extents : {std::vector<Index>{3, 4, 5, 2, 4, 3}, {1, 6, 2, 3, 1, 2}}) {
    all.emplace_back(extents.begin(), extents.begin() + static_cast<Index>(op.dims.size()));
    falsify::make_valid(op, all.back());
  }
  return all;
}

TEST(OperationGradients, AreThoseOfTheReferencesForEveryInput) {
  int operations_tried = 0, gradients_tried = 0;
  double worst = 0;
  for (const OpDescriptor* op : operations()) {
    std::vector<int> wanted;
    for (const GradientInfo& g : op->gradients)
      if (!g.by.empty()) wanted.push_back(g.input);
    if (op->gradients.empty()) continue;
    SCOPED_TRACE(op->name);
    for (std::size_t t = 0; t < op->tensors.size(); ++t) {
      const TensorInfo& info = op->tensors[t];
      if (info.role == Role::out || !is_floating(info.dtype)) continue;
      const bool has =
          std::ranges::find(op->gradients, static_cast<int>(t), &GradientInfo::input) != op->gradients.end();
      EXPECT_NE(has, !info.no_gradient.empty()) << info.name << " has neither a gradient nor a reason, or both";
    }
    if (wanted.empty()) continue;
    ++operations_tried;
    std::vector<int> nonzero(wanted.size());  // elements that are no zero by any rounding
    for (const auto& dims : dims_of(*op))
      for (const std::uint64_t seed : {1, 2}) {
        GradientCase c = falsify::draw_gradient_case(*op, wanted[0], seed);
        c.dims = dims;
        const GradientPoint at(c);
        const OneStep all(at, wanted);
        const auto got = all.gradients<double>(at);
        const auto bounded = all.gradients<Bounded>(at);
        ASSERT_EQ(got.size(), wanted.size());
        for (std::size_t n = 0; n < wanted.size(); ++n) {
          const TensorInfo& info = at.info(wanted[n]);
          GradientCase of = c;
          of.input = wanted[n];
          const std::vector<Bounded> want = derivatives(of);
          ASSERT_EQ(got[n].size(), want.size()) << info.name;
          for (std::size_t p = 0; p < want.size(); ++p) {
            const double bound = 0x1p-29 * (bounded[n][p].error + want[p].error),
                         difference = std::fabs(got[n][p] - want[p].value);
            EXPECT_LE(difference, bound) << info.name << " " << p << ": got " << got[n][p] << ", want "
                                         << want[p].value;
            if (bound > 0) worst = std::max(worst, difference / bound);
            nonzero[n] += std::fabs(want[p].value) > 2 * bound;
          }
          // Alone it is the same: no gradient leans on another one that is wanted.
          EXPECT_EQ(OneStep(at, std::span(&wanted[n], 1)).gradients<double>(at)[0], got[n]) << info.name;
          ++gradients_tried;
        }
      }
    for (std::size_t n = 0; n < wanted.size(); ++n)
      EXPECT_GT(nonzero[n], 0) << op->tensors[static_cast<std::size_t>(wanted[n])].name;
  }
  fmt::print("{} operations, {} gradients, largest difference / bound {:.3f}\n", operations_tried, gradients_tried,
             worst);
  EXPECT_GE(operations_tried, 23);
}

}  // namespace
}  // namespace assay::program::operation_gradients_test
