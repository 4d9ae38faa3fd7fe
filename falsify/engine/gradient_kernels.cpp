// Link 3: the float32 kernels that a contract composes a gradient of.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "contract/composition.hpp"
#include "core/errors.hpp"
#include "falsify/engine/arena.hpp"
#include "falsify/engine/comparator.hpp"
#include "falsify/engine/gradient_point.hpp"

namespace assay::falsify {
namespace {

struct Argument {
  Shape shape;
  std::vector<float> values;
};

std::vector<float> floats(const std::vector<double>& v) { return {v.begin(), v.end()}; }

/// Returns the tensor that a composition calls by this name: an input or an output of the operation, or d<output>.
Argument argument(const GradientPoint& at, const Values<double>& kept, const Values<double>& upstream,
                  std::string_view name) {
  const auto find = [&](const std::vector<int>& tensors, const Values<double>& values,
                        std::string_view prefix) -> std::optional<Argument> {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (fmt::format("{}{}", prefix, at.info(tensors[i]).name) == name)
        return Argument{at.shape(tensors[i]), floats(values[i])};
    return std::nullopt;
  };
  if (auto input = find(at.inputs, at.x, "")) return *input;
  if (auto result = find(at.kept, kept, "")) return *result;
  if (auto given = find(at.outputs, upstream, "d")) return *given;
  throw InputError(std::string(at.c.op->file),
                   fmt::format("a gradient's call names {}, which is no input, no output and no d<output>", name),
                   "use the contract's own names");
}

template <class Infos, class Value>
void by_name(const Infos& wanted, const Infos& given, const std::vector<Value>& values, std::vector<Value>& out) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::size_t j = 0; j < given.size(); ++j)
      if (wanted[i].name == given[j].name) out[i] = values[j];
}

/// The composed call. Params of the same name carry over.
Problem compose(const GradientPoint& at, const contract::Composition& composition, const Values<double>& kept,
                const Values<double>& upstream) {
  const OpDescriptor& op = operation(composition.op);
  Problem problem{&op, {}, {}, std::vector<std::vector<float>>(op.tensors.size())};
  for (const ParamInfo& param : op.params) problem.params.push_back(param.typical);
  by_name(op.params, at.c.op->params, at.c.params, problem.params);
  contract::DimBinding dims(op, std::string(at.c.op->file));
  const std::vector<int> inputs = inputs_of(op);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto t = static_cast<std::size_t>(inputs[i]);
    Argument value = argument(at, kept, upstream, composition.arguments.at(i));
    dims.shape(inputs[i], value.shape);
    problem.values[t] = std::move(value.values);
  }
  for (const auto& [d, extent] : contract::free_dims(op, *at.c.op, at.c.dims, static_cast<std::size_t>(at.c.input)))
    dims.dim(op.dims[d].name, extent);
  problem.dims = dims.dims();
  return problem;
}

/// Returns the expected gradient. Saved values reach the kernel rounded to float: the bound counts this rounding as an
/// input error.
std::vector<Bounded> want(const GradientPoint& at, const BackwardOracle& backward, const Values<double>& kept,
                          const Values<double>& upstream) {
  const auto as_input = [](const Values<double>& tensors) {
    Values<Bounded> lifted;
    for (const auto& tensor : tensors) {
      auto& values = lifted.emplace_back();
      for (double x : tensor) values.push_back(Bounded::input(static_cast<float>(x)));
    }
    return lifted;
  };
  Values<Bounded> saved = exactly<Bounded>(kept);
  for (auto& tensor : saved)
    for (Bounded& x : tensor) x.error = x.statistical = std::fabs(x.value - static_cast<float>(x.value));
  return at.backward<Bounded>(backward.bounded, as_input(at.x), std::move(saved), as_input(upstream));
}

void record(LinkResult& result, const Outcome& outcome, std::string_view kernel) {
  result.compared += outcome.elements;
  if (!(outcome.worst > result.worst) && !outcome.finding) return;
  // A finding has no finite ratio if bits are compared or the bound is zero.
  result.worst = outcome.finding ? std::max(outcome.worst, std::numeric_limits<double>::infinity()) : outcome.worst;
  result.detail = fmt::format("{}{}", kernel, outcome.finding ? ": " + outcome.finding->message : std::string());
}

}  // namespace

std::vector<std::vector<float>> run_here(const Kernel& kernel, const Problem& problem) {
  Arena arena(std::size_t{1} << 24);
  Case plain;
  plain.dims = problem.dims;
  plain.params = problem.params;
  const Stage stage(arena, problem, plain, Poison::nan);
  Call call{problem.dims, problem.params, {}};
  for (const Placed& t : stage.tensors()) call.tensors.push_back({t.dtype, arena.base() + t.data, t.shape, t.strides});
  Device& here = device(kernel.backend);
  problem.op->checked(call, kernel, here);
  here.synchronize();
  std::vector<std::vector<float>> outputs;
  for (int t : outputs_of(*problem.op)) outputs.push_back(stage.read(t));
  return outputs;
}

void check_kernels(GradientReport& report, const GradientCase& c, const BackwardOracle& backward,
                   std::span<const Kernel* const> kernels, const RunKernel& run) {
  const auto info = std::ranges::find(c.op->gradients, c.input, &GradientInfo::input);
  if (info == c.op->gradients.end() || info->by.empty()) return;
  const contract::Composition composition(info->by);
  const std::vector<int> outputs = outputs_of(operation(composition.op));
  const auto gradient = static_cast<int>(contract::gradient_output(operation(composition.op), report.input));
  const auto output = static_cast<std::size_t>(std::ranges::find(outputs, gradient) - outputs.begin());
  const GradientPoint at(c);
  Values<double> kept;
  at.forward<double>(falsify::oracle(c.op->name).exact, at.x, &kept);
  GradientCase other = c;
  other.seed = derive(c.seed, "second upstream");
  const Values<double> second = GradientPoint(other).w;
  const Problem once = compose(at, composition, kept, at.w), again = compose(at, composition, kept, second);
  LinkResult kernel_link{Link::kernel, 0, 0, {}}, accumulation{Link::accumulation, 0, 0, {}};
  for (const Kernel* kernel : kernels) {
    if (kernel->op != composition.op || kernel->storage != DType::f32) continue;
    const ArithmeticScope scope(kernel->arithmetic);
    std::vector<Bounded> expected = want(at, backward, kept, at.w);
    const std::vector<Bounded> expected_again = want(at, backward, kept, second);
    std::vector<float> got = run(*kernel, once).at(output);
    const std::vector<float> got_again = run(*kernel, again).at(output);
    record(kernel_link, compare(Tier::statistical, report.input, at.shape(c.input), got, expected), kernel->id);
    for (std::size_t i = 0; i < got.size() && i < expected.size() && i < got_again.size(); ++i) {
      const auto held = static_cast<float>(at.v[i]);
      got[i] = held + got[i] + got_again[i];
      expected[i] = Bounded::input(held) + expected[i] + expected_again[i];
    }
    record(accumulation, compare(Tier::statistical, report.input, at.shape(c.input), got, expected), kernel->id);
  }
  report.links.push_back(kernel_link);
  report.links.push_back(accumulation);
}

}  // namespace assay::falsify
