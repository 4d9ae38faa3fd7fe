// Linear layers with low-rank adapters as sequences of products; a back end gives the product.
#pragma once

#include <cmath>

#include "kernels/affine_product.hpp"
#include "ops/lora_linear.hpp"
#include "ops/lora_linear_backward.hpp"
#include "ops/lora_merge.hpp"
#include "ops/lora_unmerge.hpp"
#include "runtime/device.hpp"

namespace assay {

/// What a kernel does wrong on purpose (falsify/mutants).
enum class LoraFault {
  none,
  // the scale
  scale_is_alpha,
  scale_by_root,
  scale_left_out,
  // lora_linear
  bias_dropped,
  weight_as_in_out,
  a_as_in_r,
  b_as_r_out,
  layer_overwritten,
  adapter_left_out,
  scale_saved_in_t,
  t_of_first_row,
  // lora_linear_backward
  dx_of_layer_alone,
  dx_of_adapter_alone,
  weight_transposed_again,
  da_left_out,
  da_not_scaled,
  da_scaled_twice,
  db_left_out,
  db_of_first_row,
  stale_scratch,
  // lora_merge, lora_unmerge
  transposed_where_square,
  weight_dropped,
  sign_flipped,
};

/// alpha / r, one division rounded to nearest; r >= 1.
template <LoraFault fault = LoraFault::none>
float lora_scale(double alpha, Index r) {
  if (fault == LoraFault::scale_is_alpha) return static_cast<float>(alpha);
  if (fault == LoraFault::scale_by_root) return static_cast<float>(alpha / std::sqrt(static_cast<double>(r)));
  if (fault == LoraFault::scale_left_out) return 1.0F;
  return static_cast<float>(alpha / static_cast<double>(r));
}

/// The first row of a matrix, or none.
template <class T>
View<T> first_row(const View<T>& x) {
  return {x.data(), {x.dim(0) < 1 ? x.dim(0) : 1, x.dim(1)}, x.strides()};
}

/// t = x · Aᵀ, y = x · Wᵀ + bias, y += alpha / r t · Bᵀ
///   x (s,in), weight (out,in), bias (biases,out), a (r,in), b (out,r), y (s,out), t (s,r): float32, rows dense;
///   outputs share no memory with anything. Error: the contract's bound. 2 s (in (out + r) + r out) operations; y is
///   read once more.
template <void (*multiply)(const AffineProduct&, Device&), LoraFault fault = LoraFault::none>
void lora_linear_by(const ops::LoraLinearArgs& args, Device& device) {
  using enum LoraFault;
  const float scale = lora_scale<fault>(args.alpha, args.r);
  AffineProduct t{.a = args.x, .b = args.a, .b_transposed = true, .c = args.t},
      layer{.a = args.x, .b = args.weight, .b_transposed = true, .c = args.y, .addend = args.bias},
      adapter{.a = args.t, .b = args.b, .b_transposed = true, .c = args.y, .scale = scale, .addend = args.y};
  if constexpr (fault == bias_dropped) layer.addend = {};
  if constexpr (fault == weight_as_in_out)
    layer.b = {args.weight.data(), {args.in, args.out}}, layer.b_transposed = false;
  if constexpr (fault == a_as_in_r) t.b = {args.a.data(), {args.in, args.r}}, t.b_transposed = false;
  if constexpr (fault == b_as_r_out) adapter.b = {args.b.data(), {args.r, args.out}}, adapter.b_transposed = false;
  if constexpr (fault == layer_overwritten) adapter.addend = {};
  if constexpr (fault == scale_saved_in_t) t.scale = scale, adapter.scale = 1;
  if constexpr (fault == t_of_first_row) t.a = first_row(t.a), t.c = first_row(t.c);
  multiply(t, device);
  multiply(layer, device);
  if constexpr (fault != adapter_left_out) multiply(adapter, device);
}

/// g = alpha / r dy · B, dx = dy · W, dx += g · A, dA = gᵀ · x, dB = alpha / r dyᵀ · t
///   x, dx (s,in), weight (out,in), a, da (r,in), b, db (out,r), t (s,r), dy (s,out): float32, rows dense; outputs
///   share no memory with anything. Scratch for g: 4 s r bytes. Error: the contract's bound. 2 s (in out + 2 r (in +
///   out)) operations.
template <void (*multiply)(const AffineProduct&, Device&), LoraFault fault = LoraFault::none>
void lora_linear_backward_by(const ops::LoraLinearBackwardArgs& args, Device& device) {
  using enum LoraFault;
  const float scale = lora_scale<fault>(args.alpha, args.r);
  const Buffer scratch = device.allocate(static_cast<std::size_t>(args.s * args.r) * sizeof(float));
  const View<float> g(static_cast<float*>(scratch.address()), {args.s, args.r});
  AffineProduct to_g{.a = args.dy, .b = args.b, .c = g, .scale = scale},
      layer{.a = args.dy, .b = args.weight, .c = args.dx},
      adapter{.a = g, .b = args.a, .c = args.dx, .addend = args.dx},
      da{.a = g, .a_transposed = true, .b = args.x, .c = args.da},
      db{.a = args.dy, .a_transposed = true, .b = args.t, .c = args.db, .scale = scale};
  if constexpr (fault == dx_of_adapter_alone) adapter.addend = {};
  if constexpr (fault == weight_transposed_again)
    if (args.in == args.out) layer.b_transposed = true;
  if constexpr (fault == da_not_scaled) da.scale = 1 / scale;
  if constexpr (fault == da_scaled_twice) da.scale = scale;
  if constexpr (fault == db_of_first_row) db.a = first_row(db.a), db.b = first_row(db.b);
  if constexpr (fault == stale_scratch) to_g.addend = g;
  if constexpr (fault == da_left_out) da.a = first_row(da.a), da.b = first_row(da.b), da.scale = 0;
  if constexpr (fault == db_left_out) db.scale = 0;
  multiply(to_g, device);
  multiply(layer, device);
  if constexpr (fault != dx_of_layer_alone) multiply(adapter, device);
  multiply(da, device);
  multiply(db, device);
}

/// to = from + scale B · A for from, to (out,in), a (r,in), b (out,r): float32, rows dense; `to` shares no memory with
/// anything. 2 out in r operations; from is read once.
template <void (*multiply)(const AffineProduct&, Device&), LoraFault fault>
void add_adapter(View<const float> from, View<const float> a, View<const float> b, View<float> to, float scale,
                 Device& device) {
  AffineProduct sum{.a = b, .b = a, .c = to, .scale = scale, .addend = from};
  if constexpr (fault == LoraFault::transposed_where_square)
    if (to.dim(0) == to.dim(1))
      sum = {.a = a, .a_transposed = true, .b = b, .b_transposed = true, .c = to, .scale = scale, .addend = from};
  if constexpr (fault == LoraFault::weight_dropped) sum.addend = {};
  if constexpr (fault == LoraFault::sign_flipped) sum.scale = -scale;
  if constexpr (fault == LoraFault::b_as_r_out) sum.a = {b.data(), {b.dim(1), b.dim(0)}}, sum.a_transposed = true;
  multiply(sum, device);
}

/// merged = weight + alpha / r B · A
template <void (*multiply)(const AffineProduct&, Device&), LoraFault fault = LoraFault::none>
void lora_merge_by(const ops::LoraMergeArgs& args, Device& device) {
  add_adapter<multiply, fault>(args.weight, args.a, args.b, args.merged, lora_scale<fault>(args.alpha, args.r), device);
}

/// weight = merged - alpha / r B · A
template <void (*multiply)(const AffineProduct&, Device&), LoraFault fault = LoraFault::none>
void lora_unmerge_by(const ops::LoraUnmergeArgs& args, Device& device) {
  add_adapter<multiply, fault>(args.merged, args.a, args.b, args.weight, -lora_scale<fault>(args.alpha, args.r),
                               device);
}

}  // namespace assay
