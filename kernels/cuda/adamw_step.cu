// One step of AdamW, four parameters a thread, and a copy of the parameters in the format of a model.
#include "kernels/adamw_constants.hpp"
#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/rows.cuh"
#include "runtime/registry.hpp"
// After launch.hpp, which names the namespace.
#include "kernels/cuda/storage.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_adamw_step {
namespace {

/// `rounded` may be null.
template <class S>
struct AdamwVectors {
  Index n;
  float *p, *m, *v;
  const float* g;
  S* rounded;
  AdamwConstants c;
};

__device__ void adamw_element(const AdamwConstants& c, float& p, float& m, float& v, float g) {
  m = c.keep1 * m + c.take1 * g;
  v = c.keep2 * v + c.take2 * g * g;
  p = c.decay * p - c.size * (m / (sqrtf(v) * c.scale + c.eps));
}

/// Four elements, stored as one word of 16 or 8 bytes.
template <class S>
struct alignas(4 * sizeof(S)) FourOf {
  S at[4];
};

/// Rounds p' once to S and stores it; `p` is float32, as it goes to the master.
template <class S>
__device__ inline void store_rounded(S* vector, Index n, Index i, float4 p) {
  FourOf<S> four;
  store(four.at[0], p.x), store(four.at[1], p.y), store(four.at[2], p.z), store(four.at[3], p.w);
  if (i + 3 < n && reinterpret_cast<std::uintptr_t>(vector) % sizeof(FourOf<S>) == 0) {
    *reinterpret_cast<FourOf<S>*>(vector + i) = four;
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (i + j < n) vector[i + j] = four.at[j];
}

/// m' = keep1 m + take1 g, v' = keep2 v + take2 g^2, p' = decay p - size m' / (scale sqrt(v') + eps), in place, and
/// rounded = p' in S, rounded once from the master; vectors are dense and share no memory. Loads and stores take four
/// elements at once if a vector is aligned to as many. The bits of an element do not depend on its position.
template <class S>
__global__ void __launch_bounds__(256) adamw_kernel(AdamwVectors<S> a) {
  const bool p_aligned = aligned16(a.p), m_aligned = aligned16(a.m), v_aligned = aligned16(a.v),
             g_aligned = aligned16(a.g);
  const Index n = a.n;
  const Index i = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * 4;
  if (i >= n) return;
  float4 p = load4(a.p, i, n, p_aligned), m = load4(a.m, i, n, m_aligned), v = load4(a.v, i, n, v_aligned);
  const float4 g = load4(a.g, i, n, g_aligned);
  adamw_element(a.c, p.x, m.x, v.x, g.x);
  adamw_element(a.c, p.y, m.y, v.y, g.y);
  adamw_element(a.c, p.z, m.z, v.z, g.z);
  adamw_element(a.c, p.w, m.w, v.w, g.w);
  store4(a.p, i, n, p_aligned, p);
  store4(a.m, i, n, m_aligned, m);
  store4(a.v, i, n, v_aligned, v);
  if (a.rounded != nullptr) store_rounded(a.rounded, n, i, p);
}

template <class S>
void run(const ops::AdamwStepArgs& args, Device& device) {
  if (args.n == 0) return;
  const AdamwVectors<S> a{args.n,
                          args.p.data(),
                          args.m.data(),
                          args.v.data(),
                          args.g.data(),
                          args.copies > 0 ? static_cast<S*>(args.rounded.data()) : nullptr,
                          adamw_constants(args)};
  const unsigned threads = row_threads(args.n, 4);
  launch(&adamw_kernel<S>, {dim3(blocks_for(args.n, 4 * Index{threads})), dim3(threads)}, device, a);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "four parameters a thread, one pass",
                             .run = &run_typed<ops::AdamwStepArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("adamw_step/" ASSAY_CUDA_NAME "/four_per_thread"),
                                            add<Half>("adamw_step/" ASSAY_CUDA_NAME "/four_per_thread_f16"),
                                            add<BFloat16>("adamw_step/" ASSAY_CUDA_NAME "/four_per_thread_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_adamw_step
