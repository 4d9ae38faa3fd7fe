// Linear layers in 16 bits beside adapters in float32, as in training with bf16 weights and float32 adapters. Products
// that mix both formats widen elements to float32 and sum in float32; y and dx are rounded once, the adapter never is.
#pragma once

#include "kernels/lora.hpp"

namespace assay {

/// t = x · Aᵀ, then y = x · Wᵀ + bias + alpha / r t · Bᵀ in one set of float32 sums
///   x (s,in), weight (out,in), bias (biases,out), y (s,out): in 16 bits; a (r,in), b (out,r), t (s,r): float32; rows
///   dense; outputs share no memory with anything. Error: the contract's bound. 2 s (in (out + r) + r out) operations.
template <void (*multiply)(const AffineProduct&, Device&)>
void lora_linear_in_one_rounding(const ops::LoraLinearArgs& args, Device& device) {
  const float scale = lora_scale(args.alpha, args.r);
  multiply({.a = args.x, .b = args.a, .b_transposed = true, .c = args.t}, device);
  multiply({.a = args.x,
            .b = args.weight,
            .b_transposed = true,
            .c = args.y,
            .addend = args.bias,
            .second = {.a = args.t, .b = args.b, .b_transposed = true, .scale = scale}},
           device);
}

/// g = alpha / r dy · B, dx = dy · W + g · A in one set of float32 sums, dA = gᵀ · x, dB = alpha / r dyᵀ · t
///   x, dx (s,in), weight (out,in), dy (s,out): in 16 bits; a, da (r,in), b, db (out,r), t (s,r): float32; rows dense;
///   outputs share no memory with anything. Scratch for g: 4 s r bytes. Error: the contract's bound.
template <void (*multiply)(const AffineProduct&, Device&)>
void lora_linear_backward_in_one_rounding(const ops::LoraLinearBackwardArgs& args, Device& device) {
  const float scale = lora_scale(args.alpha, args.r);
  const Buffer scratch = device.allocate(static_cast<std::size_t>(args.s * args.r) * sizeof(float));
  const View<float> g(static_cast<float*>(scratch.address()), {args.s, args.r});
  multiply({.a = args.dy, .b = args.b, .c = g, .scale = scale}, device);
  multiply({.a = args.dy, .b = args.weight, .c = args.dx, .second = {.a = g, .b = args.a}}, device);
  multiply({.a = g, .a_transposed = true, .b = args.x, .c = args.da}, device);
  multiply({.a = args.dy, .a_transposed = true, .b = args.t, .c = args.db, .scale = scale}, device);
}

}  // namespace assay
