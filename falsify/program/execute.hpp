// Programs in number types: what a kernel computes in float32, computed by the operations' references.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/half.hpp"
#include "falsify/engine/audit_oracle.hpp"
#include "program/plan.hpp"

namespace assay::falsify {

/// The reference of an operation in a number type.
template <class T>
ReferenceFn<T> reference_in(const OpDescriptor& op) {
  const Oracle& all = oracle(op.name);
  if constexpr (std::is_same_v<T, float>) return all.mirror;
  else if constexpr (std::is_same_v<T, double>) return all.exact;
  else if constexpr (std::is_same_v<T, Bounded>) return all.bounded;
  else if constexpr (std::is_same_v<T, Dual<double>>) return all.dual;
  else if constexpr (std::is_same_v<T, Digits50>) return all.digits50->run;
  else return all.complex_step;
}

/// The offset from the first element to element n in row-major order.
inline Index offset_of(const Shape& shape, const Shape& strides, Index n) {
  Index offset = 0;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) offset += n % shape[axis] * strides[axis], n /= shape[axis];
  return offset;
}

/// Sets every element of a view.
template <class T>
void fill(View<T> view, const T& value) {
  for (Index n = 0; n < view.size(); ++n) view.data()[offset_of(view.shape(), view.strides(), n)] = value;
}

/// Memory of a program in a number type, laid out by a plan.
template <class T>
class Execution {
 public:
  /// Parameters, states and inputs hold zeros; temporaries hold `poison`. Program and plan outlive the execution.
  Execution(const program::Program& program, program::Plan&& plan, const T& poison) = delete;
  Execution(const program::Program& program, const program::Plan& plan, const T& poison)
      : program_(program), plan_(plan) {
    std::vector<std::size_t> elements(plan.slot_bytes.size());
    for (std::size_t i = 0; i < program.storages.size(); ++i) {
      auto& n = elements[slot(i)];
      n = std::max(n, static_cast<std::size_t>(program.storages[i].elements));
    }
    for (const std::size_t n : elements) slots_.emplace_back(n, poison);
    for (std::size_t i = 0; i < program.storages.size(); ++i)
      if (program.storages[i].kind != program::Kind::temporary) std::ranges::fill(slots_[slot(i)], T(0));
  }

  View<T> operator[](program::Value v) {
    const program::ValueInfo& info = program_[v];
    return {slots_[slot(static_cast<std::size_t>(info.storage))].data() + info.offset, info.shape, info.strides};
  }

  void run() {
    for (const program::Step& step : program_.steps) run(step);
  }

  void run(const program::Step& step) {
    std::vector<View<T>> views;
    for (const program::Value v : step.tensors) views.push_back((*this)[v]);
    reference_in<T> (*step.op)(views, step.params);
    if constexpr (std::is_same_v<T, Bounded> || std::is_same_v<T, float>)
      for (std::size_t t = 0; t < views.size() && rounds_stores; ++t)
        if (step.op->tensors[t].role != Role::in) round(views[t], program_.storage_of(step.tensors[t]).dtype);
  }

  /// Results are rounded to their formats of 16 bits, as on a device. Beside double they are not: there, bounds are those
  /// of exact stores.
  bool rounds_stores = false;

 private:
  std::size_t slot(std::size_t storage) const { return static_cast<std::size_t>(plan_.slot_of[storage]); }

  static void round(View<T> view, DType dtype) {
    if (dtype != DType::f16 && dtype != DType::bf16) return;
    for (Index n = 0; n < view.size(); ++n) {
      T& x = view.data()[offset_of(view.shape(), view.strides(), n)];
      x = stored(dtype, x);
    }
  }

  const program::Program& program_;
  const program::Plan& plan_;
  std::vector<std::vector<T>> slots_;
};

}  // namespace assay::falsify
