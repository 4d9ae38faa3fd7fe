// Kernels that compute by the references, exactly or with a small error, and cases for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "falsify/engine/arena.hpp"
#include "falsify/engine/campaign.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify::recorded {

inline constexpr Index kElements = 6000;  // of all tensors of a case

inline const Arithmetic kArithmetics[] = {
    {},
    {.inputs = Format::tf32, .block = 4},
    {.functions = FunctionLibrary::highway, .online_tile = 16},
    {.inputs = Format::f16, .block = 8},
    {.flushes_subnormals = true, .functions = FunctionLibrary::cuda},
    {.inputs = Format::tf32x3, .block = 4},
    {.fuses_products = false, .functions = FunctionLibrary::vulkan, .online_tile = 1},
    {.inputs = Format::bf16, .input_rounding = Rounding::toward_zero, .accumulation = Rounding::toward_zero},
    {.accumulator = Format::f16, .functions = FunctionLibrary::cuda_exp2},
};

struct Drawn {
  const Obligation* obligation;
  Case the_case;
  Arithmetic arithmetic;
  DType storage;
  Problem problem;
};

/// Returns the first small case of each obligation, each under another arithmetic.
inline std::vector<Drawn> drawn(const OpDescriptor& op) {
  constexpr DType kStorages[] = {DType::f32, DType::bf16, DType::f16};
  std::vector<Drawn> all;
  const bool open = std::ranges::any_of(op.tensors, &TensorInfo::storage);
  for (const Obligation& o : obligations(op.name)) {
    const std::size_t i = all.size();
    Arithmetic arithmetic = kArithmetics[i % std::size(kArithmetics)];
    if (op.name.starts_with("rope") && arithmetic.functions != FunctionLibrary::c_library)
      arithmetic.functions = FunctionLibrary::octant;  // not all other libraries guarantee a sine
    const DType storage = open ? kStorages[i % 3] : DType::f32;
    for (std::uint64_t n = i;; ++n) {
      Case c = draw(op, *o.info, 11, n, {.largest = 48}).value();
      Index elements = 0;
      for (const TensorInfo& t : op.tensors) elements += t.shape(c.dims).size();
      if (elements == 0 || elements > kElements) continue;
      all.push_back({&o, c, arithmetic, storage, make_problem(op, c, arithmetic, storage)});
      break;
    }
  }
  return all;
}

/// Calls f(element, dense index) for each of a tensor's elements.
template <class T, class F>
void each(const Tensor& t, F f) {
  const View<T> view = t.as<T>();
  for (Index i = 0; i < t.shape.size(); ++i) {
    Index offset = 0, rest = i;
    for (int axis = t.shape.rank() - 1; axis >= 0; --axis)
      offset += rest % t.shape[axis] * t.strides[axis], rest /= t.shape[axis];
    f(view.data()[offset], static_cast<std::size_t>(i));
  }
}

inline std::vector<float> read(const Tensor& t) {
  std::vector<float> values(static_cast<std::size_t>(t.shape.size()));
  switch (t.dtype) {
    case DType::f32: each<float>(t, [&](float x, std::size_t i) { values[i] = x; }); break;
    case DType::f16: each<Half>(t, [&](Half x, std::size_t i) { values[i] = widen(x); }); break;
    case DType::bf16: each<BFloat16>(t, [&](BFloat16 x, std::size_t i) { values[i] = widen(x); }); break;
    case DType::i32:
      each<std::int32_t>(t, [&](std::int32_t x, std::size_t i) { values[i] = static_cast<float>(x); });
      break;
    case DType::u8: each<std::uint8_t>(t, [&](std::uint8_t x, std::size_t i) { values[i] = x; }); break;
  }
  return values;
}

inline void write(const Tensor& t, const std::vector<float>& values) {
  switch (t.dtype) {
    case DType::f32: each<float>(t, [&](float& x, std::size_t i) { x = values[i]; }); break;
    case DType::f16: each<Half>(t, [&](Half& x, std::size_t i) { x = to_half(values[i]); }); break;
    case DType::bf16: each<BFloat16>(t, [&](BFloat16& x, std::size_t i) { x = to_bfloat16(values[i]); }); break;
    case DType::i32:
      each<std::int32_t>(t, [&](std::int32_t& x, std::size_t i) { x = static_cast<std::int32_t>(values[i]); });
      break;
    case DType::u8:
      each<std::uint8_t>(t, [&](std::uint8_t& x, std::size_t i) { x = static_cast<std::uint8_t>(values[i]); });
      break;
  }
}

template <class T>
std::vector<std::vector<float>> by_reference(const OpDescriptor& op, const Call& call, ReferenceFn<T> reference) {
  std::vector<std::vector<T>> held;
  std::vector<View<T>> views;
  for (const Tensor& t : call.tensors) {
    const std::vector<float> values = read(t);
    held.emplace_back(values.begin(), values.end());
    views.emplace_back(held.back().data(), t.shape);
  }
  reference(views, call.params);
  std::vector<std::vector<float>> outputs;
  for (const int t : outputs_of(op))
    outputs.emplace_back(held[static_cast<std::size_t>(t)].begin(), held[static_cast<std::size_t>(t)].end());
  return outputs;
}

/// Writes the floats nearest to the reference in double, or the reference in float if the contract pins roundings.
/// `off`, if given, then moves an element of an output.
enum class Element { first, middle, last };
struct Off {
  std::size_t output = 0;
  double relative = 0;  ///< relative to the largest element
  Element element = Element::middle;
};

inline void nearest(const OpDescriptor& op, const Call& call, const Off* off) {
  const bool pinned = op.copies || op.name == "adamw_step";  // contracts that pin roundings to float32
  auto outputs = pinned ? by_reference<float>(op, call, oracle(op.name).mirror)
                        : by_reference<double>(op, call, oracle(op.name).exact);
  if (off != nullptr) {
    std::vector<float>& y = outputs[off->output];
    float largest = 0;
    for (const float x : y)
      if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
    if (!y.empty()) {
      float& x = off->element == Element::first  ? y.front()
                 : off->element == Element::last ? y.back()
                                                 : y[y.size() / 2];
      const bool real = is_floating(call.tensors[static_cast<std::size_t>(outputs_of(op)[off->output])].dtype);
      x = real ? x + static_cast<float>(off->relative * std::max<double>(largest, 1e-3)) : x > 0 ? x - 1 : x + 1;
    }
  }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    write(call.tensors[static_cast<std::size_t>(outputs_of(op)[o])], outputs[o]);
}

inline Kernel reference_kernel(const OpDescriptor& op, std::string_view id, const Off* off) {
  Kernel k;
  k.op = op.name;
  k.id = id;
  k.run = [&op, off](const Call& call, Device&) { nearest(op, call, off); };
  return k;
}

/// Returns the contract's refusal of the kernel's result, if any. Reuses one arena, since new pages take longer than
/// the call.
inline std::optional<std::string> refusal(const Kernel& kernel, const Problem& problem) {
  static Arena arena(std::size_t{1} << 24);
  Case plain;
  plain.dims = problem.dims;
  plain.params = problem.params;
  const Stage stage(arena, problem, plain, Poison::nan);
  Call call{problem.dims, problem.params, {}};
  for (const Placed& t : stage.tensors()) call.tensors.push_back({t.dtype, arena.base() + t.data, t.shape, t.strides});
  try {
    problem.op->checked(call, kernel, device(kernel.backend));
    return std::nullopt;
  } catch (const ContractViolation& violation) {
    return violation.what();
  }
}

}  // namespace assay::falsify::recorded
