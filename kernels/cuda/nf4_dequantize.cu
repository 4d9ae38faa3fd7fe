// y = code[q]·absmax with CUDA.
#include "kernels/cuda/nf4.cuh"
#include "ops/nf4_dequantize.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_dequantize {
namespace {

/// One thread per element.
__global__ void __launch_bounds__(256) elementwise_kernel(Nf4Matrix w, float* y, Index y_ld) {
  ASSAY_SHARED(float, table, [16]);
  load_table(table, w.table, static_cast<int>(threadIdx.x));
  const Index p = Index{blockIdx.x} * 256 + threadIdx.x;
  if (p >= w.k) return;
  for (Index j = blockIdx.y; j < w.n; j += gridDim.y) y[j * y_ld + p] = decode1(w, table, j, p);
}

/// Four elements a thread, from two bytes to 16. `aligned`: rows of y start at multiples of 16 bytes.
template <bool aligned>
__global__ void __launch_bounds__(256) vectors_kernel(Nf4Matrix w, float* y, Index y_ld) {
  ASSAY_SHARED(float, table, [16]);
  load_table(table, w.table, static_cast<int>(threadIdx.x + threadIdx.y * blockDim.x));
  const Index row_step = Index{gridDim.y} * blockDim.y, step = Index{gridDim.x} * blockDim.x * 4;
  for (Index j = Index{blockIdx.y} * blockDim.y + threadIdx.y; j < w.n; j += row_step)
    for (Index p = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * 4; p < w.k; p += step) {
      const float4 v = decode4(w, table, j, p);
      float* const to = y + j * y_ld + p;
      if (aligned && p + 4 <= w.k) {
        *reinterpret_cast<float4*>(to) = v;
        continue;
      }
      to[0] = v.x;
      if (p + 1 < w.k) to[1] = v.y;
      if (p + 2 < w.k) to[2] = v.z;
      if (p + 3 < w.k) to[3] = v.w;
    }
}

void run_elementwise(const ops::Nf4DequantizeArgs& args, Device& device) {
  if (args.n == 0 || args.k == 0) return;
  const dim3 grid(blocks_for(args.k, 256), static_cast<unsigned>(std::min<Index>(args.n, 65535)));
  launch(&elementwise_kernel, {grid, dim3(256)}, device, nf4_matrix(args), args.y.data(), nf4_leading(args.y));
}

/// codes (n, 32 b), absmax (n, b), y (n, k), b = ceil(k/64): row-major, rows of codes at multiples of 4 bytes; y shares
/// no memory. One rounding. Cost 4.6 n k bytes.
void run_vectors(const ops::Nf4DequantizeArgs& args, Device& device) {
  if (args.n == 0 || args.k == 0) return;
  const Index chunks = (args.k + 3) / 4, ld = nf4_leading(args.y);
  unsigned wide = 8;
  while (wide < 256 && wide < chunks) wide *= 2;
  const dim3 block(wide, 256 / wide);
  const dim3 grid(blocks_for(chunks, wide),
                  static_cast<unsigned>(std::min<Index>((args.n + block.y - 1) / block.y, 65535)));
  const bool aligned = reinterpret_cast<std::uintptr_t>(args.y.data()) % 16 == 0 && (args.n == 1 || ld % 4 == 0);
  launch(aligned ? &vectors_kernel<true> : &vectors_kernel<false>, {grid, block}, device, nf4_matrix(args),
         args.y.data(), ld);
}

template <void (*run)(const ops::Nf4DequantizeArgs&, Device&)>
Kernel decoder(std::string_view id, std::string_view summary) {
  return {.id = id, .summary = summary, .run = &run_typed<ops::Nf4DequantizeArgs, run>};
}

const KernelRegistration elementwise{
    decoder<&run_elementwise>("nf4_dequantize/" ASSAY_CUDA_NAME "/elementwise", "one thread an element")};
const KernelRegistration vectors{preferred(decoder<&run_vectors>(
    "nf4_dequantize/" ASSAY_CUDA_NAME "/vectors", "four elements a thread, the codebook in shared memory"))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_dequantize
