// The gradient of the mean of the first tokens of each sequence.
#include "kernels/cuda/elementwise.cuh"
#include "ops/mean_pool_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool_backward {
namespace {

/// dx[b,i,j] = dy[b,j] / lengths[b] where i < lengths[b], else 0. Elements are at b * dy_ld + j and b * dx_batch + i *
/// dx_ld + j; offsets take 64 bits.
template <class S>
struct Broadcast {
  Index batches, rows, columns;
  const std::int32_t* lengths;
  const S* dy;
  Index dy_ld;
  S* dx;
  Index dx_batch, dx_ld;
};

/// A thread owns one column, or four if rows are aligned; it divides once and writes every row_step-th row.
template <class S, bool vectors>
__global__ void __launch_bounds__(256) spread_kernel(Broadcast<S> a) {
  constexpr int kWidth = vectors ? 4 : 1;
  const Index row_step = Index{gridDim.y} * blockDim.y;
  const Index column = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * kWidth;
  if (column >= a.columns) return;
  const int width = static_cast<int>(min(Index{kWidth}, a.columns - column));
  for (Index b = blockIdx.z; b < a.batches; b += gridDim.z) {
    const Index length = a.lengths[b];
    const auto divisor = static_cast<float>(length);
    float share[kWidth];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) share[k] = k < width ? load(a.dy[b * a.dy_ld + column + k]) / divisor : 0.0f;
    for (Index i = Index{blockIdx.y} * blockDim.y + threadIdx.y; i < a.rows; i += row_step) {
      S* const dx = a.dx + b * a.dx_batch + i * a.dx_ld + column;
      float out[kWidth];
#pragma unroll
      for (int k = 0; k < kWidth; ++k) out[k] = i < length ? share[k] : 0.0f;
      if constexpr (vectors) {
        if (width == 4) {
          store4<S>(dx, 0, 4, true, make_float4(out[0], out[1], out[2], out[3]));
          continue;
        }
      }
      for (int k = 0; k < width; ++k) store(dx[k], out[k]);
    }
  }
}

/// dy (b,h), dx (b,s,h) S, row-major, any outer strides; lengths (b) from 1 to s; dx apart. One pass, b s h
/// elements.
template <class S>
void run(const ops::MeanPoolBackwardArgs& args, Device& device) {
  const Broadcast<S> a{args.b,
                       args.s,
                       args.h,
                       args.lengths.data(),
                       static_cast<const S*>(args.dy.data()),
                       leading(args.dy),
                       static_cast<S*>(args.dx.data()),
                       args.dx.stride(0),
                       args.dx.stride(1)};
  if (a.batches == 0 || a.columns == 0) return;
  const bool vectors = rows_aligned(a.dx, a.dx_ld) && a.dx_batch % 4 == 0;
  const Index chunks = vectors ? (a.columns + 3) / 4 : a.columns;
  unsigned wide = 8;
  while (wide < 256 && wide < chunks) wide *= 2;
  const dim3 block(wide, 256 / wide);
  const Index rows_each = Index{block.y} * 8;  // one division for eight stores
  const dim3 grid(blocks_for(chunks, wide),
                  static_cast<unsigned>(std::min<Index>((a.rows + rows_each - 1) / rows_each, 65535)),
                  static_cast<unsigned>(std::min<Index>(a.batches, 65535)));
  launch(vectors ? &spread_kernel<S, true> : &spread_kernel<S, false>, {grid, block}, device, a);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "a thread per four columns, one division for its rows",
                             .run = &run_typed<ops::MeanPoolBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("mean_pool_backward/" ASSAY_CUDA_NAME "/rows"),
                                            add<Half>("mean_pool_backward/" ASSAY_CUDA_NAME "/rows_f16"),
                                            add<BFloat16>("mean_pool_backward/" ASSAY_CUDA_NAME "/rows_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool_backward
