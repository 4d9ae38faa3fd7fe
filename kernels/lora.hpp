// Linear layers with low-rank adapters as sequences of products; the back end supplies the product.
#pragma once

#include "kernels/affine_product.hpp"
#include "ops/lora_linear.hpp"
#include "ops/lora_linear_backward.hpp"
#include "ops/lora_merge.hpp"
#include "ops/lora_unmerge.hpp"
#include "runtime/device.hpp"

namespace assay {

/// Returns alpha / r by one division, rounded to nearest; r >= 1.
inline float lora_scale(double alpha, Index r) { return static_cast<float>(alpha / static_cast<double>(r)); }

/// t = x · Aᵀ, y = x · Wᵀ + bias, y += alpha / r t · Bᵀ
///   x (s,in), weight (out,in), bias (biases,out), a (r,in), b (out,r), y (s,out), t (s,r): float32, rows dense;
///   outputs share no memory with anything. Error: the contract's bound. 2 s (in (out + r) + r out) operations; y is
///   read once more.
template <void (*multiply)(const AffineProduct&, Device&)>
void lora_linear_by(const ops::LoraLinearArgs& args, Device& device) {
  const float scale = lora_scale(args.alpha, args.r);
  multiply({.a = args.x, .b = args.a, .b_transposed = true, .c = args.t}, device);
  multiply({.a = args.x, .b = args.weight, .b_transposed = true, .c = args.y, .addend = args.bias}, device);
  multiply({.a = args.t, .b = args.b, .b_transposed = true, .c = args.y, .scale = scale, .addend = args.y}, device);
}

/// g = alpha / r dy · B, dx = dy · W, dx += g · A, dA = gᵀ · x, dB = alpha / r dyᵀ · t
///   x, dx (s,in), weight (out,in), a, da (r,in), b, db (out,r), t (s,r), dy (s,out): float32, rows dense; outputs
///   share no memory with anything. Scratch for g: 4 s r bytes. Error: the contract's bound. 2 s (in out + 2 r (in +
///   out)) operations.
template <void (*multiply)(const AffineProduct&, Device&)>
void lora_linear_backward_by(const ops::LoraLinearBackwardArgs& args, Device& device) {
  const float scale = lora_scale(args.alpha, args.r);
  const Buffer scratch = device.allocate(static_cast<std::size_t>(args.s * args.r) * sizeof(float));
  const View<float> g(static_cast<float*>(scratch.address()), {args.s, args.r});
  multiply({.a = args.dy, .b = args.b, .c = g, .scale = scale}, device);
  multiply({.a = args.dy, .b = args.weight, .c = args.dx}, device);
  multiply({.a = g, .b = args.a, .c = args.dx, .addend = args.dx}, device);
  multiply({.a = g, .a_transposed = true, .b = args.x, .c = args.da}, device);
  multiply({.a = args.dy, .a_transposed = true, .b = args.t, .c = args.db, .scale = scale}, device);
}

/// merged = weight + alpha / r B · A
///   weight, merged (out,in), a (r,in), b (out,r): float32, rows dense; merged shares no memory with anything. 2 out in
///   r
///   operations; weight is read once.
template <void (*multiply)(const AffineProduct&, Device&)>
void lora_merge_by(const ops::LoraMergeArgs& args, Device& device) {
  const float scale = lora_scale(args.alpha, args.r);
  multiply({.a = args.b, .b = args.a, .c = args.merged, .scale = scale, .addend = args.weight}, device);
}

/// weight = merged - alpha / r B · A; shapes and cost as for lora_merge_by.
template <void (*multiply)(const AffineProduct&, Device&)>
void lora_unmerge_by(const ops::LoraUnmergeArgs& args, Device& device) {
  const float scale = lora_scale(args.alpha, args.r);
  multiply({.a = args.b, .b = args.a, .c = args.weight, .scale = -scale, .addend = args.merged}, device);
}

}  // namespace assay
