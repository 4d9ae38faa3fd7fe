#include "falsify/policies/backward.hpp"

#include "falsify/engine/trial.hpp"
#include "falsify/policies/fill.hpp"

namespace assay::falsify::policies {

std::vector<float>& values_of(Problem& problem, std::string_view tensor) {
  return problem.values[static_cast<std::size_t>(tensor_named(*problem.op, tensor))];
}

Problem forward_of(const Problem& backward, std::string_view forward_op, double range) {
  Random random(derive(static_cast<std::uint64_t>(backward.dims.size()), "forward"));
  Problem forward{&operation(forward_op), backward.dims, {}, {}, DType::f32};
  forward.values.resize(forward.op->tensors.size());
  for (int t : inputs_of(*forward.op)) {
    const std::string_view name = forward.op->tensors[static_cast<std::size_t>(t)].name;
    const int there = tensor_named(*backward.op, name);
    std::vector<float>& values = forward.values[static_cast<std::size_t>(t)];
    if (there >= 0) values = backward.values[static_cast<std::size_t>(there)];
    else values.resize(static_cast<std::size_t>(forward.shape(t).size()));
    if (there < 0)
      for (float& x : values) x = static_cast<float>(range * (2 * random.uniform() - 1));
  }
  for (std::size_t p = 0; p < forward.op->params.size(); ++p) {
    forward.params.push_back(forward.op->params[p].typical);
    for (std::size_t q = 0; q < backward.op->params.size(); ++q)
      if (backward.op->params[q].name == forward.op->params[p].name) forward.params[p] = backward.params[q];
  }
  return forward;
}

void save_forward(Problem& backward, std::string_view forward_op, double range) {
  const Problem forward = forward_of(backward, forward_op, range);
  const Outputs outputs = mirror_of(forward_op, forward);
  const std::vector<int> which = outputs_of(*forward.op);
  for (std::size_t o = 0; o < which.size(); ++o) {
    const int t = tensor_named(*backward.op, forward.op->tensors[static_cast<std::size_t>(which[o])].name);
    if (t >= 0) backward.values[static_cast<std::size_t>(t)] = outputs[o];
  }
}

}  // namespace assay::falsify::policies
