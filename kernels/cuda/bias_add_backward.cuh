// dx = dy and dbias = sums of the columns of dy.
#pragma once

#include "kernels/cuda/column_sum.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "ops/bias_add_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// dx[i,j] = dy[i,j] and dbias[j] = sum_i dy[i,j]; dy, dx (m,n) float32, row-major, any leading dimension; dbias (n);
/// all apart. One pass, 8 m n bytes. Error at most m·u·sum_i |dy[i,j]|.
template <ColumnFault fault = ColumnFault::none>
void bias_add_backward(const ops::BiasAddBackwardArgs& args, Device& device) {
  column_sums<fault>({1, args.m, args.n, args.dy.data(), 0, leading(args.dy), nullptr, args.dbias.data(), 0,
                      args.dx.data(), leading(args.dx)},
                     device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
