// A feed-forward block, as a program and as the equations.
#pragma once

#include <cmath>
#include <vector>

#include "program/operations.hpp"

namespace assay::program {

struct FeedForward {
  Value norm, gate, up, down;
};

/// x + down(silu(gate(n)) up(n)), n = rmsnorm(x). x [s, hidden]; gate, up [inner, hidden], down [hidden, inner].
inline Value feed_forward(Builder& b, Value x, const FeedForward& w) {
  const Value n = rmsnorm(b, x, w.norm, 1e-6).y;
  const Value inner = silu_mul(b, matmul_nt(b, n, w.gate), matmul_nt(b, n, w.up));
  return residual_add(b, x, matmul_nt(b, inner, w.down), 1);
}

struct Block {
  Builder builder;
  Value x, y;
  FeedForward weights;

  Block(Index s, Index hidden, Index inner) {
    x = builder.input("x", {s, hidden});
    const Builder::Scope scope(builder, "ffn");
    weights = {builder.parameter("norm.weight", {hidden}), builder.parameter("gate_proj.weight", {inner, hidden}),
               builder.parameter("up_proj.weight", {inner, hidden}),
               builder.parameter("down_proj.weight", {hidden, inner})};
    y = feed_forward(builder, x, weights);
    builder.output(y);
  }
};

/// The same from the equations. Vectors are row-major.
template <class T>
std::vector<T> feed_forward(const std::vector<T>& x, const std::vector<T>& norm, const std::vector<T>& gate,
                            const std::vector<T>& up, const std::vector<T>& down, Index s, Index hidden, Index inner) {
  using std::exp, std::sqrt;
  const auto at = [](Index i, Index width, Index j) { return static_cast<std::size_t>(i * width + j); };
  std::vector<T> y(x);
  for (Index i = 0; i < s; ++i) {
    T square(0);
    for (Index j = 0; j < hidden; ++j) square = square + x[at(i, hidden, j)] * x[at(i, hidden, j)];
    const T root = sqrt(square / T(static_cast<double>(hidden)) + T(1e-6));
    for (Index p = 0; p < inner; ++p) {
      T g(0), u(0);
      for (Index j = 0; j < hidden; ++j) {
        const T n = x[at(i, hidden, j)] / root * norm[static_cast<std::size_t>(j)];
        g = g + gate[at(p, hidden, j)] * n;
        u = u + up[at(p, hidden, j)] * n;
      }
      const T h = g / (T(1) + exp(-g)) * u;
      for (Index j = 0; j < hidden; ++j) y[at(i, hidden, j)] = y[at(i, hidden, j)] + down[at(j, inner, p)] * h;
    }
  }
  return y;
}

}  // namespace assay::program
