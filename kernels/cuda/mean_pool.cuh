// The mean of the first tokens of each sequence.
#pragma once

#include "kernels/cuda/column_sum.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "ops/mean_pool.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// y[b,j] = sum_(i < lengths[b]) x[b,i,j] / lengths[b]; x (b,s,h), y (b,h) float32, row-major, any outer strides;
/// lengths (b) from 1 to s; y apart. Reads no padding. Error at most lengths[b]·u·sum_i |x[b,i,j]| / lengths[b] + u|y|.
template <ColumnFault fault = ColumnFault::none>
void mean_pool(const ops::MeanPoolArgs& args, Device& device) {
  column_sums<fault>({args.b, args.s, args.h, args.x.data(), args.x.stride(0), args.x.stride(1), args.lengths.data(),
                      args.y.data(), leading(args.y), nullptr, 0},
                     device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
