// Asynchronous instructions of compute capability 9.0 in one spelling for both worlds: inline PTX for sm_90a, and the
// model of runtime/cuda_host/hopper.hpp. Code for other architectures traps: kernels must not be launched there
// (need_hopper). Source: PTX ISA, "mbarrier", "cp.async.bulk.tensor", "wgmma", "setmaxnreg", "bar".
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "core/half.hpp"
#include "core/shape.hpp"
#include "runtime/cuda/launch.hpp"
#if defined(__CUDACC__)
#include <cuda.h>
#else
#include "runtime/cuda_host/hopper.hpp"
#endif

namespace assay::ASSAY_CUDA_NAMESPACE::hopper {

/// Bytes of a row of a box in shared memory, over which 128-byte swizzle permutes the 16-byte chunks; eight rows repeat
/// the permutation, so that boxes begin at multiples of kSwizzleBytes.
constexpr int kRowBytes = 128, kSwizzleBytes = 8 * kRowBytes;

/// In shared memory. Phases have the parities 0, 1, 0, ...; the phase before the first counts as complete.
struct alignas(8) Barrier {
  std::uint64_t bits;
};

/// True if tensor cores take operands of S: two of 16 bits, or of TF32 (float), which are not transposed.
template <class S, bool a_transposed, bool b_transposed>
constexpr bool kCanMultiply = sizeof(S) == 2 || (std::is_same_v<S, float> && !a_transposed && !b_transposed);

#if defined(__CUDACC__)

using TensorMap = CUtensorMap;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool kHasInstructions = true;
#else
constexpr bool kHasInstructions = false;
#endif

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Initializes a barrier for phases of `count` arrivals. fence_proxy_async() shows it to copies, and a barrier of the
/// block to other threads.
__device__ inline void initialize(Barrier& barrier, unsigned count) {
  if constexpr (!kHasInstructions) __trap();
  else asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(count) : "memory");
}
__device__ inline void arrive(Barrier& barrier) {
  if constexpr (!kHasInstructions) __trap();
  else asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}
/// Arrives; the phase ends after `bytes` more have been copied.
__device__ inline void arrive_expecting(Barrier& barrier, unsigned bytes) {
  if constexpr (!kHasInstructions) __trap();
  else
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
                 : "memory");
}
/// Waits until the last phase of this parity is complete.
__device__ inline void wait(Barrier& barrier, unsigned parity) {
  unsigned complete = 0;
  do {
    if constexpr (!kHasInstructions) __trap();
    else
      asm volatile(
          "{\n"
          ".reg .pred complete;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
          "selp.u32 %0, 1, 0, complete;\n"
          "}"
          : "=r"(complete)
          : "r"(shared_address(&barrier)), "r"(parity)
          : "memory");
  } while (complete == 0);
}
/// Orders this thread's accesses to shared memory before those of later asynchronous operations.
__device__ inline void fence_proxy_async() {
  if constexpr (!kHasInstructions) __trap();
  else asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Starts the copy of the box that begins at (row, column); zeros outside of the tensor. One thread calls it. Its bytes,
/// those outside included, count on `barrier`.
__device__ inline void copy_box(void* shared, const TensorMap& map, Barrier& barrier, int column, int row) {
  if constexpr (!kHasInstructions) __trap();
  else
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
            shared_address(shared)),
        "l"(&map), "r"(shared_address(&barrier)), "r"(column), "r"(row)
        : "memory");
}

/// The same from a matrix of a tensor of four axes: coordinates from the innermost axis on.
__device__ inline void copy_box(void* shared, const TensorMap& map, Barrier& barrier, int column, int row, int third,
                                int fourth) {
  if constexpr (!kHasInstructions) __trap();
  else
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
        "[%2];" ::"r"(shared_address(shared)),
        "l"(&map), "r"(shared_address(&barrier)), "r"(column), "r"(row), "r"(third), "r"(fourth)
        : "memory");
}

/// Waits for `threads` threads of the block at barrier `id`; 0 is that of __syncthreads().
__device__ inline void named_barrier(unsigned id, unsigned threads) {
  if constexpr (!kHasInstructions) __trap();
  else asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// Counts as one of these threads, and does not wait.
__device__ inline void arrive_at_named_barrier(unsigned id, unsigned threads) {
  if constexpr (!kHasInstructions) __trap();
  else asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Changes the registers of each thread of a warpgroup, whose warps all call it.
template <int count>
__device__ inline void release_registers() {
  static_assert(count >= 24 && count <= 256 && count % 8 == 0);
  if constexpr (!kHasInstructions) __trap();
  else asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ inline void take_registers() {
  static_assert(count >= 24 && count <= 256 && count % 8 == 0);
  if constexpr (!kHasInstructions) __trap();
  else asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

/// Keeps the compiler from moving accesses to `sums` across this point.
template <int count>
__device__ inline void pin(float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
template <int steps>
__device__ inline void pin(unsigned (&a)[steps][4]) {
#pragma unroll
  for (int i = 0; i < steps; ++i)
    asm volatile("" : "+r"(a[i][0]), "+r"(a[i][1]), "+r"(a[i][2]), "+r"(a[i][3])::"memory");
}
/// Orders accesses to registers before those of later products. Between writing sums or left operands and the first
/// product.
template <class... Registers>
__device__ inline void fence_products(Registers&... written) {
  (pin(written), ...);
  if constexpr (!kHasInstructions) __trap();
  else asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/// Ends a group of products.
__device__ inline void commit_products() {
  if constexpr (!kHasInstructions) __trap();
  else asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits for all groups except the last `groups`, which still use the sums.
template <int groups>
__device__ inline void wait_products() {
  if constexpr (!kHasInstructions) __trap();
  else asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}
/// Waits for all groups except the last `groups`, after which the `sums` of the others may be read.
template <int groups = 0, int count>
__device__ inline void complete_products(float (&sums)[count]) {
  wait_products<groups>();
  pin(sums);
}

namespace detail {

// Names of registers %0 ... in tens, and the constraints of sums in eights.
#define ASSAY_TEN(t) \
  "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9, "
#define ASSAY_30 ASSAY_TEN() ASSAY_TEN(1) ASSAY_TEN(2)
#define ASSAY_60 ASSAY_30 ASSAY_TEN(3) ASSAY_TEN(4) ASSAY_TEN(5)
#define ASSAY_90 ASSAY_60 ASSAY_TEN(6) ASSAY_TEN(7) ASSAY_TEN(8)
#define ASSAY_120 ASSAY_90 ASSAY_TEN(9) ASSAY_TEN(10) ASSAY_TEN(11)
#define ASSAY_32 ASSAY_30 "%30, %31"
#define ASSAY_64 ASSAY_60 "%60, %61, %62, %63"
#define ASSAY_128 ASSAY_120 "%120, %121, %122, %123, %124, %125, %126, %127"
#define ASSAY_F8(i)                                                                                           \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define ASSAY_F32(i) ASSAY_F8(i), ASSAY_F8(i + 8), ASSAY_F8(i + 16), ASSAY_F8(i + 24)
#define ASSAY_F64(i) ASSAY_F32(i), ASSAY_F32(i + 32)

// Operands behind the sums: descriptors a and b, whether to add to the sums, and transpositions, which TF32 has not;
// or the registers of a in place of its descriptor.
#define ASSAY_WGMMA(shape, type, registers, outputs, a_at, b_at, adds_at, transposed)                                \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" adds_at                                                    \
               ", 0;\n"                                                                                              \
               "wgmma.mma_async.sync.aligned.m64n" shape ".f32." type "." type " {" registers "}, %" a_at ", %" b_at \
               ", adds, 1, 1" transposed ";\n}"                                                                      \
               : outputs                                                                                             \
               : "l"(a), "l"(b), "r"(static_cast<int>(adds)), "n"(a_transposed ? 1 : 0), "n"(b_transposed ? 1 : 0))
#define ASSAY_WGMMA_REGISTERS(shape, type, registers, outputs, a0, a1, a2, a3, b_at, adds_at, transposed)         \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" adds_at                                                 \
               ", 0;\n"                                                                                           \
               "wgmma.mma_async.sync.aligned.m64n" shape ".f32." type "." type " {" registers "}, {%" a0 ", %" a1 \
               ", %" a2 ", %" a3 "}, %" b_at ", adds, 1, 1" transposed ";\n}"                                     \
               : outputs                                                                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(adds)),                 \
                 "n"(b_transposed ? 1 : 0))

template <class S, bool a_transposed, bool b_transposed>
__device__ inline void multiply(float (&d)[32], std::uint64_t a, std::uint64_t b, bool adds) {
  if constexpr (!kHasInstructions) __trap();
  else if constexpr (std::is_same_v<S, float>)
    ASSAY_WGMMA("64k8", "tf32", ASSAY_32, ASSAY_F32(0), "32", "33", "34", "");
  else if constexpr (std::is_same_v<S, Half>)
    ASSAY_WGMMA("64k16", "f16", ASSAY_32, ASSAY_F32(0), "32", "33", "34", ", %35, %36");
  else ASSAY_WGMMA("64k16", "bf16", ASSAY_32, ASSAY_F32(0), "32", "33", "34", ", %35, %36");
}
template <class S, bool a_transposed, bool b_transposed>
__device__ inline void multiply(float (&d)[64], std::uint64_t a, std::uint64_t b, bool adds) {
  if constexpr (!kHasInstructions) __trap();
  else if constexpr (std::is_same_v<S, float>)
    ASSAY_WGMMA("128k8", "tf32", ASSAY_64, ASSAY_F64(0), "64", "65", "66", "");
  else if constexpr (std::is_same_v<S, Half>)
    ASSAY_WGMMA("128k16", "f16", ASSAY_64, ASSAY_F64(0), "64", "65", "66", ", %67, %68");
  else ASSAY_WGMMA("128k16", "bf16", ASSAY_64, ASSAY_F64(0), "64", "65", "66", ", %67, %68");
}
#define ASSAY_F128 ASSAY_F64(0), ASSAY_F64(64)
template <class S, bool a_transposed, bool b_transposed>
__device__ inline void multiply(float (&d)[128], std::uint64_t a, std::uint64_t b, bool adds) {
  if constexpr (!kHasInstructions) __trap();
  else if constexpr (std::is_same_v<S, float>)
    ASSAY_WGMMA("256k8", "tf32", ASSAY_128, ASSAY_F128, "128", "129", "130", "");
  else if constexpr (std::is_same_v<S, Half>)
    ASSAY_WGMMA("256k16", "f16", ASSAY_128, ASSAY_F128, "128", "129", "130", ", %131, %132");
  else ASSAY_WGMMA("256k16", "bf16", ASSAY_128, ASSAY_F128, "128", "129", "130", ", %131, %132");
}
template <class S, bool b_transposed>
__device__ inline void multiply(float (&d)[32], const unsigned (&a)[4], std::uint64_t b, bool adds) {
  if constexpr (!kHasInstructions) __trap();
  else if constexpr (std::is_same_v<S, float>)
    ASSAY_WGMMA_REGISTERS("64k8", "tf32", ASSAY_32, ASSAY_F32(0), "32", "33", "34", "35", "36", "37", "");
  else if constexpr (std::is_same_v<S, Half>)
    ASSAY_WGMMA_REGISTERS("64k16", "f16", ASSAY_32, ASSAY_F32(0), "32", "33", "34", "35", "36", "37", ", %38");
  else ASSAY_WGMMA_REGISTERS("64k16", "bf16", ASSAY_32, ASSAY_F32(0), "32", "33", "34", "35", "36", "37", ", %38");
}
template <class S, bool b_transposed>
__device__ inline void multiply(float (&d)[64], const unsigned (&a)[4], std::uint64_t b, bool adds) {
  if constexpr (!kHasInstructions) __trap();
  else if constexpr (std::is_same_v<S, float>)
    ASSAY_WGMMA_REGISTERS("128k8", "tf32", ASSAY_64, ASSAY_F64(0), "64", "65", "66", "67", "68", "69", "");
  else if constexpr (std::is_same_v<S, Half>)
    ASSAY_WGMMA_REGISTERS("128k16", "f16", ASSAY_64, ASSAY_F64(0), "64", "65", "66", "67", "68", "69", ", %70");
  else ASSAY_WGMMA_REGISTERS("128k16", "bf16", ASSAY_64, ASSAY_F64(0), "64", "65", "66", "67", "68", "69", ", %70");
}
template <class S, bool b_transposed>
__device__ inline void multiply(float (&d)[128], const unsigned (&a)[4], std::uint64_t b, bool adds) {
  if constexpr (!kHasInstructions) __trap();
  else if constexpr (std::is_same_v<S, float>)
    ASSAY_WGMMA_REGISTERS("256k8", "tf32", ASSAY_128, ASSAY_F128, "128", "129", "130", "131", "132", "133", "");
  else if constexpr (std::is_same_v<S, Half>)
    ASSAY_WGMMA_REGISTERS("256k16", "f16", ASSAY_128, ASSAY_F128, "128", "129", "130", "131", "132", "133", ", %134");
  else
    ASSAY_WGMMA_REGISTERS("256k16", "bf16", ASSAY_128, ASSAY_F128, "128", "129", "130", "131", "132", "133", ", %134");
}
#undef ASSAY_WGMMA_REGISTERS
#undef ASSAY_WGMMA
#undef ASSAY_F128
#undef ASSAY_F64
#undef ASSAY_F32
#undef ASSAY_F8
#undef ASSAY_128
#undef ASSAY_64
#undef ASSAY_32
#undef ASSAY_120
#undef ASSAY_90
#undef ASSAY_60
#undef ASSAY_30
#undef ASSAY_TEN

}  // namespace detail

/// Starts sums (+)= a b for 64 rows, 2 count columns and 32 bytes of terms, in a warpgroup; `adds`: to the sums as they
/// are. Warp w of the four has rows 16 w ..; of 16x8 tile n of these a lane has sums 4 n .. 4 n + 3, placed as in
/// mma.cuh. Transposed operands are stored with rows (a) or columns (b) as neighbours, others with terms as neighbours.
/// Elements of S = float count as TF32: the low 13 bits of each have no effect.
template <class S, bool a_transposed, bool b_transposed, int count>
__device__ inline void multiply(float (&sums)[count], std::uint64_t a, std::uint64_t b, bool adds) {
  static_assert(kCanMultiply<S, a_transposed, b_transposed>);
  detail::multiply<S, a_transposed, b_transposed>(sums, a, b, adds);
}
/// The same with a in registers, which must keep their values until the products are complete. A lane has the elements
/// of mma's operand for its warp's rows: 16x16, or 16x8 of TF32.
template <class S, bool b_transposed, int count>
__device__ inline void multiply(float (&sums)[count], const unsigned (&a)[4], std::uint64_t b, bool adds) {
  static_assert(kCanMultiply<S, false, b_transposed>);
  detail::multiply<S, b_transposed>(sums, a, b, adds);
}

#else

using TensorMap = cuda_host::HostTensorMap;
using cuda_host::Site;

inline unsigned shared_address(const void* pointer) { return cuda_host::shared_address(pointer); }
inline void initialize(Barrier& barrier, unsigned count, Site site = Site::current()) {
  cuda_host::mbarrier_init(&barrier.bits, count, site);
}
inline void arrive(Barrier& barrier, Site site = Site::current()) { cuda_host::mbarrier_arrive(&barrier.bits, site); }
inline void arrive_expecting(Barrier& barrier, unsigned bytes, Site site = Site::current()) {
  cuda_host::mbarrier_arrive_expect_tx(&barrier.bits, bytes, site);
}
inline void wait(Barrier& barrier, unsigned parity, Site site = Site::current()) {
  cuda_host::mbarrier_wait(&barrier.bits, parity, site);
}
inline void fence_proxy_async() { cuda_host::fence_proxy_async(); }
inline void copy_box(void* shared, const TensorMap& map, Barrier& barrier, int column, int row,
                     Site site = Site::current()) {
  cuda_host::copy_box(shared, map, &barrier.bits, {column, row, 0, 0}, site);
}
inline void copy_box(void* shared, const TensorMap& map, Barrier& barrier, int column, int row, int third, int fourth,
                     Site site = Site::current()) {
  cuda_host::copy_box(shared, map, &barrier.bits, {column, row, third, fourth}, site);
}
inline void named_barrier(unsigned id, unsigned threads, Site site = Site::current()) {
  cuda_host::named_barrier(id, threads, site);
}
inline void arrive_at_named_barrier(unsigned id, unsigned threads, Site site = Site::current()) {
  cuda_host::arrive_at_named_barrier(id, threads, site);
}
template <int count>
void release_registers() {
  static_assert(count >= 24 && count <= 256 && count % 8 == 0);
}
template <int count>
void take_registers() {
  static_assert(count >= 24 && count <= 256 && count % 8 == 0);
}
template <class... Registers>
void fence_products(Registers&...) {
  cuda_host::wgmma_fence();
}
inline void commit_products() { cuda_host::wgmma_commit(); }
template <int groups>
void wait_products(Site site = Site::current()) {
  cuda_host::wgmma_wait(groups, site);
}
template <int groups = 0, int count>
void complete_products(float (&)[count], Site site = Site::current()) {
  cuda_host::wgmma_wait(groups, site);
}
template <class S>
constexpr cuda_host::MmaInputs kInputs = std::is_same_v<S, Half>    ? cuda_host::MmaInputs::f16
                                         : std::is_same_v<S, float> ? cuda_host::MmaInputs::tf32
                                                                    : cuda_host::MmaInputs::bf16;
template <class S, bool a_transposed, bool b_transposed, int count>
void multiply(float (&sums)[count], std::uint64_t a, std::uint64_t b, bool adds, Site site = Site::current()) {
  static_assert(kCanMultiply<S, a_transposed, b_transposed>);
  cuda_host::wgmma({kInputs<S>, 2 * count, nullptr, a, b, a_transposed, b_transposed, adds}, sums, site);
}
template <class S, bool b_transposed, int count>
void multiply(float (&sums)[count], const unsigned (&a)[4], std::uint64_t b, bool adds, Site site = Site::current()) {
  static_assert(kCanMultiply<S, false, b_transposed>);
  cuda_host::wgmma({kInputs<S>, 2 * count, a, 0, b, false, b_transposed, adds}, sums, site);
}

#endif

/// Describes an operand in boxes at `first`. K-major: rows of the operand are rows of a box, `stride` bytes lie between
/// groups of eight, `leading` has no meaning. MN-major: terms are rows of a box, with `stride` bytes between groups of
/// eight, and `leading` bytes between groups of 64 rows of the operand. Source: PTX ISA, "Matrix Descriptor Format" and
/// "Strides".
__device__ inline std::uint64_t descriptor(const void* first, unsigned leading, unsigned stride) {
  constexpr std::uint64_t kSwizzle128 = 1;
  const auto encoded = [](unsigned bytes) { return static_cast<std::uint64_t>((bytes & 0x3ffffU) >> 4); };
  return encoded(shared_address(first)) | encoded(leading) << 16 | encoded(stride) << 32 | kSwizzle128 << 62;
}

/// Returns the first address of dynamic shared memory that a box may have. kSwizzleBytes more than the boxes need are to
/// be allocated.
__device__ inline unsigned char* boxes_of_block() {
  unsigned char* const memory = dynamic_shared<unsigned char>();
  return memory + (kSwizzleBytes - shared_address(memory) % kSwizzleBytes) % kSwizzleBytes;
}

/// Returns why a device of this compute capability (90 is 9.0) cannot run kernels of this file.
inline std::optional<std::string> refuse_capability([[maybe_unused]] int capability) {
#if defined(__CUDACC__) && !defined(ASSAY_HOPPER)
  return "this program has no machine code for sm_90a";
#else
  if (capability == 90) return std::nullopt;
  return "its instructions exist on compute capability 9.0 alone; this device has " + std::to_string(capability / 10) +
         "." + std::to_string(capability % 10);
#endif
}

/// Throws Unavailable unless the device can run kernels of this file.
inline void need_hopper([[maybe_unused]] std::string_view kernel, [[maybe_unused]] Device& device) {
#if defined(__CUDACC__)
  if (auto why = refuse_capability(static_cast<CudaDevice&>(device).compute_capability()))
    throw Unavailable(std::string(kernel), *why);
#endif
}

/// Returns why the device of this process, if it has started one, cannot run kernels of this file.
inline std::optional<std::string> refuse_device() {
#if defined(__CUDACC__)
  if (Device* const started = started_device(Backend::cuda))
    return refuse_capability(static_cast<CudaDevice&>(*started).compute_capability());
#endif
  return std::nullopt;
}

/// Returns why no box can be taken of a matrix.
template <class S>
std::optional<std::string> refuse_boxes(const std::string& matrix, const S* first, Index ld) {
  if (reinterpret_cast<std::uintptr_t>(first) % 16 == 0 && ld * static_cast<Index>(sizeof(S)) % 16 == 0 &&
      ld < (Index{1} << 39) / static_cast<Index>(sizeof(S)))
    return std::nullopt;
  return matrix +
         " must start at a multiple of 16 bytes and have rows at multiples of 16 bytes, less than 2^39 apart, "
         "for tensor copies";
}

/// Describes a tensor of `axes` axes, whose extents go from the innermost on and whose steps (in elements) from the
/// second, for boxes of `box_rows` rows of kRowBytes. Throws DeviceError if the driver refuses it.
template <class S, int axes>
TensorMap tensor_map(const S* first, const Index (&extents)[axes], const Index (&steps)[axes - 1], unsigned box_rows,
                     [[maybe_unused]] Device& device) {
  static_assert(kCanMultiply<S, false, false> && axes <= 4);
  if (std::ranges::find(extents, 0) != std::ranges::end(extents)) return {};  // has no boxes
  constexpr unsigned kBoxColumns = kRowBytes / sizeof(S);
  std::uint64_t sizes[4] = {1, 1, 1, 1}, step_bytes[3] = {};
  for (int i = 0; i < axes; ++i) sizes[i] = static_cast<std::uint64_t>(extents[i]);
  for (int i = 0; i + 1 < axes; ++i) step_bytes[i] = static_cast<std::uint64_t>(steps[i]) * sizeof(S);
#if defined(__CUDACC__)
  auto& cuda = static_cast<CudaDevice&>(device);
  if (cuda.preparing()) return {};  // tensors may have no memory, and nothing is launched
  static const auto encode = [&] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    cuda.check("cudaGetDriverEntryPointByVersion",
               cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result));
    if (result != cudaDriverEntryPointSuccess || found == nullptr)
      throw Unavailable("tensor copies", "the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  TensorMap map;
  const cuuint32_t box[] = {kBoxColumns, box_rows, 1, 1}, traversal[] = {1, 1, 1, 1};
  const CUresult result =
      encode(&map,
             std::is_same_v<S, Half>    ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
             : std::is_same_v<S, float> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                        : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
             axes, const_cast<S*>(first), reinterpret_cast<const cuuint64_t*>(sizes),
             reinterpret_cast<const cuuint64_t*>(step_bytes), box, traversal, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  cuda.check("cuTensorMapEncodeTiled", static_cast<cudaError_t>(result));
  return map;
#else
  return cuda_host::tensor_map({reinterpret_cast<const std::byte*>(first),
                                {sizes[0], sizes[1], sizes[2], sizes[3]},
                                {step_bytes[0], step_bytes[1], step_bytes[2]},
                                kBoxColumns,
                                box_rows,
                                sizeof(S)},
                               axes);
#endif
}
/// The same for rows x columns elements, `ld` apart.
template <class S>
TensorMap tensor_map(const S* first, Index rows, Index columns, Index ld, unsigned box_rows, Device& device) {
  return tensor_map<S, 2>(first, {columns, rows}, {ld}, box_rows, device);
}

/// launch() for kernels that use this file.
template <class... P, class... A>
void launch_asynchronous(void (*kernel)(P...), const LaunchShape& shape, Device& device, A&&... args) {
#if defined(__CUDACC__)
  launch(kernel, shape, device, std::forward<A>(args)...);
#else
  (void)device;
  cuda_host::run_call(
      shape.grid, shape.block, shape.shared_bytes,
      [&](auto&&... each) {
        kernel(static_cast<P>(each)...);
        cuda_host::end_asynchronous_thread();
      },
      args...);
#endif
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE::hopper
