#include "falsify/policies/fill.hpp"

#include "falsify/engine/obligation.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify::policies {
namespace {

/// Gives every sequence its full length: the projects' tests have no padded batches.
void fill_up_sequences(Problem& problem) {
  for (const std::string_view name : {"lengths", "starts"})
    if (const int t = tensor_named(*problem.op, name); t >= 0) {
      const TensorInfo& info = problem.op->tensors[static_cast<std::size_t>(t)];
      const Index value = name == "starts" ? 0 : info.most(problem.dims);
      std::ranges::fill(problem.values[static_cast<std::size_t>(t)], static_cast<float>(value));
    }
}

}  // namespace

int tensor_named(const OpDescriptor& op, std::string_view name) {
  for (std::size_t t = 0; t < op.tensors.size(); ++t)
    if (op.tensors[t].name == name) return static_cast<int>(t);
  return -1;
}

void for_each_real(Problem& problem, const std::function<void(std::vector<float>&, const TensorInfo&)>& f) {
  for (int t : inputs_of(*problem.op)) {
    const TensorInfo& info = problem.op->tensors[static_cast<std::size_t>(t)];
    if (is_floating(info.dtype)) f(problem.values[static_cast<std::size_t>(t)], info);
  }
}

void make_consistent(Problem& problem, Random& random) {
  fill_up_sequences(problem);
  if (const InputHook hook = input_hook(problem.op->name)) hook(problem, Strategy::gaussian, random);
}

Fill raw(double low, double high) {
  return [low, high](Problem& problem, Random& random) {
    for_each_real(problem, [&](std::vector<float>& values, const TensorInfo&) {
      for (float& x : values) x = static_cast<float>(low + (high - low) * random.uniform());
    });
  };
}

Fill uniform(double low, double high) {
  return [fill = raw(low, high)](Problem& problem, Random& random) {
    fill(problem, random);
    make_consistent(problem, random);
  };
}

Fill normal() {
  return [](Problem& problem, Random& random) {
    for_each_real(problem, [&](std::vector<float>& values, const TensorInfo&) {
      for (float& x : values) x = static_cast<float>(random.gaussian());
    });
    make_consistent(problem, random);
  };
}

Fill then(Fill fill, std::string_view tensor, std::function<float(Random&, std::size_t)> value) {
  return [fill = std::move(fill), tensor, value = std::move(value)](Problem& problem, Random& random) {
    fill(problem, random);
    std::vector<float>& values = problem.values[static_cast<std::size_t>(tensor_named(*problem.op, tensor))];
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(random, i);
  };
}

Outputs mirror_of(std::string_view op, const Problem& problem) {
  Problem call = problem;
  call.op = &operation(op);
  return expected(call, Reference::mirror);
}

}  // namespace assay::falsify::policies
