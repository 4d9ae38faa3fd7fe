// Link 3: the float32 kernels that a contract composes a gradient of.
#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"
#include "falsify/engine/comparator.hpp"
#include "falsify/engine/gradient_point.hpp"

namespace assay::falsify {
namespace {

/// "matmul_nt(dc, b)": an operation and the names of its inputs.
struct Composition {
  std::string_view op;
  std::vector<std::string_view> arguments;

  explicit Composition(std::string_view text) : op(text.substr(0, text.find('('))) {
    std::string_view rest = text.substr(op.size() + 1);
    rest = rest.substr(0, rest.rfind(')'));
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      arguments.push_back(trimmed(rest.substr(0, comma)));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }

 private:
  static std::string_view trimmed(std::string_view s) {
    const std::size_t first = s.find_first_not_of(' ');
    return first == s.npos ? std::string_view() : s.substr(first, s.find_last_not_of(' ') - first + 1);
  }
};

struct Argument {
  Shape shape;
  std::vector<float> values;
};

std::vector<float> floats(const std::vector<double>& v) { return {v.begin(), v.end()}; }

/// The tensor that a composition calls by this name: an input of the operation, or d<output>.
Argument argument(const GradientPoint& at, const Values<double>& upstream, std::string_view name) {
  for (std::size_t i = 0; i < at.inputs.size(); ++i)
    if (at.c.op->tensors[static_cast<std::size_t>(at.inputs[i])].name == name)
      return {at.shape(at.inputs[i]), floats(at.x[i])};
  for (std::size_t i = 0; i < at.outputs.size(); ++i)
    if (fmt::format("d{}", at.c.op->tensors[static_cast<std::size_t>(at.outputs[i])].name) == name)
      return {at.shape(at.outputs[i]), floats(upstream[i])};
  throw InputError(std::string(at.c.op->file),
                   fmt::format("a gradient's call names {}, which is no input and no d<output>", name),
                   "use the contract's own names");
}

/// Extents from shapes: "[m, k]" beside [3, 5] binds m and k.
void bind_dims(const OpDescriptor& op, std::string_view shape_text, const Shape& shape, std::vector<Index>& dims) {
  int axis = 0;
  std::size_t at = 0;
  while (axis < shape.rank()) {
    at = shape_text.find_first_not_of("[], ", at);
    if (at == shape_text.npos) break;
    const std::string_view symbol = shape_text.substr(at, shape_text.find_first_of("[], ", at) - at);
    for (std::size_t d = 0; d < op.dims.size(); ++d)
      if (op.dims[d].name == symbol) dims[d] = shape[axis];
    at += symbol.size();
    ++axis;
  }
}

Problem compose(const GradientPoint& at, const Composition& composition, const Values<double>& upstream) {
  const OpDescriptor& op = operation(composition.op);
  Problem problem{&op, std::vector<Index>(op.dims.size()), {}, std::vector<std::vector<float>>(op.tensors.size())};
  const std::vector<int> inputs = inputs_of(op);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto t = static_cast<std::size_t>(inputs[i]);
    Argument value = argument(at, upstream, composition.arguments.at(i));
    bind_dims(op, op.tensors[t].shape_text, value.shape, problem.dims);
    problem.values[t] = std::move(value.values);
  }
  return problem;
}

std::vector<Bounded> want(const GradientPoint& at, const BackwardOracle& backward, const Values<double>& upstream) {
  const auto as_input = [](const Values<double>& tensors) {
    Values<Bounded> lifted;
    for (const auto& tensor : tensors) {
      auto& values = lifted.emplace_back();
      for (double x : tensor) values.push_back(Bounded::input(static_cast<float>(x)));
    }
    return lifted;
  };
  return at.backward(backward.bounded, as_input(at.x), as_input(upstream));
}

void record(LinkResult& result, const Outcome& outcome, std::string_view kernel) {
  result.compared += outcome.elements;
  if (!(outcome.worst > result.worst) && !outcome.finding) return;
  // Where bits are compared, or the bound is zero, a finding has no finite ratio.
  result.worst = outcome.finding ? std::max(outcome.worst, std::numeric_limits<double>::infinity()) : outcome.worst;
  result.detail = fmt::format("{}{}", kernel, outcome.finding ? ": " + outcome.finding->message : std::string());
}

}  // namespace

std::vector<float> run_here(const Kernel& kernel, const Problem& problem) {
  Problem local = problem;
  const int output = outputs_of(*problem.op).at(0);
  std::vector<float>& result = local.values[static_cast<std::size_t>(output)];
  result.assign(static_cast<std::size_t>(problem.shape(output).size()), std::numeric_limits<float>::quiet_NaN());
  Call call{problem.dims, problem.params, {}};
  for (std::size_t t = 0; t < local.values.size(); ++t) {
    const Shape shape = problem.shape(static_cast<int>(t));
    call.tensors.push_back({DType::f32, local.values[t].data(), shape, row_major_strides(shape)});
  }
  Device& here = device(kernel.backend);
  problem.op->checked(call, kernel, here);
  here.synchronize();
  return result;
}

void check_kernels(GradientReport& report, const GradientCase& c, const BackwardOracle& backward,
                   std::span<const Kernel* const> kernels, const RunKernel& run) {
  const auto info = std::ranges::find(c.op->gradients, c.input, &GradientInfo::input);
  if (info == c.op->gradients.end() || info->by.empty()) return;
  const Composition composition(info->by);
  const GradientPoint at(c);
  GradientCase other = c;
  other.seed = derive(c.seed, "second upstream");
  const Values<double> second = GradientPoint(other).w;
  const Problem once = compose(at, composition, at.w), again = compose(at, composition, second);
  LinkResult kernel_link{Link::kernel, 0, 0, {}}, accumulation{Link::accumulation, 0, 0, {}};
  for (const Kernel* kernel : kernels) {
    if (kernel->op != composition.op) continue;
    const ArithmeticScope scope(kernel->arithmetic);
    std::vector<Bounded> expected = want(at, backward, at.w);
    const std::vector<Bounded> expected_again = want(at, backward, second);
    std::vector<float> got = run(*kernel, once);
    const std::vector<float> got_again = run(*kernel, again);
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
