// Products of matrices on the tensor cores of compute capability 9.0, in 16 bits, TF32 or three times TF32: one warp
// copies, two warpgroups multiply.
#pragma once

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/product.cuh"
#include "runtime/limits.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

inline constexpr std::string_view kWgmmaProduct =
    "16-bit tensor cores (wgmma m64n256k16, or n128), 128x256 or 128x128 block, a warp that copies and two warpgroups of "
    "64 rows, depth 64, four stages of tensor copies";
inline constexpr std::string_view kWgmmaTf32 =
    "TF32 tensor cores (wgmma m64n256k8, or n128), 128x256 or 128x128 block, a warp that copies and two warpgroups of 64 "
    "rows, depth 32, four stages of tensor copies";
inline constexpr std::string_view kWgmmaTf32x3 =
    "three TF32 tensor products (wgmma m64n256k8, or n128) for one in f32, 128x256 or 128x128 block, a warp that copies, "
    "two warpgroups of 64 rows that split and multiply, depth 32, three stages of tensor copies and one of lower parts";
/// Tensor cores drop the low 13 bits of float32 in shared memory; a NaN with no other bits in its payload becomes Inf.
inline constexpr Arithmetic kWgmmaTf32Arithmetic{.inputs = Format::tf32,
                                                 .input_rounding = Rounding::toward_zero,
                                                 .accumulation = Rounding::toward_zero,
                                                 .block = 4,
                                                 .functions = FunctionLibrary::cuda};

/// Returns the sum of element (row, column) where it is infinite in float32, else NaN. Three products of TF32 give NaN for
/// either: Inf has the lower part NaN, and meets lower parts of 0. A finite sum in place of NaN would hide that something
/// was read too soon.
__device__ inline float infinity_or_nan(const Product& p, int row, int column) {
  float sum = 0;
  for (int q = 0; q < p.k; ++q) sum += p.a[row * p.a_ld + q] * p.b[column * p.b_ld + q];
  return fabsf(sum) == INFINITY ? sum : NAN;
}

namespace wgmma_product_detail {

/// Extents of a tile, whose columns are a parameter, and of a warpgroup along the rows of C. A buffer holds the
/// operands of a tile: as copied (a stage), or their lower parts.
constexpr int kRows = 128, kBuffers = 4, kGroupRows = 64;
constexpr int kGroupThreads = 128, kConsumers = kRows / kGroupRows, kThreads = (1 + kConsumers) * kGroupThreads;
constexpr int kConsumerThreads = kConsumers * kGroupThreads, kConsumerWarps = kConsumerThreads / 32;
/// Blocks of rows that take the same columns one after another.
constexpr int kGroupedBlocks = 8;
/// With this pad of a row of C the stores of a warp access 32 different banks.
constexpr int kOutputPad = 8;
/// Named barriers: of all consumers, and of each; of those who read and write lower parts.
constexpr unsigned kAllConsumers = 1, kFirstConsumer = 2, kSplitters = kFirstConsumer + kConsumers;

template <class T, int count>
struct alignas(count * sizeof(T)) Elements {
  T at[count];
};

/// An operand's tile of a stage. K-major: one box of `rows` by kDepth terms. MN-major (transposed): boxes of kDepth
/// terms by kBox rows of the operand, one after another. A product takes kTerms terms.
template <class S, bool transposed, int rows>
struct Operand {
  static constexpr int kDepth = hopper::kRowBytes / sizeof(S), kBox = kDepth, kTerms = kDepth / 4;
  static constexpr int kBytes = rows * kDepth * sizeof(S), kBoxBytes = kBox * kDepth * sizeof(S);
  static constexpr unsigned kBoxRows = transposed ? kDepth : rows;

  /// Starts the copy of the rows of the operand from `row` and the terms from `term`.
  __device__ static void copy(unsigned char* tile, const hopper::TensorMap& map, hopper::Barrier& barrier, int row,
                              int term) {
    if constexpr (transposed)
      for (int i = 0; i < rows; i += kBox) hopper::copy_box(tile + i / kBox * kBoxBytes, map, barrier, row + i, term);
    else hopper::copy_box(tile, map, barrier, term, row);
  }
  /// Describes the rows from `row`, a multiple of kBox, and kTerms terms from `term`.
  __device__ static std::uint64_t described(const unsigned char* tile, int row, int term) {
    if constexpr (transposed)
      return hopper::descriptor(tile + row / kBox * kBoxBytes + term * hopper::kRowBytes, kBoxBytes,
                                hopper::kSwizzleBytes);
    else return hopper::descriptor(tile + row * hopper::kRowBytes + term * sizeof(S), 0, hopper::kSwizzleBytes);
  }
};

/// sums += l h' + h l' for 64 rows of A, from `y`, and all of B in a stage of float32: x = h + l, h the upper 11 bits,
/// which are what a tensor core takes of x. Writes l of the stage to `lower`, at the same places, with all consumers.
/// The products are a group; those of the last call must be complete.
template <class A, class B, int count>
__device__ inline void multiply_lower(float (&sums)[count], const unsigned char* stage, unsigned char* lower, int y) {
  // No warpgroup multiplies what `lower` holds any more.
  hopper::named_barrier(kSplitters, kConsumerThreads);
  using Vector = Elements<float, 4>;
  constexpr int kVectors = (A::kBytes + B::kBytes) / sizeof(Vector), kAtOnce = 4;  // vectors of a thread in flight
  static_assert(kVectors % (kAtOnce * kConsumerThreads) == 0);
  const auto* from = reinterpret_cast<const Vector*>(stage) + threadIdx.x - kGroupThreads;
  auto* to = reinterpret_cast<Vector*>(lower) + threadIdx.x - kGroupThreads;
#pragma unroll
  for (int first = 0; first < kVectors; first += kAtOnce * kConsumerThreads) {
    Vector x[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) x[i] = from[first + i * kConsumerThreads];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
      for (float& element : x[i].at) element -= __uint_as_float(__float_as_uint(element) & 0xffffe000U);
      to[first + i * kConsumerThreads] = x[i];
    }
  }
  hopper::fence_proxy_async();
  hopper::named_barrier(kSplitters, kConsumerThreads);
  hopper::fence_products(sums);
#pragma unroll
  for (int q = 0; q < A::kDepth; q += A::kTerms) {
    hopper::multiply<float, false, false>(sums, A::described(lower, y, q), B::described(stage + A::kBytes, 0, q), true);
    hopper::multiply<float, false, false>(sums, A::described(stage, y, q), B::described(lower + A::kBytes, 0, q), true);
  }
  hopper::commit_products();
}

/// Puts Inf where `held` is NaN and the sum in float32 is infinite.
template <int columns, class Epilogue>
__device__ inline void restore_infinity(const Product& p, const Epilogue& epilogue, float* held, int row0, int column0,
                                        int thread) {
  for (int number = thread; number < kGroupRows * columns; number += kGroupThreads) {
    const int row = row0 + number / columns, column = column0 + number % columns;
    float& element = held[number / columns * (columns + kOutputPad) + number % columns];
    if (element == element || row >= p.m || column >= p.n) continue;
    const float sum = infinity_or_nan(p, row, column);
    if (sum == sum) element = epilogue(sum, row, column);
  }
}

/// Stores the rows of `held` that are in C to its rows from row0; `thread` of kGroupThreads.
template <int columns, class S, class Out>
__device__ inline void store_rows(const ProductOf<S, Out>& p, const Out* held, int row0, int column0, int thread) {
  constexpr int kWord = 16 / sizeof(Out), kWordsPerRow = columns / kWord, kPitch = columns + kOutputPad;
  const bool aligned = rows_start_at(p.c, p.c_ld, 16);
  for (int number = thread; number < kGroupRows * kWordsPerRow; number += kGroupThreads) {
    const int row = row0 + number / kWordsPerRow, column = number % kWordsPerRow * kWord;
    if (!aligned || row >= p.m || column0 + column > p.n - kWord) continue;
    *reinterpret_cast<Elements<Out, kWord>*>(p.c + row * p.c_ld + column0 + column) =
        *reinterpret_cast<const Elements<Out, kWord>*>(held + number / kWordsPerRow * kPitch + column);
  }
  // The rest of each row: all of it if C is not aligned.
  const int inside = min(p.n - column0, columns), rest = aligned ? inside - inside % kWord : 0;
  for (int column = rest + thread; column < inside; column += kGroupThreads)
    for (int row = 0; row < kGroupRows && row0 + row < p.m; ++row)
      p.c[(row0 + row) * p.c_ld + column0 + column] = held[row * kPitch + column];
}

/// Stage s is full once its bytes have arrived, and empty once all warps of the consumers have multiplied them. The
/// first thread of the block copies; its warpgroup's registers go to the others. `split`: three products for one.
template <int columns, bool a_transposed, bool b_transposed, bool split, class S, class Out, class Epilogue>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_product_kernel(ProductOf<S, Out> p, const __grid_constant__ hopper::TensorMap a_map,
                         const __grid_constant__ hopper::TensorMap b_map, Epilogue epilogue) {
  // A is [k,m] if transposed, B is [n,k] if transposed: MN-major means rows of k.
  using A = Operand<S, a_transposed, kRows>;
  using B = Operand<S, !b_transposed, columns>;
  constexpr int kDepth = A::kDepth, kTerms = A::kTerms, kStages = split ? kBuffers - 1 : kBuffers;
  constexpr int kStageBytes = A::kBytes + B::kBytes, kPitch = columns + kOutputPad;
  static_assert(kBuffers * kStageBytes >= kRows * kPitch * static_cast<int>(sizeof(Out)), "C must fit");
  ASSAY_SHARED(hopper::Barrier, full, [kStages]);
  ASSAY_SHARED(hopper::Barrier, empty, [kStages]);
  unsigned char* const stages = hopper::boxes_of_block();
  const auto a_stage = [&](int tile) { return stages + tile % kStages * kStageBytes; };
  const auto b_stage = [&](int tile) { return a_stage(tile) + A::kBytes; };
  // Blocks that run at the same time share rows of A and of B in the second-level cache: columns of a few blocks.
  const int number = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  const int of_group = kGroupedBlocks * static_cast<int>(gridDim.x), first_block = number / of_group * kGroupedBlocks;
  const int grouped = min(static_cast<int>(gridDim.y) - first_block, kGroupedBlocks);
  const int row0 = (first_block + number % of_group % grouped) * kRows;
  const int column0 = number % of_group / grouped * columns;
  const int tiles = (p.k + kDepth - 1) / kDepth, thread = static_cast<int>(threadIdx.x) % kGroupThreads;

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::initialize(full[stage], 1);
      hopper::initialize(empty[stage], kConsumerWarps);
    }
    hopper::fence_proxy_async();
  }
  __syncthreads();

  if (threadIdx.x < kGroupThreads) {
    hopper::release_registers<40>();
    if (threadIdx.x > 0) return;
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % kStages;
      hopper::wait(empty[stage], static_cast<unsigned>(tile / kStages + 1) % 2);
      hopper::arrive_expecting(full[stage], kStageBytes);
      A::copy(a_stage(tile), a_map, full[stage], row0, tile * kDepth);
      B::copy(b_stage(tile), b_map, full[stage], column0, tile * kDepth);
    }
    return;
  }

  hopper::take_registers<232>();
  const int consumer = static_cast<int>(threadIdx.x) / kGroupThreads - 1, y = consumer * kGroupRows;
  const int warp = thread / 32, lane = thread % 32;
  float sums[columns / 2] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    hopper::wait(full[stage], static_cast<unsigned>(tile / kStages) % 2);
    hopper::fence_products(sums);
#pragma unroll
    for (int q = 0; q < kDepth; q += kTerms)
      hopper::multiply<S, a_transposed, !b_transposed>(sums, A::described(a_stage(tile), y, q),
                                                       B::described(b_stage(tile), 0, q), tile + q > 0);
    hopper::commit_products();
    // The products of the previous tile are complete.
    hopper::wait_products<1>();
    if (tile > 0 && lane == 0) hopper::arrive(empty[(tile - 1) % kStages]);
    if constexpr (split) multiply_lower<A, B>(sums, a_stage(tile), stages + kStages * kStageBytes, y);
  }
  hopper::complete_products(sums);

  // Buffers become C: no warp reads operands any more.
  Out* const held = reinterpret_cast<Out*>(stages) + y * kPitch;
  hopper::named_barrier(kAllConsumers, kConsumerThreads);
  const int first = 16 * warp + lane / 4;
#pragma unroll
  for (int j = 0; j < columns / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      const int row = first + e / 2 * 8, column = 8 * j + lane % 4 * 2;
      Elements<Out, 2> two;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float sum = sums[4 * j + e + i];
        if (row0 + y + row < p.m && column0 + column + i < p.n)
          sum = epilogue(sum, row0 + y + row, column0 + column + i);
        store(two.at[i], sum);
      }
      *reinterpret_cast<Elements<Out, 2>*>(held + row * kPitch + column) = two;
    }
  hopper::named_barrier(kFirstConsumer + static_cast<unsigned>(consumer), kGroupThreads);
  if constexpr (split) {
    restore_infinity<columns>(p, epilogue, held, row0 + y, column0, thread);
    const unsigned own = kFirstConsumer + static_cast<unsigned>(consumer);
    hopper::named_barrier(own, kGroupThreads);
  }
  store_rows<columns>(p, held, row0 + y, column0, thread);
}

template <int columns, bool a_transposed, bool b_transposed, bool split, class S, class Out, class Epilogue>
void launch_blocks(const ProductOf<S, Out>& p, const Epilogue& epilogue, Device& device) {
  using A = Operand<S, a_transposed, kRows>;
  using B = Operand<S, !b_transposed, columns>;
  const auto a_map =
      hopper::tensor_map(p.a, a_transposed ? p.k : p.m, a_transposed ? p.m : p.k, p.a_ld, A::kBoxRows, device);
  const auto b_map =
      hopper::tensor_map(p.b, b_transposed ? p.n : p.k, b_transposed ? p.k : p.n, p.b_ld, B::kBoxRows, device);
  const LaunchShape shape{dim3(blocks_for(p.n, columns), blocks_for(p.m, kRows)), dim3(kThreads),
                          kBuffers * (A::kBytes + B::kBytes) + hopper::kSwizzleBytes};
  hopper::launch_asynchronous(&wgmma_product_kernel<columns, a_transposed, b_transposed, split, S, Out, Epilogue>,
                              shape, device, p, a_map, b_map, epilogue);
}

/// Returns the multiprocessors of the device.
inline unsigned multiprocessors() {
  static const unsigned count = [] {
    int found = 0;
    return cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess && found > 0
               ? static_cast<unsigned>(found)
               : 1U;
  }();
  return count;
}

}  // namespace wgmma_product_detail

/// c[i,j] = epilogue(sum_p a[i,p] * b[p,j]), rounded once to Out. Tensor cores form the sums (mma_arithmetic); error as
/// of mma_product_with. They take S = float as TF32 (kWgmmaTf32Arithmetic), where A and Bᵀ have rows of k: error at
/// most (2v + v²) S + growth·S, v = 2^-10, S = sum_p |a[i,p]||b[p,j]|. With `split` three products of TF32 stand for
/// one of float (Format::tf32x3). Blocks have 256 columns if there are as many blocks as multiprocessors, else 128; the
/// bits are the same. Reads each element of A n/256 times and of B m/128 times. Throws Unavailable unless A and B
/// satisfy refuse_boxes and the device has compute capability 9.0. Source: PTX ISA, "Asynchronous Warpgroup Level
/// Matrix Multiply-Accumulate Instructions"; Thakkar et al., CUTLASS 3, for the division of work among warpgroups.
template <bool a_transposed, bool b_transposed, bool split = false, class S, class Out, class Epilogue>
void wgmma_product_with(const ProductOf<S, Out>& p, const Epilogue& epilogue, Device& device) {
  namespace detail = wgmma_product_detail;
  hopper::need_hopper("wgmma_product", device);
  for (const auto& why :
       {hopper::refuse_boxes("the left factor", p.a, p.a_ld), hopper::refuse_boxes("the right factor", p.b, p.b_ld)})
    if (why) throw Unavailable("wgmma_product", *why);
  const bool wide = p.n > 128 && blocks_for(p.m, detail::kRows) * blocks_for(p.n, 256) >= detail::multiprocessors();
  if (wide) detail::launch_blocks<256, a_transposed, b_transposed, split>(p, epilogue, device);
  else detail::launch_blocks<128, a_transposed, b_transposed, split>(p, epilogue, device);
}

template <bool a_transposed, bool b_transposed, class S, class Out = S, bool split = false>
void wgmma_product(const ProductOf<S, Out>& p, Device& device) {
  wgmma_product_with<a_transposed, b_transposed, split>(p, Plain{}, device);
}

/// Returns why these kernels take no such factors.
template <class S, AnyView V>
std::optional<std::string> refuse_factors(const V& a, const V& b) {
  if (auto why = hopper::refuse_device()) return why;
  if (auto why = hopper::refuse_boxes("the left factor", static_cast<const S*>(a.data()), leading_dimension(a)))
    return why;
  return hopper::refuse_boxes("the right factor", static_cast<const S*>(b.data()), leading_dimension(b));
}

/// Cases without gaps whose dims at `at`, the lengths of rows of A and B, are multiples of 16 bytes.
template <class S, int... at>
const Limits& rows_of_whole_boxes() {
  static const Limits limits = [] {
    constexpr Index kWhole = 16 / sizeof(S);
    Limits made;
    made.refuse = [](std::span<const Index> dims, std::span<const double>) -> std::optional<std::string> {
      if (((dims[at] % kWhole == 0) && ...)) return std::nullopt;
      return "rows of a factor must have a multiple of " + std::string(kWhole == 8 ? "eight" : "four") +
             " elements if no gaps are between them";
    };
    made.repair = [](std::vector<Index>& dims, std::vector<double>&, std::uint64_t) {
      ((dims[at] = dims[at] < kWhole ? (dims[at] + kWhole - 1) / kWhole * kWhole : dims[at] / kWhole * kWhole), ...);
      return true;
    };
    made.dense = made.aligned = true;  // most drawn gaps and offsets are no multiples of 16 bytes
    return made;
  }();
  return limits;
}

/// Completes the registry entry of a kernel of this file. In 16 bits it comes before that of mma_product.cuh; who does
/// not name a kernel gets no TF32.
template <class S, int... at>
Kernel wgmma_kernel(Kernel kernel, std::function<std::optional<std::string>(const Call&)> refuse) {
  kernel.arithmetic = mma_arithmetic<S>();
  kernel.refuse = [grid = std::move(kernel.refuse), refuse = std::move(refuse)](const Call& call) {
    auto why = grid(call);
    return why ? why : refuse(call);
  };
  kernel.limits = &rows_of_whole_boxes<S, at...>();
  kernel.priority = std::is_same_v<S, float> ? 0 : 2;
  return kernel;
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
