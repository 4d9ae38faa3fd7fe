// Gradients of rmsnorm in one pass over x and dy; shared by kernels that are given the reciprocal RMS and kernels that
// form it.
#pragma once

#include "kernels/cuda/packs.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// With a = dy weight and xn = x rrms: dx[i,j] = rrms[i] (a[i,j] - xn[i,j] sum_k a[i,k] xn[i,k] / n), dweight[j] =
/// sum_i dy[i,j] xn[i,j]. x, dy, dx (rows,n): S, rows dense; weight, dweight (n), rrms (rows). dx and dweight
/// share no memory with the inputs or each other. Offsets take 64 bits. Team t, a warp or a block, takes rows t,
/// t + teams, .. and sums its part of dweight; a second kernel adds the parts. Orders of sums over n and over rows
/// depend on the shape alone; no atomics.
template <class S>
struct RmsnormBackward {
  Index rows, n;
  const S* x;
  Index x_ld;
  const float* weight;
  const float* rrms;
  const S* dy;
  Index dy_ld;
  S* dx;
  Index dx_ld;
  float* dweight;
  float eps;
  Index teams;
};

namespace {  // nvcc has no inline kernels; memory of device code is local to each file

constexpr int kLongRow = 1024;  ///< most threads of a block that has one row
constexpr int kHeld = 2;        ///< packs of a row that a thread keeps in registers; a longer row is read again
constexpr Index kMultiprocessors = 132;  ///< of H100 and H200. No device is asked: dweight depends on the teams.

/// Parts of dweight (teams,n). The device's stream orders the calls that share it; an allocation would make each wait.
constexpr Index kMostParts = kMultiprocessors * kLongRow * kHeld * 8;
alignas(16) __device__ float rmsnorm_parts[kMostParts];

/// `given`: rrms is read. Otherwise it is 1 / sqrt(sum_j x[i,j]² / n + eps), and the projection, which is summed in the
/// same pass, is multiplied by it afterwards.
template <class S, int threads, bool given, bool whole>
__global__ void __launch_bounds__(threads == 32 ? kRowThreads : threads) rmsnorm_dx_kernel(RmsnormBackward<S> a) {
  ASSAY_SHARED(float, scratch, [kLongRow / 32]);
  const Team<threads> team;
  const int n = static_cast<int>(a.n), first = kPack<S> * team.place, step = kPack<S> * team.size,
            rest = first + kHeld * step;
  let_next_begin();
  await_previous();
  if (team.number >= a.teams) return;  // whole warps, or no thread of the block
  float* const parts = rmsnorm_parts + team.number * a.n;
  Elements<S> part[kHeld]{};
  for (Index row = team.number; row < a.rows; row += a.teams) {
    const S* const x = a.x + row * a.x_ld;
    const S* const dy = a.dy + row * a.dy_ld;
    S* const dx = a.dx + row * a.dx_ld;
    Pack<S> held_x[kHeld], held_dy[kHeld];
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      held_x[h] = load_pack<whole>(x, first + h * step, n);
      held_dy[h] = load_pack<whole>(dy, first + h * step, n);
    }
    float rrms = given ? a.rrms[row] : 1.0f, sum = 0.0f, squares = 0.0f;
    const auto add = [&](const Pack<S>& of_x, const Pack<S>& of_dy, int j) {
      const Elements<S> v = widened(of_x), g = widened(of_dy), w = load_floats<S, whole>(a.weight, j, n);
#pragma unroll
      for (int e = 0; e < kPack<S>; ++e) {
        sum += g.at[e] * w.at[e] * (v.at[e] * rrms);
        if constexpr (!given) squares += v.at[e] * v.at[e];
      }
    };
#pragma unroll
    for (int h = 0; h < kHeld; ++h) add(held_x[h], held_dy[h], first + h * step);
    for (int j = rest; j < n; j += step) add(load_pack<whole>(x, j, n), load_pack<whole>(dy, j, n), j);
    sum = reduce_row<threads, Plus>(sum, scratch);
    if constexpr (!given) {
      rrms = rsqrtf(reduce_row<threads, Plus>(squares, scratch) / static_cast<float>(n) + a.eps);
      sum *= rrms;
    }
    const float mean = sum / static_cast<float>(n);
    const auto finish = [&](const Pack<S>& of_x, const Pack<S>& of_dy, Elements<S>& own, int j) {
      Elements<S> v = widened(of_x), g = widened(of_dy), w = load_floats<S, whole>(a.weight, j, n);
#pragma unroll
      for (int e = 0; e < kPack<S>; ++e) {
        const float normalized = v.at[e] * rrms;
        own.at[e] += g.at[e] * normalized;
        v.at[e] = rrms * (g.at[e] * w.at[e] - normalized * mean);
      }
      store_pack<whole>(dx, j, n, v);
    };
#pragma unroll
    for (int h = 0; h < kHeld; ++h) finish(held_x[h], held_dy[h], part[h], first + h * step);
    for (int j = rest; j < n; j += step) {
      Elements<S> own{};
      if (row != team.number) own = load_floats<S, whole>(parts, j, n);
      finish(load_pack<whole>(x, j, n), load_pack<whole>(dy, j, n), own, j);
      store_floats<S, whole>(parts, j, n, own);
    }
  }
#pragma unroll
  for (int h = 0; h < kHeld; ++h) store_floats<S, whole>(parts, first + h * step, n, part[h]);
}

constexpr int kColumns = 32, kGroups = 32;

/// Thread (c, g) of a block adds parts g, g + 32, .. of its column; then the 32 sums are added in order.
template <class S>
__global__ void __launch_bounds__(kColumns* kGroups) rmsnorm_dweight_kernel(RmsnormBackward<S> a) {
  ASSAY_SHARED(float, sums, [kGroups][kColumns]);
  const Index column = Index{blockIdx.x} * kColumns + threadIdx.x;
  let_next_begin();
  await_previous();
  float sum = 0.0f;
  if (column < a.n)
#pragma unroll 8
    for (Index t = threadIdx.y; t < a.teams; t += kGroups) sum += rmsnorm_parts[t * a.n + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= a.n) return;
  for (int g = 1; g < kGroups; ++g) sum += sums[g][threadIdx.x];
  a.dweight[column] = sum;
}

template <class S, bool given, bool whole>
void launch_rmsnorm_backward(const RmsnormBackward<S>& a, Index threads, Device& device) {
  if (a.rows > 0 && threads == 32)
    launch_overlapping(&rmsnorm_dx_kernel<S, 32, given, whole>,
                       {dim3(blocks_for(a.teams, kRowThreads / 32)), dim3(kRowThreads)}, device, a);
  else if (a.rows > 0)
    launch_overlapping(&rmsnorm_dx_kernel<S, kLongRow, given, whole>,
                       {dim3(static_cast<unsigned>(a.teams)), dim3(static_cast<unsigned>(threads))}, device, a);
  launch_overlapping(&rmsnorm_dweight_kernel<S>, {dim3(blocks_for(a.n, kColumns)), dim3(kColumns, kGroups)}, device, a);
}

}  // namespace

/// Launches both kernels. `given`: args has rrms; otherwise it has eps.
template <class S, bool given, class Args>
void run_rmsnorm_backward(const Args& args, Device& device) {
  constexpr Index kOfWarp = 32 * kHeld * kPack<S>;
  const Index n = args.n, threads = std::min<Index>(kLongRow, (n + kOfWarp - 1) / kOfWarp * 32);
  // As many as run at once, unless rows or parts are fewer.
  const Index teams = std::min({args.rows, kMultiprocessors * (kLongRow / threads), kMostParts / n});
  RmsnormBackward<S> a{args.rows,
                       n,
                       static_cast<const S*>(args.x.data()),
                       row_stride(args.x),
                       args.weight.data(),
                       nullptr,
                       static_cast<const S*>(args.dy.data()),
                       row_stride(args.dy),
                       static_cast<S*>(args.dx.data()),
                       row_stride(args.dx),
                       args.dweight.data(),
                       0.0f,
                       teams};
  if constexpr (given) a.rrms = args.rrms.data();
  else a.eps = static_cast<float>(args.eps);
  if (packed(a.x, a.x_ld, n) && packed(a.weight, 0, n) && packed(a.dy, a.dy_ld, n) && packed(a.dx, a.dx_ld, n))
    launch_rmsnorm_backward<S, given, true>(a, threads, device);
  else launch_rmsnorm_backward<S, given, false>(a, threads, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
