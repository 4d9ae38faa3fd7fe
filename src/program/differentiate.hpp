// Reverse-mode differentiation of programs.
#pragma once

#include <span>
#include <vector>

#include "program/program.hpp"

namespace assay::program {

/// A program with its backward steps behind it.
struct Differentiated {
  Program program;
  std::vector<Value> upstream;   ///< inputs: the gradient of each differentiated output, in the order given
  std::vector<Value> gradients;  ///< of each wanted leaf; runs add to them until the host clears them
};

/// Temporaries of the forward steps that a backward pass finds as they were; it computes the others again.
using Kept = std::vector<Value>;

/// The values that steps of one layer ("layers.N" in their labels) compute and steps outside of it read, and all that
/// steps outside of every layer compute: with these kept, memory grows by one matrix a layer.
/// Source: Chen, Xu, Zhang & Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016.
Kept inputs_of_layers(const Program& program);

/// Appends the backward steps of `program` from `outputs` to the leaves `wanted` (inputs and parameters; empty: every
/// trainable parameter), in reverse topological order, each step once. A step's gradients are the calls that its
/// contract names; calls of equal text are one step. Upstream gradients that are missing beside others of the same step
/// are zeros. Gradients of parameters have the layout of the parameters' storage. Throws InputError where a wanted leaf
/// is none, is wanted twice or has no path: it names the leaf, and the step where its path ends. With `kept`, forward
/// steps whose results are not kept are made once more where the backward pass needs them: the same bits, less memory.
/// O(steps).
Differentiated differentiate(const Program& program, std::span<const Value> outputs, std::span<const Value> wanted = {},
                             const Kept* kept = nullptr);

/// A forward pass and its backward pass as two programs. Sessions of them share, besides parameters and gradients, what
/// the backward pass reads of the forward pass, as states (SessionOptions::shares); inputs are set in each.
struct Passes {
  Program forward, backward;
  std::vector<Value> saved;  ///< values of forward, and of backward
};
/// Splits behind the first `steps` steps of a differentiated program. Values of `kept` are saved as well.
Passes split(const Differentiated& differentiated, std::size_t steps, std::span<const Value> kept = {});

}  // namespace assay::program
