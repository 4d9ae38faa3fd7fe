// y = x + bias for every row.
#pragma once

#include "kernels/cuda/elementwise.cuh"
#include "ops/bias_add.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class BiasAddFault { none, bias_dropped, bias_of_row };

template <BiasAddFault fault>
struct BiasAdd {
  __device__ float operator()(const float (&x)[2]) const {
    if constexpr (fault == BiasAddFault::bias_dropped) return x[0];
    return x[0] + x[1];
  }
};

/// y[i,j] = x[i,j] + bias[j]; x, y (m,n) float32, row-major, any leading dimension, apart; bias (n). One rounding. 8 m
/// n bytes.
template <BiasAddFault fault = BiasAddFault::none, MapFault map_fault = MapFault::none>
void bias_add(const ops::BiasAddArgs& args, Device& device) {
  const Index bias_ld = fault == BiasAddFault::bias_of_row ? 1 : 0;
  const Map<2> sums{args.m,        args.n,         {args.x.data(), args.bias.data()}, {leading(args.x), bias_ld},
                    args.y.data(), leading(args.y)};
  map<map_fault>(sums, BiasAdd<fault>{}, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
