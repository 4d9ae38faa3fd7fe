// y = value.
#include "kernels/cuda/elementwise.cuh"
#include "ops/fill.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_fill {
namespace {

/// Threads in x walk columns, 16 bytes each if rows are aligned; threads in y walk rows.
template <bool vectors>
__global__ void __launch_bounds__(256) fill_kernel(Index m, Index n, float* y, Index ld, float value) {
  constexpr Index kWidth = vectors ? 4 : 1;
  for (Index i = Index{blockIdx.y} * blockDim.y + threadIdx.y; i < m; i += Index{gridDim.y} * blockDim.y)
    for (Index j = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * kWidth; j < n;
         j += Index{gridDim.x} * blockDim.x * kWidth) {
      if constexpr (vectors) {
        if (j + 4 <= n) {
          *reinterpret_cast<float4*>(y + i * ld + j) = make_float4(value, value, value, value);
          continue;
        }
      }
      for (Index l = j; l < j + kWidth && l < n; ++l) y[i * ld + l] = value;
    }
}

/// y[i,j] = value; y (m,n) float32, row-major, any leading dimension. Nothing is rounded. 4 m n bytes.
void run(const ops::FillArgs& args, Device& device) {
  if (args.m == 0 || args.n == 0) return;
  const Index ld = leading(args.y);
  const bool vectors = rows_aligned(args.y.data(), ld);
  const Index chunks = vectors ? (args.n + 3) / 4 : args.n;
  unsigned wide = 8;
  while (wide < 256 && wide < chunks) wide *= 2;
  const dim3 block(wide, 256 / wide);
  const dim3 grid(blocks_for(chunks, wide),
                  static_cast<unsigned>(std::min<Index>((args.m + block.y - 1) / block.y, 65535)));
  launch(vectors ? &fill_kernel<true> : &fill_kernel<false>, {grid, block}, device, args.m, args.n, args.y.data(), ld,
         static_cast<float>(args.value));
}

const KernelRegistration vectors_kernel{{.id = "fill/" ASSAY_CUDA_NAME "/vectors",
                                         .arithmetic = {.functions = FunctionLibrary::cuda},
                                         .summary = "one pass, 16 bytes a thread where rows are aligned",
                                         .run = &run_typed<ops::FillArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_fill
