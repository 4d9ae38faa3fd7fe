// One step of AdamW, four parameters a thread.
#include "kernels/adamw_constants.hpp"
#include "kernels/cuda/block_reduce.cuh"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_adamw_step {
namespace {

struct AdamwVectors {
  Index n;
  float *p, *m, *v;
  const float* g;
  AdamwConstants c;
};

__device__ void adamw_element(const AdamwConstants& c, float& p, float& m, float& v, float g) {
  m = c.keep1 * m + c.take1 * g;
  v = c.keep2 * v + c.take2 * g * g;
  p = c.decay * p - c.size * (m / (sqrtf(v) * c.scale + c.eps));
}

/// m' = keep1 m + take1 g, v' = keep2 v + take2 g^2, p' = decay p - size m' / (scale sqrt(v') + eps), in place; vectors
/// are dense and share no memory. Loads and stores take 16 bytes if a vector is aligned to 16 bytes. The bits of an
/// element do not depend on its position.
__global__ void __launch_bounds__(256) adamw_kernel(AdamwVectors a) {
  const bool p_aligned = aligned16(a.p), m_aligned = aligned16(a.m), v_aligned = aligned16(a.v),
             g_aligned = aligned16(a.g);
  const Index n = a.n;
  const Index i = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * 4;
  if (i >= n) return;
  float4 p = load4(a.p, n, i, p_aligned, 0.0f), m = load4(a.m, n, i, m_aligned, 0.0f),
         v = load4(a.v, n, i, v_aligned, 0.0f);
  const float4 g = load4(a.g, n, i, g_aligned, 0.0f);
  adamw_element(a.c, p.x, m.x, v.x, g.x);
  adamw_element(a.c, p.y, m.y, v.y, g.y);
  adamw_element(a.c, p.z, m.z, v.z, g.z);
  adamw_element(a.c, p.w, m.w, v.w, g.w);
  store4(a.p, n, i, p_aligned, p);
  store4(a.m, n, i, m_aligned, m);
  store4(a.v, n, i, v_aligned, v);
}

void run(const ops::AdamwStepArgs& args, Device& device) {
  if (args.n == 0) return;
  const AdamwVectors a{args.n, args.p.data(), args.m.data(), args.v.data(), args.g.data(), adamw_constants(args)};
  const unsigned threads = row_threads(args.n, 4);
  launch(&adamw_kernel, {dim3(blocks_for(args.n, 4 * Index{threads})), dim3(threads)}, device, a);
}

const KernelRegistration four_per_thread{{.id = "adamw_step/" ASSAY_CUDA_NAME "/four_per_thread",
                                          .arithmetic = {.functions = FunctionLibrary::cuda},
                                          .summary = "four parameters a thread, one pass",
                                          .run = &run_typed<ops::AdamwStepArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_adamw_step
