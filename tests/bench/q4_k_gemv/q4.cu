// Times q4_k_gemv kernels and a chain of layers in CUDA graphs. Self-contained but for the .inc files beside it.
#include <cuda_pipeline.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("%s:%d %s\n", #x, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)
using Index = std::int64_t;
namespace q4_k { constexpr Index kValues = 256, kBytes = 144, kSubBlock = 32, kCodes = 16; __host__ __device__ constexpr Index blocks_of(Index k) { return (k + 255) / 256; } }
struct Half { std::uint16_t bits; };
__device__ inline float load(Half x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline float load(float x) { return x; }
__device__ inline float4 load4(const float* row, Index j, Index n, bool aligned) {
  if (aligned && j + 4 <= n) return *reinterpret_cast<const float4*>(row + j);
  return make_float4(j < n ? row[j] : 0, j + 1 < n ? row[j + 1] : 0, j + 2 < n ? row[j + 2] : 0, j + 3 < n ? row[j + 3] : 0);
}
struct Plus { __device__ float operator()(float a, float b) const { return a + b; } };
template <int threads, class Op> __device__ inline float reduce_row(float v, float*) {
#pragma unroll
  for (int s = 16; s > 0; s /= 2) v = Op()(v, __shfl_xor_sync(~0U, v, s));
  return v;
}
template <class T> __device__ T* dynamic_shared() { extern __shared__ __align__(128) unsigned char dyn[]; return reinterpret_cast<T*>(dyn); }
#define ASSAY_SHARED(t, n, e) __shared__ t n e
__device__ inline void let_next_begin() { cudaTriggerProgrammaticLaunchCompletion(); }
__device__ inline void await_previous() { cudaGridDependencySynchronize(); }
__device__ inline unsigned sh(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ inline void barrier_init(std::uint64_t* b) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sh(b)) : "memory"); }
__device__ inline void barrier_wait(std::uint64_t* b, unsigned parity) {
  unsigned done = 0;
  do asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(sh(b)), "r"(parity) : "memory"); while (!done);
}
__device__ inline void bulk_copy(void* to, const void* from, int bytes, std::uint64_t* b) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sh(b)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(sh(to)), "l"(from), "r"(bytes), "r"(sh(b)) : "memory");
}
#include "q4k.inc"

struct Call { Index rows, k; const std::uint8_t* w; const float* x; float* y; };
using Launch = void (*)(const Call&, cudaStream_t, bool pdl);
template <class A> void go(void (*f)(A), dim3 g, dim3 b, size_t shared, cudaStream_t s, bool pdl, A a) {
  if (shared > 48 * 1024) CHECK(cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
  cudaLaunchAttribute at{}; at.id = cudaLaunchAttributeProgrammaticStreamSerialization; at.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t c{}; c.gridDim = g; c.blockDim = b; c.dynamicSmemBytes = shared; c.stream = s; c.attrs = &at; c.numAttrs = pdl ? 1 : 0;
  CHECK(cudaLaunchKernelEx(&c, f, a));
}
inline unsigned over(Index n, Index e) { return (unsigned)((n + e - 1) / e); }

namespace today {
#include "today.inc"
void launch(const Call& c, cudaStream_t s, bool) {
  go(&q4k_gemv_kernel<2>, dim3(over(c.rows, kRowWarps * 2)), dim3(kThreads), kTileBytes, s, false, Q4kGemv{c.rows, c.k, {c.w, q4_k::blocks_of(c.k) * 144}, c.x, c.y, true, true});
}
}
// Today's with smaller blocks and tiles, and PDL with a prefetch into L2.
#define SMALL(NS) namespace NS { \
void launch(const Call& c, cudaStream_t s, bool pdl) { \
  go(&q4k_gemv_kernel<OWNED>, dim3(over(c.rows, kRowWarps * OWNED)), dim3(kThreads), kTileBytes, s, pdl, Q4kGemv{c.rows, c.k, {c.w, q4_k::blocks_of(c.k) * 144}, c.x, c.y, true, true}); } }
#define THREADS 256
#define TILE 16
#define OWNED 4
namespace s256 {
#include "small.inc"
}
SMALL(s256)
#undef THREADS
#undef TILE
#define THREADS 512
#define TILE 16
namespace s512 {
#include "small.inc"
}
SMALL(s512)

#define PERSISTENT(NS, RINGBYTES) namespace NS { \
void launch(const Call& c, cudaStream_t s, bool pdl) { \
  const Index lots = (q4_k::blocks_of(c.k) + kLotBlocks - 1) / kLotBlocks; \
  const int shares = (int)std::min<Index>(kWarps, lots), streams = kWarps / shares; \
  const Index rows = std::min<Index>(kMostRows, (c.rows + kBlocks - 1) / kBlocks); \
  const size_t floats = (size_t)shares * (4 * kLotFours + kLotSums) + ((size_t)shares * rows + 3) / 4 * 4; \
  go(&q4k_gemv_kernel<true>, dim3(over(c.rows, rows)), dim3(32 * shares * streams), floats * 4 + shares * streams * (RINGBYTES), s, pdl, \
     Q4kGemv{c.rows, c.k, {c.w, q4_k::blocks_of(c.k) * 144}, c.x, c.y, true, shares, streams, (int)rows, pdl}); } }
#define WARPS 8
#define PER_SM 2
#define GRID 264
#define STAGES 6
namespace ring6 {
#include "ring.inc"
}
PERSISTENT(ring6, kStages * kLotBytes)
namespace bulk6 {
#include "bulk.inc"
}
PERSISTENT(bulk6, kStages * kLotBytes)
#undef STAGES
#define STAGES 4
namespace ring4 {
#include "ring.inc"
}
PERSISTENT(ring4, kStages * kLotBytes)
#undef STAGES
#define STAGES 3
namespace pair3 {
#include "pair.inc"
}
PERSISTENT(pair3, kStages * kPair * kLotBytes)
#undef GRID
#define GRID 132
namespace pair3x1 {
#include "pair.inc"
}
PERSISTENT(pair3x1, kStages * kPair * kLotBytes)
#undef GRID
#define GRID 264
#define DEPTH 1
namespace direct1 {
#include "direct.inc"
}
PERSISTENT(direct1, 0)
#undef STAGES
#undef GRID
#define GRID 132
#define STAGES 8
namespace ring8x1 {
#include "ring.inc"
}
PERSISTENT(ring8x1, kStages * kLotBytes)
#undef PER_SM
#define PER_SM 1
#undef WARPS
#define WARPS 14
#undef STAGES
#define STAGES 7
namespace ring14 {
#include "ring.inc"
}
PERSISTENT(ring14, kStages * kLotBytes)
#undef DEPTH
#undef WARPS
#define WARPS 12
#define DEPTH 2
namespace direct2 {
#include "direct.inc"
}
PERSISTENT(direct2, 0)

struct Candidate { const char* name; Launch launch; };
const Candidate kCandidates[] = {{"today", today::launch}, {"s256", s256::launch}, {"s512", s512::launch}, {"ring6", ring6::launch}, {"ring4", ring4::launch},
                                 {"ring8x1", ring8x1::launch}, {"ring14", ring14::launch}, {"bulk6", bulk6::launch}, {"pair3", pair3::launch}, {"pair3x1", pair3x1::launch}, {"direct1", direct1::launch}, {"direct2", direct2::launch}};

__global__ void fill(std::uint8_t* w, Index blocks) {
  for (Index b = Index{blockIdx.x} * blockDim.x + threadIdx.x; b < blocks; b += Index{gridDim.x} * blockDim.x) {
    unsigned s = (unsigned)(b * 2654435761u + 12345u);
    unsigned* const out = reinterpret_cast<unsigned*>(w + b * 144);
    for (int i = 0; i < 36; ++i) { s ^= s << 13, s ^= s >> 17, s ^= s << 5; out[i] = s; }
    out[0] = 0x12110c22u + (s & 0x00ff00ffu);  // dmin and d about 7e-4 and 2.5e-4
  }
}

// Small kernels of a layer, with the same traffic and the same number of blocks as the program's.
struct Row { const float *a, *b; float* y; Index n; bool pdl; };
__global__ void __launch_bounds__(256) norm_kernel(Row r) {  // one block a row
  __shared__ float part[8];
  if (r.pdl) let_next_begin(), await_previous();
  float sum = 0;
  for (int i = threadIdx.x; i < r.n / 4; i += 256) { const float4 v = reinterpret_cast<const float4*>(r.a)[i]; sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }
  sum = reduce_row<32, Plus>(sum, nullptr);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 8; ++i) sum += part[i];
  const float scale = rsqrtf(sum / r.n + 1e-5f);
  for (int i = threadIdx.x; i < r.n; i += 256) r.y[i] = r.a[i] * scale;
}
__global__ void __launch_bounds__(256) add_kernel(Row r) {  // also stands for silu_mul and rope
  if (r.pdl) let_next_begin(), await_previous();
  const Index i = Index{blockIdx.x} * 256 + threadIdx.x;
  if (i < r.n) r.y[i] = 0.5f * r.a[i] + 0.5f * r.b[i];
}
__global__ void __launch_bounds__(128) attend_kernel(Row r) {  // reads 8.4 MB of cache in 128 blocks (16 splits, 8 groups)
  if (r.pdl) let_next_begin(), await_previous();
  const float4* const p = reinterpret_cast<const float4*>(r.b) + blockIdx.x * 4096;
  float sum = r.a[threadIdx.x];
#pragma unroll 8
  for (int i = threadIdx.x; i < 4096; i += 128) { const float4 v = p[i]; sum += v.x + v.y + v.z + v.w; }
  r.y[blockIdx.x * 128 + threadIdx.x] = sum;
}
__global__ void __launch_bounds__(64) combine_kernel(Row r) {
  if (r.pdl) let_next_begin(), await_previous();
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += r.a[(blockIdx.x * 64 + threadIdx.x) * 4 + i];
  r.y[blockIdx.x * 64 + threadIdx.x] = sum * 1e-3f, r.y[blockIdx.x * 64 + threadIdx.x + 2048] = sum * 1e-3f;
}

cudaStream_t stream;
float time_graph(const std::function<void()>& work, int runs = 7) {  // best of runs, ms
  cudaGraph_t g; cudaGraphExec_t e;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  work();
  CHECK(cudaStreamEndCapture(stream, &g));
  CHECK(cudaGraphInstantiate(&e, g, 0));
  cudaEvent_t a, b; CHECK(cudaEventCreate(&a)); CHECK(cudaEventCreate(&b));
  CHECK(cudaGraphLaunch(e, stream));
  float best = 1e9;
  for (int i = 0; i < runs; ++i) {
    CHECK(cudaEventRecord(a, stream)); CHECK(cudaGraphLaunch(e, stream)); CHECK(cudaEventRecord(b, stream));
    CHECK(cudaStreamSynchronize(stream));
    float ms; CHECK(cudaEventElapsedTime(&ms, a, b)); best = std::min(best, ms);
  }
  CHECK(cudaGraphExecDestroy(e)); CHECK(cudaGraphDestroy(g));
  return best;
}

double half_value(unsigned h) { const int e = h >> 10 & 31, m = h & 1023; const double v = e ? std::ldexp(1024 + m, e - 25) : std::ldexp(m, -24); return h >> 15 ? -v : v; }
void row_double(const std::uint8_t* row, const std::vector<float>& x, double& y, double& scale) {
  y = scale = 0;
  for (size_t p = 0; p < x.size(); ++p) {
    const std::uint8_t* const b = row + p / 256 * 144; const int v = p % 256, s = v / 32; const std::uint8_t* const q = b + 4;
    int sc, m;
    if (s < 4) sc = q[s] & 63, m = q[s + 4] & 63;
    else sc = (q[s + 4] & 15) | (q[s - 4] >> 6) << 4, m = q[s + 4] >> 4 | (q[s] >> 6) << 4;
    const int code = b[16 + v / 64 * 32 + v % 32] >> (v % 64 / 32 * 4) & 15;
    const double w = (float)(half_value(b[0] | b[1] << 8) * sc * code - half_value(b[2] | b[3] << 8) * m);
    y += w * x[p], scale += std::fabs(half_value(b[0] | b[1] << 8) * sc * code * x[p]) + std::fabs(half_value(b[2] | b[3] << 8) * m * x[p]);
  }
}

int main(int argc, char** argv) {
  const bool quick = argc > 1;  // compute-sanitizer: checks alone
  cudaDeviceProp prop; CHECK(cudaGetDeviceProperties(&prop, 0));
  CHECK(cudaStreamCreate(&stream));
  const size_t pool = quick ? size_t{600} << 20 : size_t{4} << 30;
  std::uint8_t* w; float *x, *y, *cache;
  CHECK(cudaMalloc(&w, pool)); CHECK(cudaMalloc(&x, 1 << 20)); CHECK(cudaMalloc(&y, 1 << 22)); CHECK(cudaMalloc(&cache, size_t{32} * 8388608));
  fill<<<1024, 256, 0, stream>>>(w, pool / 144);
  CHECK(cudaMemsetAsync(cache, 0, size_t{32} * 8388608, stream)); CHECK(cudaMemsetAsync(y, 0, 1 << 22, stream));
  std::vector<float> hx(1 << 18);
  unsigned s = 7; for (float& v : hx) s = s * 1664525u + 1013904223u, v = (int)(s >> 8) * 0x1p-23f - 1;
  CHECK(cudaMemcpy(x, hx.data(), 1 << 20, cudaMemcpyHostToDevice));
  double copy = 0;
  if (!quick) {
    const size_t half = pool / 2 / 4096 * 4096;
    std::uint8_t* to; CHECK(cudaMalloc(&to, half));
    copy = 2.0 * half * 4 / (time_graph([&] { for (int i = 0; i < 4; ++i) CHECK(cudaMemcpyAsync(to, w, half, cudaMemcpyDeviceToDevice, stream)); }) * 1e-3);
    CHECK(cudaFree(to));
    printf("%s, copy %.0f GB/s (2 bytes moved a byte)\n", prop.name, copy / 1e9);
  }
  const Index shapes[][2] = {{4096, 4096}, {1024, 4096}, {14336, 4096}, {4096, 14336}, {128256, 4096}};
  const Index odd[][2] = {{1, 256}, {33, 512}, {130, 2304}, {517, 20480}, {65, 4352}, {4096, 4096}, {1024, 4096}, {700, 14336}, {128256, 4096}};
  // Checks: in units of float rounding of sum |w||x|; at most k would be legal.
  printf("%-9s", "checks");
  std::vector<std::uint8_t> row(1 << 20);
  for (const Candidate& c : kCandidates) {
    double worst = 0; bool wrong = false;
    for (const auto& [rows, k] : odd) for (const bool pdl : {false, true}) {
      if (c.launch == today::launch && pdl) continue;
      CHECK(cudaMemset(y, 0xff, 1 << 22));
      c.launch({rows, k, w, x, y}, stream, pdl);
      CHECK(cudaGetLastError()); CHECK(cudaStreamSynchronize(stream));
      std::vector<float> got(rows);
      CHECK(cudaMemcpy(got.data(), y, rows * 4, cudaMemcpyDeviceToHost));
      for (float v : got) wrong = wrong || !(std::fabs(v) < 1e30f);
      const std::vector<float> part(hx.begin(), hx.begin() + k);
      for (int i = 0; i < 12; ++i) {
        s = s * 1664525u + 1013904223u;
        const Index r = i == 0 ? 0 : i == 1 ? rows - 1 : (s >> 4) % rows;
        CHECK(cudaMemcpy(row.data(), w + r * (k / 256 * 144), k / 256 * 144, cudaMemcpyDeviceToHost));
        double want, scale; row_double(row.data(), part, want, scale);
        worst = std::max(worst, std::fabs(got[r] - want) / (scale * 0x1p-24));
        wrong = wrong || !(std::fabs(got[r] - want) <= scale * 0x1p-24 * 40);
      }
    }
    printf(" %s:%s%.1fu", c.name, wrong ? "WRONG " : "", worst);
  }
  printf("\n");
  if (quick) return 0;
  printf("GB/s (share of copy); us a node. nodes of a graph one after another; + with PDL\n%-9s", "");
  for (const auto& [rows, k] : shapes) printf(" %19lldx%-5lld", (long long)rows, (long long)k);
  printf("\n");
  for (const Candidate& c : kCandidates) for (const bool pdl : {false, true}) {
    if (c.launch == today::launch && pdl) continue;
    printf("%-9s%s", c.name, pdl ? "+" : " ");
    for (const auto& [rows, k] : shapes) {
      const Index bytes = rows * (k / 256 * 144);
      const int nodes = (int)std::min<Index>(pool / bytes, 400);
      const float ms = time_graph([&] { for (int i = 0; i < nodes; ++i) c.launch({rows, k, w + i * bytes, x, y}, stream, pdl); });
      const double us = ms * 1e3 / nodes, rate = (bytes + 4.0 * (rows + k)) / (us * 1e-6);
      printf(" %7.2fus %5.0f (%.2f)", us, rate / 1e9, rate / copy);
    }
    printf("\n"); fflush(stdout);
  }
  CHECK(cudaMemset(y, 0, 1 << 22)); CHECK(cudaMemcpy(y, x, 65536 * 4, cudaMemcpyDeviceToDevice));
  // A layer: norm q k v rope rope attend combine o add norm gate up silu down add
  constexpr int kLayers = 32;
  float* const b[] = {y, y + 65536, y + 131072, y + 196608, y + 262144, y + 327680, y + 393216, y + 458752};
  double layer_bytes = 0;
  enum { plain, branches, pdl, pdl_stacked, no_small, no_small_pdl, kModes };
  const char* const modes[] = {"plain", "branches", "PDL", "PDL+stacked", "gemv only", "gemv only PDL"};
  cudaStream_t side[2]; for (auto& t : side) CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
  cudaEvent_t fork; CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  cudaEvent_t joined[2]; for (auto& e : joined) CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  printf("token of 32 layers and head, ms (share of copy for weights and cache)\n%-9s", "");
  for (const char* m : modes) printf(" %16s", m);
  printf("\n");
  for (const Candidate& c : kCandidates) {
    printf("%-9s ", c.name);
    for (int mode = 0; mode < kModes; ++mode) {
      const bool early = (mode == pdl || mode == pdl_stacked || mode == no_small_pdl) && c.launch != today::launch;
      const bool small_early = mode == pdl || mode == pdl_stacked, small = mode < no_small;
      layer_bytes = 0;
      const float ms = time_graph([&] {
        Index at = 0;
        const auto gemv = [&](Index rows, Index k, const float* in, float* out, cudaStream_t on) {
          c.launch({rows, k, w + at, in, out}, on, early);
          at += rows * (k / 256 * 144);
        };
        const auto forked = [&](int n) { CHECK(cudaEventRecord(fork, stream)); for (int i = 0; i < n; ++i) CHECK(cudaStreamWaitEvent(side[i], fork, 0)); };
        const auto join = [&](int n) { for (int i = 0; i < n; ++i) { CHECK(cudaEventRecord(joined[i], side[i])); CHECK(cudaStreamWaitEvent(stream, joined[i], 0)); } };
        const auto rows = [&](void (*f)(Row), unsigned grid, unsigned threads, const float* a, const float* second, float* out, Index n) {
          if (small) go(f, dim3(grid), dim3(threads), 0, stream, small_early, Row{a, second, out, n, small_early});
        };
        for (int l = 0; l < kLayers; ++l) {
          const bool par = mode == branches;
          rows(norm_kernel, 1, 256, b[0], b[0], b[1], 4096);
          if (mode == pdl_stacked) gemv(6144, 4096, b[1], b[2], stream);
          else {
            if (par) forked(2);
            gemv(4096, 4096, b[1], b[2], stream);
            gemv(1024, 4096, b[1], b[2] + 4096, par ? side[0] : stream);
            gemv(1024, 4096, b[1], b[2] + 5120, par ? side[1] : stream);
            if (par) join(2);
          }
          rows(add_kernel, 16, 256, b[2], b[2], b[2], 4096);
          rows(add_kernel, 4, 256, b[2] + 4096, b[2] + 4096, b[2] + 4096, 1024);
          rows(attend_kernel, 128, 128, b[2], cache + Index{l} * 2097152, b[3], 0);
          rows(combine_kernel, 32, 64, b[3], b[3], b[4], 4096);
          gemv(4096, 4096, b[4], b[5], stream);
          rows(add_kernel, 16, 256, b[0], b[5], b[0], 4096);
          rows(norm_kernel, 1, 256, b[0], b[0], b[1], 4096);
          if (mode == pdl_stacked) gemv(28672, 4096, b[1], b[6], stream);
          else {
            if (par) forked(1);
            gemv(14336, 4096, b[1], b[6], stream);
            gemv(14336, 4096, b[1], b[6] + 14336, par ? side[0] : stream);
            if (par) join(1);
          }
          rows(add_kernel, 56, 256, b[6], b[6] + 14336, b[7], 14336);
          gemv(4096, 14336, b[7], b[5], stream);
          rows(add_kernel, 16, 256, b[0], b[5], b[0], 4096);
        }
        gemv(128256, 4096, b[1], b[2], stream);
        layer_bytes = (double)at + (small ? kLayers * 8388608.0 : 0);
      });
      printf("  %7.3f (%.2f)  ", ms, layer_bytes / copy / (ms * 1e-3));
    }
    printf("\n"); fflush(stdout);
  }
  CHECK(cudaStreamSynchronize(stream));
  return 0;
}
