// The random point at which a gradient is checked, and references run there in any number type.
#pragma once

#include "falsify/engine/gradients.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify {

template <class T>
using Values = std::vector<std::vector<T>>;  ///< one dense tensor after another

/// A double as it is, in a number type: no rounding to float.
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

struct GradientPoint {
  const GradientCase& c;
  std::vector<int> inputs, outputs;  ///< tensors in contract order
  std::size_t position = 0;          ///< of the differentiated input among the inputs
  Values<double> x;                  ///< inputs, floats
  Values<double> w;                  ///< upstream gradients, floats
  std::vector<double> v;             ///< a direction in the differentiated input, on a grid: x + h v is exact

  explicit GradientPoint(const GradientCase& c_) : c(c_), inputs(inputs_of(*c_.op)), outputs(outputs_of(*c_.op)) {
    Random random(derive(c.seed, "gradient"));
    const auto draw = [&](int tensor) {
      std::vector<double> values(static_cast<std::size_t>(shape(tensor).size()));
      for (double& value : values) value = static_cast<float>(random.gaussian());
      return values;
    };
    for (int t : inputs) {
      if (t == c.input) position = x.size();
      x.push_back(draw(t));
    }
    for (int t : outputs) w.push_back(draw(t));
    v = draw(c.input);
    for (double& value : v) value = (std::floor(std::fabs(value) * 16) + 1) / 16 * (value < 0 ? -1 : 1);
  }

  Shape shape(int tensor) const { return c.op->tensors[static_cast<std::size_t>(tensor)].shape(c.dims); }

  /// Outputs of a forward reference.
  template <class T>
  Values<T> forward(ReferenceFn<T> reference, Values<T> at) const {
    Values<T> out;
    for (int t : outputs) out.emplace_back(static_cast<std::size_t>(shape(t).size()));
    std::vector<View<T>> views(c.op->tensors.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      views[static_cast<std::size_t>(inputs[i])] = {at[i].data(), shape(inputs[i])};
    for (std::size_t i = 0; i < outputs.size(); ++i)
      views[static_cast<std::size_t>(outputs[i])] = {out[i].data(), shape(outputs[i])};
    reference(views, c.params);
    return out;
  }

  /// The gradient of the differentiated input alone.
  template <class T>
  std::vector<T> backward(ReferenceFn<T> reference, Values<T> at, Values<T> upstream) const {
    std::vector<T> gradient(at[position].size());
    std::vector<View<T>> views;
    for (std::size_t i = 0; i < inputs.size(); ++i) views.emplace_back(at[i].data(), shape(inputs[i]));
    for (std::size_t i = 0; i < outputs.size(); ++i) views.emplace_back(upstream[i].data(), shape(outputs[i]));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      views.emplace_back(i == position ? gradient.data() : nullptr, shape(inputs[i]));
    reference(views, c.params);
    return gradient;
  }
};

}  // namespace assay::falsify
