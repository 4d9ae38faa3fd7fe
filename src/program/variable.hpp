// Variables with gradients. Operations run when they are called; a tape of them is differentiated as a program.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "program/builder.hpp"
#include "runtime/device.hpp"

namespace assay::program {

/// An array in host memory that knows which operation computed it. Copies share values and gradient. Functions throw
/// InputError for a wrong number of elements, and for a gradient of a variable that requires none.
class Variable {
 public:
  /// A leaf, which errors call `name`.
  Variable(const Shape& shape, const std::vector<float>& values, bool requires_grad = false,
           std::string name = "variable");
  /// A leaf of zeros.
  static Variable zeros(const Shape& shape, bool requires_grad = false, std::string name = "variable");
  /// A leaf of integers, such as the ids that an embedding reads.
  static Variable indices(const Shape& shape, const std::vector<std::int32_t>& values, std::string name = "indices");

  const Shape& shape() const;
  bool requires_grad() const;
  std::vector<float> values() const;
  /// Only of a leaf. Operations before keep the values that they read.
  void set(const std::vector<float>& values);

  /// Absent until it is first written. Backward passes write gradients of leaves alone.
  const std::optional<std::vector<float>>& gradient() const;
  void set_gradient(const std::vector<float>& gradient);
  /// Adds to the gradient, or sets an absent one.
  void accumulate_gradient(const std::vector<float>& more);
  /// Sets the gradient to zeros, or multiplies it. An absent one stays absent.
  void zero_gradient();
  void scale_gradient(float factor);

  /// Appends an operation, or several, to a program that holds values of these variables.
  using Steps = std::function<std::vector<Value>(Builder&, std::span<const Value>)>;
  /// Runs the steps once on values of `inputs` and returns the results. If one of the inputs requires a gradient,
  /// every float result does, and the tape holds what the steps read and wrote. eager() calls this.
  static std::vector<Variable> record(Device& device, const std::vector<Variable>& inputs, Steps steps);

 private:
  friend void backward(const Variable& root, std::span<const float> upstream, Device& device);
  struct Cell;
  struct Recorded;
  explicit Variable(std::shared_ptr<Cell> cell) : cell_(std::move(cell)) {}
  std::vector<float>& expect_gradient(std::size_t elements);

  std::shared_ptr<Cell> cell_;
};

/// Calls a function of a builder on variables: `eager(matmul, a, b)`, `eager(residual_add, a, b, 0.5)`. The function
/// takes values where variables are given, and every other argument as it is. Returns a Variable, or an array of them
/// where the function returns a struct of values. The function keeps nothing but its results: one that makes
/// parameters or states is refused.
template <class F, class... A>
auto eager_on(Device& device, F f, const A&... arguments) {
  struct Place {
    std::size_t input;
  };
  std::vector<Variable> inputs;
  const auto place = [&](const auto& argument) {
    if constexpr (std::is_same_v<std::decay_t<decltype(argument)>, Variable>) {
      inputs.push_back(argument);
      return Place{inputs.size() - 1};
    } else {
      return argument;
    }
  };
  using Result = std::invoke_result_t<F, Builder&, std::conditional_t<std::is_same_v<A, Variable>, Value, A>...>;
  using Values = std::array<Value, sizeof(Result) / sizeof(Value)>;
  const std::tuple places{place(arguments)...};
  const auto results = Variable::record(device, inputs, [f, places](Builder& builder, std::span<const Value> values) {
    const auto argument = [&](const auto& a) {
      if constexpr (std::is_same_v<std::decay_t<decltype(a)>, Place>) return values[a.input];
      else return a;
    };
    const auto made =
        std::bit_cast<Values>(std::apply([&](const auto&... a) { return f(builder, argument(a)...); }, places));
    return std::vector<Value>(made.begin(), made.end());
  });
  if constexpr (std::is_same_v<Result, Value>) {
    return results[0];
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::array{results[I]...}; }
    (std::make_index_sequence<std::tuple_size_v<Values>>());
  }
}
template <class F, class... A>
auto eager(F f, const A&... arguments) {
  return eager_on(device(Backend::cpu), f, arguments...);
}

/// Adds the gradient of every leaf behind `root` to the leaf's, where `upstream` is the gradient of `root`, one number
/// an element. The tape is differentiated as one program, planned, and run in a session; its backward steps read what
/// the operations wrote when they ran. Gradients of other variables do not outlive the call, and a later call may
/// begin at the same root. Throws InputError where `root` requires no gradient, or a leaf has no path (differentiate());
/// then no gradient has changed. O(steps) and the operations' own cost.
void backward(const Variable& root, std::span<const float> upstream, Device& device = assay::device(Backend::cpu));

}  // namespace assay::program
