// A random point at which a gradient is checked, and evaluation of references there in any number type.
#pragma once

#include "falsify/engine/gradients.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify {

template <class T>
using Values = std::vector<std::vector<T>>;  ///< one dense tensor after another

/// Lifts a double into a number type without rounding to float.
template <class T>
T exactly(double x) {
  if constexpr (std::is_same_v<T, Bounded>) return Bounded(x, 0, 0, false);
  else if constexpr (std::is_same_v<T, Dual<Bounded>>) return Dual<Bounded>(exactly<Bounded>(x));
  else return T(x);
}
template <class T>
Values<T> exactly(const Values<double>& tensors) {
  Values<T> lifted;
  for (const auto& tensor : tensors) {
    auto& values = lifted.emplace_back();
    for (double x : tensor) values.push_back(exactly<T>(x));
  }
  return lifted;
}

/// Returns the inputs that have a gradient, in contract order.
inline std::vector<int> differentiable(const OpDescriptor& op) {
  std::vector<int> found;
  for (int t : inputs_of(op))
    if (const TensorInfo& info = op.tensors[static_cast<std::size_t>(t)];
        is_floating(info.dtype) && info.no_gradient.empty())
      found.push_back(t);
  return found;
}

struct GradientPoint {
  const GradientCase& c;
  std::vector<int> inputs, outputs;  ///< tensors in contract order; outputs that a gradient flows into
  std::vector<int> saved;            ///< outputs kept for the backward pass alone
  std::vector<int> kept;             ///< all outputs: `saved`, then the others
  std::size_t position = 0;          ///< of the differentiated input among the inputs
  Values<double> x;                  ///< inputs, floats
  Values<double> w;                  ///< upstream gradients, floats
  std::vector<double> v;             ///< a direction in the differentiated input, on a grid: x + h v is exact

  explicit GradientPoint(const GradientCase& c_) : c(c_), inputs(inputs_of(*c_.op)) {
    for (int t : outputs_of(*c.op)) (info(t).saved ? saved : outputs).push_back(t);
    kept = saved;
    kept.insert(kept.end(), outputs.begin(), outputs.end());
    Case point;
    point.dims = c.dims;
    point.params = c.params;
    point.strategy = Strategy::gaussian;
    point.seed = derive(c.seed, "point");
    const Problem problem = make_problem(*c.op, point, {});
    for (int t : inputs) {
      if (t == c.input) position = x.size();
      const auto& values = problem.values[static_cast<std::size_t>(t)];
      x.emplace_back(values.begin(), values.end());
    }
    Random random(derive(c.seed, "gradient"));
    const auto draw = [&](int tensor) {
      std::vector<double> values(static_cast<std::size_t>(shape(tensor).size()));
      for (double& value : values) value = static_cast<float>(random.gaussian());
      return values;
    };
    for (int t : outputs) w.push_back(draw(t));
    v = draw(c.input);
    for (double& value : v) value = (std::floor(std::fabs(value) * 16) + 1) / 16 * (value < 0 ? -1 : 1);
  }

  const TensorInfo& info(int tensor) const { return c.op->tensors[static_cast<std::size_t>(tensor)]; }
  Shape shape(int tensor) const { return info(tensor).shape(c.dims); }

  /// Returns the outputs of a forward reference that a gradient flows into; stores the outputs that `kept` lists in
  /// `all`.
  template <class T>
  Values<T> forward(ReferenceFn<T> reference, Values<T> at, Values<T>* all = nullptr) const {
    std::vector<View<T>> views(c.op->tensors.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      views[static_cast<std::size_t>(inputs[i])] = {at[i].data(), shape(inputs[i])};
    const auto room_for = [&](const std::vector<int>& tensors) {
      Values<T> room;
      for (int t : tensors) {
        room.emplace_back(static_cast<std::size_t>(shape(t).size()));
        views[static_cast<std::size_t>(t)] = {room.back().data(), shape(t)};
      }
      return room;
    };
    Values<T> out = room_for(outputs), beside = room_for(saved);
    reference(views, c.params);
    if (all != nullptr) {
      *all = std::move(beside);
      all->insert(all->end(), out.begin(), out.end());
    }
    return out;
  }

  /// Returns the gradient of the differentiated input alone, given the forward results that `kept` lists.
  template <class T>
  std::vector<T> backward(ReferenceFn<T> reference, Values<T> at, Values<T> forward_results, Values<T> upstream) const {
    std::vector<T> gradient(at[position].size());
    std::vector<View<T>> views;
    for (std::size_t i = 0; i < inputs.size(); ++i) views.emplace_back(at[i].data(), shape(inputs[i]));
    for (std::size_t i = 0; i < saved.size(); ++i) views.emplace_back(forward_results[i].data(), shape(saved[i]));
    for (std::size_t i = 0; i < outputs.size(); ++i) views.emplace_back(upstream[i].data(), shape(outputs[i]));
    for (int t : differentiable(*c.op)) views.emplace_back(t == c.input ? gradient.data() : nullptr, shape(t));
    for (std::size_t i = saved.size(); i < kept.size(); ++i)
      views.emplace_back(forward_results[i].data(), shape(kept[i]));
    reference(views, c.params);
    return gradient;
  }

  /// The same, after a forward pass.
  template <class T>
  std::vector<T> gradient(ReferenceFn<T> forward_reference, ReferenceFn<T> backward_reference, Values<T> at,
                          Values<T> upstream) const {
    Values<T> results;
    forward<T>(forward_reference, at, &results);
    return backward<T>(backward_reference, std::move(at), std::move(results), std::move(upstream));
  }
};

}  // namespace assay::falsify
